"""Compiled functions: recorded once, replayed without Python per op; functions that are kernels."""

from ._compile import Compiled as Compiled
from ._compile import compile as compile
from ._fusion import Fusion as Fusion
from ._kernel import Kernel as Kernel
from ._kernel import kernel as kernel

__all__ = ["Compiled", "Fusion", "Kernel", "compile", "kernel"]
