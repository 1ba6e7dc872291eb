"""Shape rules of marks, masks and bags."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from .._values.dtype import number_for
from ._broadcast import broadcast_shapes

# How a bag becomes one row.
_MODES = ("max", "mean", "sum")


def argwhere(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As many rows as only the values tell."""
    del attributes
    shape = specs[0].shape
    if not shape:
        raise ShapeError(op.name, "a 0-d tensor has no places", got=shape, hint="x[None]")
    return [(-1, len(shape))]


def ctc_loss(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(batch,)."""
    x, targets = specs[0].shape, specs[1].shape
    lengths = [None if m is None else m.shape for m in specs[2:]]
    fits = len(x) == 3 and len(targets) == 2 and targets[0] == x[1] and x[0] > 0
    if not fits or any(length not in (None, x[1:2]) for length in lengths):
        raise ShapeError(
            op.name,
            "operands do not fit",
            got=f"x {x}, targets {targets}, lengths {lengths[0]} and {lengths[1]}",
            expected="(time, batch, classes), (batch, longest), (batch,) and (batch,)",
        )
    _blank_is_a_class(op, attributes[0], x[2])
    return [x[1:2]]


def rnnt_loss(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(batch,)."""
    x, targets = specs[0].shape, specs[1].shape
    lengths = [None if m is None else m.shape for m in specs[2:]]
    fits = len(x) == 4 and targets == (x[0], x[2] - 1) and x[1] > 0
    if not fits or any(length not in (None, x[:1]) for length in lengths):
        raise ShapeError(
            op.name,
            "operands do not fit",
            got=f"x {x}, targets {targets}, lengths {lengths[0]} and {lengths[1]}",
            expected="(batch, steps, labels + 1, classes), (batch, labels), (batch,) and (batch,)",
        )
    _blank_is_a_class(op, attributes[0], x[3])
    return [x[:1]]


def _blank_is_a_class(op: Op, blank: int, classes: int) -> None:
    if not 0 <= blank < classes:
        expected = f"0 <= blank < {classes}"
        raise ArgumentError(op.name, "blank is no class", got=blank, expected=expected)


def embedding_bag(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(bags, d)."""
    weight, indices, scale = specs
    if attributes[0] not in _MODES:
        raise ArgumentError(op.name, "unknown mode", got=attributes[0], expected="max, mean or sum")
    odd = scale is not None and scale.shape != indices.shape
    if len(weight.shape) != 2 or len(indices.shape) != 2 or odd:
        raise ShapeError(
            op.name,
            "operands do not fit",
            got=f"weight {weight.shape}, indices {indices.shape}",
            expected="weight (words, d), indices (bags, length), scale as indices",
        )
    if not indices.shape[1]:
        raise ShapeError(op.name, "empty bags", got=indices.shape, expected="a length of 1 or more")
    return [(indices.shape[0], weight.shape[1])]


def prepare_fill(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Bring the value into the type of the tensor."""
    del backend
    return (number_for(attributes[0], specs[0].dtype, "masked_fill"),)


def masked_fill(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape, to which the mask broadcasts."""
    del attributes
    x, mask = specs[0].shape, specs[1].shape
    if broadcast_shapes((x, mask), op.name) != x:
        raise ShapeError(op.name, "mask does not broadcast to x", got=mask, expected=x)
    return [x]


def one_hot(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """An axis of classes after the others."""
    if attributes[0] < 1:
        raise ArgumentError(op.name, "no classes", got=attributes[0], expected="1 or more")
    return [(*specs[0].shape, attributes[0])]
