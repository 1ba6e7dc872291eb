"""Shape rules of the elementwise, reduction, scan, sort, creation and row classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._dtype import number_for
from .._errors import ShapeError

if TYPE_CHECKING:
    from .._backend import Backend
    from .._op import Attributes, Metas, Op, Shape


def broadcast_shapes(shapes: Iterable[Shape], op: str) -> Shape:
    """Return the shape that all ``shapes`` broadcast to, by NumPy's rule.

    Raises:
        ShapeError: when two sizes differ and neither is 1.
    """
    shapes = list(shapes)
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for i, size in enumerate(shape):
            if size != 1:
                if out[offset + i] not in (1, size):
                    raise ShapeError(
                        op,
                        "shapes do not broadcast",
                        got=" and ".join(map(str, shapes)),
                        expected="equal sizes, or 1, counted from the last axis",
                        hint="x.reshape(...) or x[:, None] to line the axes up",
                    )
                out[offset + i] = size
    return tuple(out)


def elementwise(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """All operands broadcast together."""
    del attributes
    return [broadcast_shapes((m.shape for m in metas if m is not None), op.name)]


def prepare_clip(metas: Metas, attributes: Attributes, backend: Backend) -> Attributes:
    """Bring the bounds into the type of the tensor."""
    del backend
    dtype = metas[0].dtype
    return tuple(None if v is None else number_for(v, dtype, "clip") for v in attributes)


def same(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The first operand's shape."""
    del op, attributes
    return [metas[0].shape]


def reduction(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The reduced axes go, or stay with size 1."""
    named = dict(zip(op.attribute_names, attributes, strict=True))
    axis, keepdims = named["axis"], named["keepdims"]
    shape = metas[0].shape
    axes = tuple(range(len(shape))) if axis is None else (axis,) if isinstance(axis, int) else axis
    if keepdims:
        return [tuple(1 if i in axes else n for i, n in enumerate(shape))]
    return [tuple(n for i, n in enumerate(shape) if i not in axes)]


def ordering_reduction(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """As ``reduction``, but an empty axis has no answer."""
    shape = metas[0].shape
    axis = attributes[0]
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    if any(shape[i] == 0 for i in axes):
        raise ShapeError(op.name, "nothing to choose from", got=f"shape {shape}, axis {axis}")
    return reduction(op, metas, attributes)


def from_attribute(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """The shape is the attribute ``shape`` or, for 1-d results, ``count``."""
    del metas
    named: dict[str, Any] = dict(zip(op.attribute_names, attributes, strict=True))
    shape = named["shape"] if "shape" in named else (named["count"],)
    if any(n < 0 for n in shape):
        raise ShapeError(op.name, "negative size", got=shape)
    return [shape]


def alike(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """All operands have one shape, which is the result's."""
    del attributes
    shape = metas[0].shape
    if any(m.shape != shape for m in metas):
        names = ", ".join(o.name for o in op.signature.operands)
        got = " and ".join(str(m.shape) for m in metas)
        raise ShapeError(op.name, f"{names} differ in shape", got=got, expected="one shape")
    return [shape]


def topk(op: Op, metas: Metas, attributes: Attributes) -> list[Shape]:
    """``k`` elements along the axis, once for each result."""
    k, axis, _ = attributes
    shape = metas[0].shape
    if not 0 <= k <= shape[axis]:
        raise ShapeError(op.name, "k out of range", got=k, expected=f"0 <= k <= {shape[axis]}")
    return [(*shape[:axis], k, *shape[axis + 1 :])] * len(op.signature.results)
