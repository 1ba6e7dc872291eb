"""Nested containers of tensors: phlox_tensor.tree itself."""

import sys as _sys

import phlox_tensor.tree as _own
from phlox_tensor.tree import *

_sys.modules[__name__] = _own  # `px.tree` is one module, imported or not
