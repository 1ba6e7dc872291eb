"""Shape rules of sorts and searches."""

from __future__ import annotations

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def topk(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """``k`` elements along the axis, once for each result."""
    k, axis, _ = attributes
    shape = specs[0].shape
    if not 0 <= k <= shape[axis]:
        raise ShapeError(op.name, "k out of range", got=k, expected=f"0 <= k <= {shape[axis]}")
    return [(*shape[:axis], k, *shape[axis + 1 :])] * len(op.signature.results)


def searchsorted(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A place for each element that is looked for; what it goes into is a vector."""
    (side,) = attributes
    if side not in ("left", "right"):
        raise ArgumentError(op.name, "unknown side", got=side, expected="'left' or 'right'")
    if len(specs[0].shape) != 1:
        raise ShapeError(op.name, "x1 is not a vector", got=specs[0].shape, expected="(n,)")
    return [specs[1].shape]


def isin(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A truth value for each element of the first."""
    del op, attributes
    return [specs[0].shape]
