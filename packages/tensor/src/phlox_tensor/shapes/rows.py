"""Shape rules of softmax and normalization."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._equal import cotangent


def row_norm(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape; weight and bias have the size of the last axis."""
    del attributes
    shape = specs[0].shape
    if not shape:
        raise ShapeError(op.name, "a 0-d tensor has no last axis", got=shape)
    _vectors(op, specs[1:], shape[-1])
    return [shape]


def row_norm_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape, then a vector per further result."""
    (shape,) = row_norm(op, specs[1:], attributes)
    cotangent(op, specs[0].shape, shape)
    return [shape, *([shape[-1:]] * (len(op.signature.results) - 1))]


def cross_entropy(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape without the last axis, which is that of target."""
    del attributes
    shape, target = specs[0].shape, specs[1].shape
    if not shape or target != shape[:-1]:
        raise ShapeError(
            op.name,
            "targets do not fit x",
            got=f"x {shape}, target {target}",
            expected="x (…, C), target (…)",
        )
    return [target]


def cross_entropy_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of x, from which ``cross_entropy`` makes a result of g's shape."""
    (result,) = cross_entropy(op, specs[1:], attributes)
    cotangent(op, specs[0].shape, result)
    return [specs[1].shape]


def _vectors(op: Op, specs: Specs, size: int) -> None:
    for spec in specs:
        if spec is not None and spec.shape != (size,):
            raise ShapeError(op.name, "a vector does not fit", got=spec.shape, expected=(size,))


def _channels(op: Op, shape: Shape) -> int:
    if len(shape) < 2:
        raise ShapeError(op.name, "no channel axis", got=shape, expected="(batch, channels, …)")
    return shape[1]


def batch_norm(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape, then a vector per further result; parameters have one value per channel."""
    del attributes
    shape = specs[0].shape
    size = _channels(op, shape)
    _vectors(op, specs[1:], size)
    return [shape, *([(size,)] * (len(op.signature.results) - 1))]


def batch_norm_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape and two vectors."""
    shape = batch_norm(op, specs[1:], attributes)[0]
    cotangent(op, specs[0].shape, shape)
    return [shape, shape[1:2], shape[1:2]]
