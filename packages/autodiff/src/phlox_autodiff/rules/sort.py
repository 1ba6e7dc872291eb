"""Derivatives of sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor import Tensor

from .._rule import Rule, none

if TYPE_CHECKING:
    from phlox_tensor import Int

Shape = tuple[int, ...]

_PLACE = none("the result is an index")


def _topk(g_values: Tensor, indices: Tensor[Int], x_shape: Shape, axis: int) -> Tensor:
    """Each cotangent goes to where its element was read."""
    return g_values.zeros(x_shape).scatter(indices, g_values, axis=axis, update="add")


SORT: Final[dict[str, Rule]] = {
    "argsort": _PLACE,
    "isin": none("the result is Bool"),
    "searchsorted": _PLACE,
    "topk": _topk,
}
