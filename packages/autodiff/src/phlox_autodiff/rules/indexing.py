"""Derivatives of indexing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phlox_tensor import Int, Tensor, arange

from .._rule import ByAttribute, Joint, Rule, Second, SimpleRule, none

Shape = tuple[int, ...]

Cotangents = tuple["Tensor | None", ...]


def _take(g: Tensor, indices: Tensor[Int], x_shape: Shape, axis: int) -> Tensor:
    """Each cotangent goes to where its element was read; repeats add up."""
    places = indices.reshape((indices.size,))
    shape = (*x_shape[:axis], indices.size, *x_shape[axis + 1 :])
    return g.zeros(x_shape).index_add(places, g.reshape(shape), axis=axis)


def _take_along_axis(g: Tensor, indices: Tensor[Int], x_shape: Shape, axis: int) -> Tensor:
    return g.zeros(x_shape).scatter(indices, g, axis=axis, update="add")


def scatter_set(g: Tensor, indices: Tensor[Int], axis: int) -> Cotangents:
    """Of values with one place, the one that stayed gets the cotangent."""
    numbers = arange(indices.size, device=g.device).reshape(indices.shape)
    stayed = numbers.zeros(g.shape).scatter(indices, numbers, axis=axis, update="set")
    won = stayed.take_along_axis(indices, axis=axis) == numbers
    covered = g.scatter(indices, g.zeros(indices.shape), axis=axis, update="set")
    return covered, None, won.where(g.take_along_axis(indices, axis=axis), 0.0)


def scatter_mul(
    g: Tensor, x: Tensor, indices: Tensor[Int], values: Tensor, axis: int
) -> Cotangents:
    """Products of the other factors; a zero factor is left out of them and counted instead.

    Where two factors of one place are 0, second derivatives come out as 0.
    """
    zero = values == 0
    factors = zero.where(1.0, values)
    product = (x.zeros() + 1).scatter(indices, factors, axis=axis, update="mul")
    zeros = x.zeros().scatter(indices, zero.astype(x.dtype), axis=axis, update="add")
    dx = g * (zeros == 0).where(product, 0.0)
    others = (g * x * product).take_along_axis(indices, axis=axis) / factors
    here = zeros.take_along_axis(indices, axis=axis) - zero.astype(x.dtype)
    return dx, None, (here == 0).where(others, 0.0)


def scatter_extreme(
    g: Tensor, x: Tensor, indices: Tensor[Int], values: Tensor, y: Tensor, axis: int
) -> Cotangents:
    """Shared evenly among x and the values that are equal to the result."""
    wide = g.to_full_precision()  # float16 counts to 65,504
    kept = (x == y).astype(wide.dtype)
    won = (values == y.take_along_axis(indices, axis=axis)).astype(wide.dtype)
    share = wide / kept.scatter(indices, won, axis=axis, update="add")
    at_values = share.take_along_axis(indices, axis=axis) * won
    return (share * kept).astype(g.dtype), None, at_values.astype(g.dtype)


_SCATTER: Final[dict[str, SimpleRule]] = {
    "add": (lambda g: g, None, lambda g, indices, axis: g.take_along_axis(indices, axis=axis)),
    "max": Joint(scatter_extreme),
    "min": Joint(scatter_extreme),
    "mul": Joint(scatter_mul),
    "set": Joint(scatter_set),
}
RULES: Final[dict[str, Rule]] = {
    "index_add": (lambda g: g, None, lambda g, indices, axis: g.take(indices, axis=axis)),
    "nonzero": none("the result is an index"),
    "scatter": ByAttribute("update", _SCATTER),
    "take": (_take, None),
    "take_along_axis": (_take_along_axis, None),
}


def _scatter_forward(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    """A place of the result depends on x there and on the values that arrive there."""
    x, indices, values = xs
    axis, update = attributes["axis"], attributes["update"]
    dx = x.zeros() if ts[0] is None else ts[0]
    dvalues = values.zeros() if ts[2] is None else ts[2]
    if update != "add":
        one = x.zeros() + 1
        if update == "set":
            at_x, _, at_values = scatter_set(one, indices, axis)
        elif update == "mul":
            at_x, _, at_values = scatter_mul(one, x, indices, values, axis)
        else:
            at_x, _, at_values = scatter_extreme(one, x, indices, values, ys[0], axis)
        dx, dvalues = dx * at_x, dvalues * at_values
    return (dx.scatter(indices, dvalues, axis=axis, update="add"),)


FORWARD: Final[dict[str, Second]] = {
    "scatter": _scatter_forward,
}
