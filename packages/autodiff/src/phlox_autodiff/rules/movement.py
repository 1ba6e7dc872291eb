"""Derivatives of views and data movement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phlox_tensor import Tensor
from phlox_tensor.ops import movement as ops
from phlox_tensor.ops.reduction import sum_to
from phlox_tensor.shapes.indexing import region

from .._rule import Rule, Second
from .._slices import Slices

Shape = tuple[int, ...]

Steps = tuple[int, ...]


def _add_slices(
    g: Tensor, parts_shape: tuple[Shape, ...], start: Steps, step: Steps
) -> tuple[Tensor, ...]:
    """Each part reads the cotangent where it was added."""
    rank = g.ndim
    places = [slice(i * rank, (i + 1) * rank) for i in range(len(parts_shape))]
    return tuple(
        ops.slice_(g, start[place], shape, step[place])
        for place, shape in zip(places, parts_shape, strict=True)
    )


def _getitem(g: Tensor, x_shape: Shape, index: Any) -> Slices:
    """The cotangent belongs to the slice that the index read."""
    found = region(x_shape, index)
    size = tuple(found.size)
    part = g if g.shape == size else g.reshape(size)
    return Slices(x_shape, part, tuple(found.start), tuple(found.step))


def _pad(g: Tensor, x_shape: Shape, padding: Any) -> Tensor:
    return ops.slice_(g, tuple(before for before, _ in padding), x_shape, (1,) * len(x_shape))


def _concat(g: Tensor, xs_shape: tuple[Shape, ...], axis: int) -> tuple[Tensor, ...]:
    out, first = [], 0
    for shape in xs_shape:
        start = tuple(first if i == axis else 0 for i in range(len(shape)))
        out.append(ops.slice_(g, start, shape, (1,) * len(shape)))
        first += shape[axis]
    return tuple(out)


RULES: Final[dict[str, Rule]] = {
    "add_slices": _add_slices,
    "broadcast_to": lambda g, x_shape: sum_to(g, x_shape),
    "concat": _concat,
    "contiguous": lambda g: g,
    "flip": lambda g, axis: g.flip(axis=axis),
    "getitem": _getitem,
    "pad": _pad,
    "permute_dims": lambda g, axes: g.permute_dims(tuple(axes.index(i) for i in range(len(axes)))),
    "reshape": lambda g, x_shape: g.reshape(x_shape),
    "slice": lambda g, x_shape, start, step: Slices(x_shape, g, start, step),
    "slice_scatter": (
        lambda g, values_shape, start, size, step: ops.slice_scatter(
            g, g.zeros(values_shape), start, size, step
        ),
        lambda g, start, size, step: ops.slice_(g, start, size, step),
    ),
}


def _pad_forward(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    del xs, ys
    return (ts[0].pad(attributes["padding"], 0.0),)


FORWARD: Final[dict[str, Second]] = {
    "pad": _pad_forward,
}
