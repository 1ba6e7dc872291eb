"""Fourier transforms: phlox_tensor.fft itself."""

import sys as _sys

import phlox_tensor.fft as _own
from phlox_tensor.fft import *

_sys.modules[__name__] = _own  # `px.fft` is one module, imported or not
