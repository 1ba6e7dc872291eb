"""Shape rules of indexing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import ArgumentError, ShapeError
from ._broadcast import broadcast_shapes

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs

UPDATES = ("add", "max", "min", "mul", "set")


def nonzero(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell; the mask is 1-d."""
    del attributes
    if len(specs[0].shape) != 1:
        raise ShapeError(
            op.name, "mask is not 1-d", got=specs[0].shape, expected="(n,)", hint="mask.flatten()"
        )
    return [(-1,)]


def masked_select(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell; the mask broadcasts to x."""
    del attributes
    x, mask = specs[0].shape, specs[1].shape
    if broadcast_shapes((x, mask), op.name) != x:
        raise ShapeError(op.name, "mask does not broadcast to x", got=mask, expected=x)
    return [(-1,)]


def take(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axis is replaced by the shape of the indices."""
    del op
    shape, indices, axis = specs[0].shape, specs[1].shape, attributes[0]
    return [(*shape[:axis], *indices, *shape[axis + 1 :])]


def take_along_axis(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the indices, which agree with x beside the axis."""
    _along(op, specs, attributes[0])
    return [specs[1].shape]


def _along(op: Op, specs: Specs, axis: int) -> None:
    shape, indices = specs[0].shape, specs[1].shape
    if len(shape) != len(indices) or any(
        a != b for i, (a, b) in enumerate(zip(shape, indices, strict=True)) if i != axis
    ):
        raise ShapeError(
            op.name,
            "indices do not line up",
            got=f"x {shape}, indices {indices}",
            expected=f"equal sizes but along axis {axis}",
        )


def scatter(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of x; values have the shape of the indices."""
    axis, update = attributes
    _along(op, specs, axis)
    if update not in UPDATES:
        raise ArgumentError(op.name, "unknown update", got=update, expected=", ".join(UPDATES))
    if specs[2].shape != specs[1].shape:
        raise ShapeError(
            op.name,
            "values and indices differ",
            got=f"{specs[2].shape} and {specs[1].shape}",
            expected="one shape",
        )
    return [specs[0].shape]


def index_add(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of x; values replace the axis by the count of indices."""
    axis = attributes[0]
    shape, indices, values = (m.shape for m in specs)
    expected = (*shape[:axis], *indices, *shape[axis + 1 :])
    if len(indices) != 1 or values != expected:
        raise ShapeError(
            op.name,
            "values do not fit",
            got=f"indices {indices}, values {values}",
            expected=f"1-d indices, values {expected}",
        )
    return [shape]
