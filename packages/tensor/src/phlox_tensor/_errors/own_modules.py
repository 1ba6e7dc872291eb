"""Which modules are of this framework, and none of whoever uses it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Final

# By exact names: a package of a user's may begin like one of ours.
_PARTS: Final = (
    "autodiff",
    "data",
    "fusion",
    "kernels",
    "nn",
    "onnx",
    "optim",
    "record",
    "tensor",
    "train",
    "wgpu",
)
_OURS: Final = frozenset({"phlox", *(f"phlox_{part}" for part in _PARTS)})


@lru_cache(maxsize=4096)
def is_ours(module: Hashable) -> bool:
    """Whether a module of this name is one of the framework's own."""
    return str(module).partition(".")[0] in _OURS
