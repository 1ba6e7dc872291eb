"""What recordings of calls are made of: phlox_tensor.capture itself."""

import sys as _sys

import phlox_tensor.capture as _own
from phlox_tensor.capture import *

_sys.modules[__name__] = _own  # `px.capture` is one module, imported or not
