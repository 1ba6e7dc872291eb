"""What is of this framework, and what of other libraries: modules, arrays and their types."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable
from functools import lru_cache
from types import FrameType
from typing import Final

# By exact names: a package of a user's may begin like one of ours.
_PARTS: Final = (
    "autodiff",
    "data",
    "distributed",
    "fusion",
    "kernels",
    "nn",
    "onnx",
    "optim",
    "record",
    "tensor",
    "text",
    "train",
    "wgpu",
)
_OURS: Final = frozenset({"phlox", *(f"phlox_{part}" for part in _PARTS)})
_PLAIN: Final = ("builtins", "numpy")  # whose names say what they are


@lru_cache(maxsize=4096)
def is_ours(module: Hashable) -> bool:
    """Whether a module of this name is one of the framework's own."""
    return str(module).partition(".")[0] in _OURS


def warn_user(text: str) -> None:
    """Warn, and point at the line of the user that called the framework."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def is_array(item: object) -> bool:
    """Whether an object is what ``px.asarray`` reads as numbers, in the words of its type."""
    kind = type(item)
    return hasattr(kind, "__dlpack__") or hasattr(kind, "__array__")


def type_name(item: object) -> str:
    """Return the name of a type; of an array of another library with its module, torch.Tensor."""
    kind = type(item)
    module = kind.__module__
    if not is_array(item) or module in _PLAIN or is_ours(module):
        return kind.__name__
    return f"{module}.{kind.__qualname__}"
