"""Derivatives of views and data movement."""

# ruff: noqa: PLW0108 - the parameter names of a lambda say what the rule keeps

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from phlox_tensor import Tensor
from phlox_tensor.ops import movement as ops

from .._plan import sum_to
from .._rule import Rule

if TYPE_CHECKING:
    pass

Shape = tuple[int, ...]

Steps = tuple[int, ...]


def _permute_dims(g: Tensor, axes: tuple[int, ...]) -> Tensor:
    return g.permute_dims(tuple(axes.index(i) for i in range(len(axes))))


def _slice(g: Tensor, x_shape: Shape, start: Steps, size: Steps, step: Steps) -> Tensor:
    """Zeros around the cotangent, and between its elements."""
    if all(s == 1 for s in step):
        margins = zip(x_shape, start, size, strict=True)
        return g.pad([(first, n - first - count) for n, first, count in margins], 0.0)
    return ops.slice_scatter(g.zeros(x_shape), g, start, size, step)


def _pad(g: Tensor, x_shape: Shape, padding: Any) -> Tensor:
    return ops.slice_(g, tuple(before for before, _ in padding), x_shape, (1,) * len(x_shape))


def _concat(g: Tensor, xs_shape: tuple[Shape, ...], axis: int) -> tuple[Tensor, ...]:
    out, first = [], 0
    for shape in xs_shape:
        start = tuple(first if i == axis else 0 for i in range(len(shape)))
        out.append(ops.slice_(g, start, shape, (1,) * len(shape)))
        first += shape[axis]
    return tuple(out)


def _slice_scatter_x(
    g: Tensor, values_shape: Shape, start: Steps, size: Steps, step: Steps
) -> Tensor:
    return ops.slice_scatter(g, g.zeros(values_shape), start, size, step)


MOVEMENT: Final[dict[str, Rule]] = {
    "broadcast_to": lambda g, x_shape: sum_to(g, x_shape),
    "concat": _concat,
    "contiguous": lambda g: g,
    "flip": lambda g, axis: g.flip(axis=axis),
    "pad": _pad,
    "permute_dims": _permute_dims,
    "reshape": lambda g, x_shape: g.reshape(x_shape),
    "slice": _slice,
    "slice_scatter": (
        _slice_scatter_x,
        lambda g, start, size, step: ops.slice_(g, start, size, step),
    ),
}
