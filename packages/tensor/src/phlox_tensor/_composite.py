"""Functions that no declaration can say: results that are no tensors, operands of many types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._kinds import AnyKind
from ._tensor import Tensor
from .ops import movement
from .shapes._broadcast import broadcast_shapes


# Takes tensors as arguments of their own, and leaves each its kind and element type.
def broadcast_arrays(*arrays: Tensor[AnyKind]) -> list[Tensor[AnyKind]]:
    """Return the tensors with the shape they all broadcast to."""
    shape = broadcast_shapes((x.shape for x in arrays), "broadcast_arrays")
    return [movement.broadcast_to(x, shape) for x in arrays]


# Gives a bool of Python.
def allclose(
    x1: Tensor[Any] | float, x2: Tensor[Any] | float, /, *, rtol: float = 1e-5, atol: float = 1e-8
) -> bool:
    """Whether all elements differ by at most ``atol + rtol·|x2|``; reads both tensors."""
    wide = [np.asarray(x.numpy() if isinstance(x, Tensor) else x, np.float64) for x in (x1, x2)]
    return bool(np.allclose(wide[0], wide[1], rtol=rtol, atol=atol))
