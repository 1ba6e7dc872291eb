"""Compiled functions: recorded once, replayed without Python per op; functions that are kernels."""

import sys as _sys

from phlox_tensor.arguments import classes_of as _classes_of
from phlox_tensor.arguments import explain as _say_arguments

from .compiled import Compiled as Compiled
from .compiled import compile as compile
from .device.fusion import Fusion as Fusion
from .kernels.kernel import Kernel as Kernel
from .kernels.kernel import kernel as kernel

__all__ = ["Compiled", "Fusion", "Kernel", "compile", "kernel"]

_say_arguments(_sys.modules[__name__], *_classes_of(_sys.modules[__name__]))
