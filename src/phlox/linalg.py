"""Linear algebra: phlox_tensor.linalg itself."""

import sys as _sys

import phlox_tensor.linalg as _own
from phlox_tensor.linalg import *

_sys.modules[__name__] = _own  # `px.linalg` is one module, imported or not
