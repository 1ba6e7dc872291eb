"""Shape rules of reductions."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def reduction(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The reduced axes go, or stay with size 1."""
    named = dict(zip(op.attribute_names, attributes, strict=True))
    axis, keepdims = named["axis"], named["keepdims"]
    shape = specs[0].shape
    axes = tuple(range(len(shape))) if axis is None else (axis,) if isinstance(axis, int) else axis
    if keepdims:
        return [tuple(1 if i in axes else n for i, n in enumerate(shape))]
    return [tuple(n for i, n in enumerate(shape) if i not in axes)]


def ordering_reduction(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As ``reduction``, but an empty axis has no answer."""
    shape = specs[0].shape
    axis = attributes[0]
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if any(shape[i] == 0 for i in axes):
        raise ShapeError(op.name, "nothing to choose from", got=f"shape {shape}, axis {axis}")
    return reduction(op, specs, attributes)
