"""Shape rules of reading and writing at places that rows of indices name."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes
from .indexing import known_update


def gather_nd(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, *x.shape[k:]) of indices (…, k)."""
    del attributes
    x, indices = specs[0].shape, specs[1].shape
    if not indices or not 1 <= indices[-1] <= len(x):
        raise ShapeError(
            op.name,
            "rows of indices do not fit",
            got=f"indices {indices} into {x}",
            expected=f"(…, k) with 1 <= k <= {len(x)}",
        )
    return [(*indices[:-1], *x[indices[-1] :])]


def masked_scatter(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape, to which the mask broadcasts."""
    del attributes
    x, mask, source = (spec.shape for spec in specs)
    if broadcast_shapes((x, mask), op.name) != x:
        raise ShapeError(op.name, "mask does not broadcast to x", got=mask, expected=x)
    if 0 in source and 0 not in x:
        raise ShapeError(op.name, "no elements to write", got=f"source {source}")
    return [x]


def scatter_nd(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """X's shape."""
    (update,) = attributes
    known_update(op, update)
    (places,) = gather_nd(op, specs[:2], ())
    if specs[2].shape != places:
        raise ShapeError(op.name, "values do not fit", got=specs[2].shape, expected=places)
    return [specs[0].shape]
