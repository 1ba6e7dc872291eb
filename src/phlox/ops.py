"""The declarations of all ops: phlox_tensor.ops itself."""

import sys as _sys

import phlox_tensor.ops as _own
from phlox_tensor.ops import *

_sys.modules[__name__] = _own  # `px.ops` is one module, imported or not
