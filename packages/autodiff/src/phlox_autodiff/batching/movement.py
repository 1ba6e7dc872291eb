"""Lanes of views and data movement: one more axis in front."""

from __future__ import annotations

from typing import Any, Final

from .._lanes import Call, LanesRule, NoLanes, with_lanes


def _broadcast_to(call: Call) -> Any:
    shape = call.attribute("shape")
    return call.run(call.full(0, len(shape)), attributes=((call.size, *shape),))


def _reshape(call: Call) -> Any:
    return call.run(*call.operands, attributes=((call.size, *call.attribute("shape")),))


def _permute_dims(call: Call) -> Any:
    axes = call.attribute("axes")
    return call.run(*call.operands, attributes=((0, *(i + 1 for i in axes)),))


def _slice(call: Call) -> Any:
    """Of the lanes, all."""
    attributes = call.replaced(
        start=(0, *call.attribute("start")),
        size=(call.size, *call.attribute("size")),
        step=(1, *call.attribute("step")),
    )
    return call.run(*(call.full(i) for i in range(len(call.operands))), attributes=attributes)


def _pad(call: Call) -> Any:
    padding = ((0, 0), *call.attribute("padding"))
    return call.run(*call.operands, attributes=call.replaced(padding=padding))


def _parts(call: Call) -> tuple[Any, ...]:
    """The one variadic operand, with lanes."""
    ((parts,), (mapped,)) = call.operands, call.mapped
    pairs = zip(parts, mapped, strict=True)
    return tuple(with_lanes(x, call.size, mapped=m) for x, m in pairs)


def _add_slices(call: Call) -> Any:
    """Start and step name the axes of the first part, then those of the next."""
    shape = call.attribute("shape")
    rank = len(shape)
    parts = _parts(call)
    start, step = (
        tuple(
            n
            for i in range(len(parts))
            for n in (first, *call.attribute(name)[i * rank : (i + 1) * rank])
        )
        for name, first in (("start", 0), ("step", 1))
    )
    attributes = call.replaced(shape=(call.size, *shape), start=start, step=step)
    return call.run(parts, attributes=attributes)


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "add_slices": _add_slices,
    "broadcast_to": _broadcast_to,
    "concat": lambda call: call.run(_parts(call), attributes=(call.attribute("axis") + 1,)),
    "pad": _pad,
    "permute_dims": _permute_dims,
    "reshape": _reshape,
    "slice": _slice,
    "slice_scatter": _slice,
}
