"""Compiled functions: recorded once, replayed without Python per op; functions that are kernels."""

from phlox_tensor.public import publish as _publish

from .compiled import Compiled as Compiled
from .compiled import compile as compile
from .device.fusion import Fusion as Fusion
from .kernels.kernel import Kernel as Kernel
from .kernels.kernel import kernel as kernel

__all__ = ["Compiled", "Fusion", "Kernel", "compile", "kernel"]

_publish(__name__)
