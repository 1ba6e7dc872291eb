"""Shape rules of diagonals, and of products other than matmul."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ShapeError
from .._op.attributes import normalize_axis
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes
from ._equation import read


def run(rows: int, columns: int, offset: int) -> tuple[int, int]:
    """Where a diagonal starts in the flattened matrix, and how many elements it has."""
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (offset if offset >= 0 else -offset * columns), max(count, 0)


def prepare_cross(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axis from the end of both, which agree there."""
    del backend
    a, b = specs[0].shape, specs[1].shape
    (axis,) = attributes
    if axis >= 0 and len(a) != len(b):
        raise ShapeError(
            "cross", "axis counts from the end where ranks differ", got=axis, expected="axis < 0"
        )
    rank = min(len(a), len(b))
    place = normalize_axis(axis, "cross", rank) - rank
    if a[place] != 3 or b[place] != 3:
        raise ShapeError("cross", "not vectors of size 3", got=f"{a} and {b} along axis {axis}")
    return (place,)


def cross(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """What both broadcast to."""
    del attributes
    return [broadcast_shapes((specs[0].shape, specs[1].shape), op.name)]


def diag(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A matrix of a vector, a vector of a matrix."""
    shape, (offset,) = specs[0].shape, attributes
    if len(shape) == 1:
        return [(shape[0] + abs(offset),) * 2]
    if len(shape) != 2:
        hint = "px.diagonal(x)" if len(shape) > 2 else None
        expected = "(n,) or (n, m)"
        raise ShapeError(op.name, "not a vector or matrix", got=shape, expected=expected, hint=hint)
    return diagonal(op, specs, attributes)


def diagonal(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, k) of (…, n, m)."""
    shape, (offset,) = specs[0].shape, attributes
    if len(shape) < 2:
        raise ShapeError(op.name, "not a matrix", got=shape, expected="(…, n, m)")
    return [(*shape[:-2], run(shape[-2], shape[-1], offset)[1])]


def einsum(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The sizes of the labels of the result."""
    del op
    found = read(attributes[0], [spec.shape for spec in specs[0]])
    return [tuple(found.sizes[label] for label in found.output)]


def kron(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Sizes multiplied, those of the shorter shape behind ones."""
    del op, attributes
    shapes = [spec.shape for spec in specs[:2]]
    count = max(map(len, shapes))
    a, b = ((1,) * (count - len(shape)) + shape for shape in shapes)
    return [tuple(n * m for n, m in zip(a, b, strict=True))]
