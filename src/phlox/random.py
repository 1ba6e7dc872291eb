"""Random tensors and the streams they come from: phlox_tensor.random itself."""

import sys as _sys

import phlox_tensor.random as _own
from phlox_tensor.random import *

_sys.modules[__name__] = _own  # `px.random` is one module, imported or not
