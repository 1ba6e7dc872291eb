"""Compiled functions: recorded once, replayed without Python per op."""

from ._compile import Compiled as Compiled
from ._compile import compile as compile

__all__ = ["Compiled", "compile"]
