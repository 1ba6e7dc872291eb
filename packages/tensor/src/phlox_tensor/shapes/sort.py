"""Shape rules of sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._errors import ShapeError

if TYPE_CHECKING:
    from .._op import Attributes, Op, Shape, Specs


def topk(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """``k`` elements along the axis, once for each result."""
    k, axis, _ = attributes
    shape = specs[0].shape
    if not 0 <= k <= shape[axis]:
        raise ShapeError(op.name, "k out of range", got=k, expected=f"0 <= k <= {shape[axis]}")
    return [(*shape[:axis], k, *shape[axis + 1 :])] * len(op.signature.results)
