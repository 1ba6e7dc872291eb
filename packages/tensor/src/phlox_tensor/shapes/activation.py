"""Shape rules and attributes of activations."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def positive(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Refuse a scale that cannot divide."""
    del specs, backend
    (alpha,) = attributes
    if alpha == 0:
        raise ArgumentError("celu", "alpha divides", got=alpha, expected="a number other than 0")
    return attributes


def glu(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Half the size along the axis."""
    shape, axis = specs[0].shape, attributes[0]
    if shape[axis] % 2:
        raise ShapeError(
            op.name, f"axis {axis} has no halves", got=shape, expected="an even size along it"
        )
    return [(*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])]


def prelu(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape; one slope, or one per channel."""
    del attributes
    shape, slope = specs[0].shape, specs[1].shape
    channels = shape[1] if len(shape) > 1 else 1
    if slope not in ((), (1,), (channels,)):
        expected = f"(1,) or ({channels},), the size of axis 1"
        raise ShapeError(op.name, "slopes do not fit", got=slope, expected=expected)
    return [shape]
