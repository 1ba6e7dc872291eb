"""Lanes of indexing: another axis, or an offset for each lane."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import Int, Tensor, arange, where

from .._lanes import Call, LanesRule, NoLanes


def _take(call: Call) -> Tensor[Any]:
    x, indices = call.operands
    axis: int = call.attribute("axis")
    if not call.mapped[1]:
        return call.run(x, indices, attributes=(axis + 1,))
    if not call.mapped[0]:
        return call.run(x, indices).moveaxis(axis, 0)
    lanes, length = x.shape[0], x.shape[axis + 1]
    front = x.moveaxis(axis + 1, 1)
    flat = front.reshape((lanes * length, *front.shape[2:]))
    found = call.run(flat, _offset(indices, length), attributes=(0,))
    # (lanes, indices…, rest…): the axes of the indices go to where they were looked up.
    rank = indices.ndim - 1
    order = [*range(found.ndim)]
    front_axes, moved, back = order[1 + rank : 1 + rank + axis], order[1 : 1 + rank], order
    return found.permute_dims((0, *front_axes, *moved, *back[1 + rank + axis :]))


def _offset(indices: Tensor[Int], length: int) -> Tensor[Int]:
    """Indices into the lanes one after the other; whatever is out of range stays out of range."""
    lanes = indices.shape[0]
    wide = indices.astype(indices.device.default_int)  # int8 does not hold every place
    first = arange(lanes, device=indices.device) * length
    counted = where(wide < 0, wide + length, wide)
    shifted = counted + first.reshape((lanes, *(1,) * (indices.ndim - 1)))
    return where((counted >= 0) & (counted < length), shifted, lanes * length)


def _lined_up(call: Call) -> Any:
    """All operands have the axes of x: one more in front."""
    given = [call.full(i) for i in range(len(call.operands))]
    return call.run(*given, attributes=call.replaced(axis=call.attribute("axis") + 1))


def _index_add(call: Call) -> Any:
    """Lanes that share the indices; else the expansion, which scatters."""
    if call.mapped[1]:
        return None
    x, values = call.full(0), call.full(2)
    attributes = call.replaced(axis=call.attribute("axis") + 1)
    return call.run(x, call.operands[1], values, attributes=attributes)


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "index_add": _index_add,
    "masked_select": NoLanes("the shape of its result depends on the values"),
    "nonzero": NoLanes("the shape of its result depends on the values"),
    "scatter": _lined_up,
    "take": _take,
    "take_along_axis": _lined_up,
}
