"""What forward mode needs to know beside the rules: which ops are linear, and second lines.

An elementwise rule serves both modes, and so does the rule of a reduction, whose results depend on
groups of elements that do not overlap. Other ops with an expansion follow it. The rest is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final

from phlox_tensor.ops import convolution

from .indexing import scatter_extreme, scatter_mul, scatter_set

if TYPE_CHECKING:
    from phlox_tensor import Tensor

# Linear in all Float operands together: the op itself maps tangents.
LINEAR: Final = frozenset(
    {
        "add_slices",
        "avg_pool2d",
        "avg_pool2d_backward",
        "broadcast_to",
        "cast",
        "concat",
        "contiguous",
        "cumsum",
        "flip",
        "index_add",
        "interpolate2d",
        "interpolate2d_backward",
        "max_pool2d_backward",
        "mean",
        "permute_dims",
        "reshape",
        "slice",
        "slice_scatter",
        "sum",
        "take",
        "take_along_axis",
    }
)
# Linear in each Float operand for itself: the product rule.
MULTILINEAR: Final = frozenset({"conv2d_input_grad", "conv2d_weight_grad", "matmul"})

# From operands, tangents (None for 0), results and attributes to the tangents of the results.
Second = Callable[[Any, Any, Any, Mapping[str, Any]], "tuple[Tensor | None, ...]"]


def _conv2d(xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]) -> tuple[Tensor | None, ...]:
    parts = [
        convolution.conv2d(*pair, None, **attributes)
        for pair in ((ts[0], xs[1]), (xs[0], ts[1]))
        if None not in pair
    ]
    if ts[2] is not None:
        parts.append(ts[2].reshape((-1, 1, 1)).broadcast_to(ys[0].shape))
    return (reduce(add, parts),)


def _max_pool2d(
    xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]
) -> tuple[Tensor | None, ...]:
    """Read the tangent at each place that won."""
    del attributes
    n, c, h, w = xs[0].shape
    values, indices = ys
    flat = ts[0].reshape((n, c, h * w))
    line = (n, c, values.shape[2] * values.shape[3])
    return flat.take_along_axis(indices.reshape(line), axis=2).reshape(values.shape), None


def _pad(xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]) -> tuple[Tensor | None, ...]:
    del xs, ys
    return (ts[0].pad(attributes["padding"], 0.0),)


def _scatter(xs: Any, ts: Any, ys: Any, attributes: Mapping[str, Any]) -> tuple[Tensor | None, ...]:
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


SECOND: Final[dict[str, Second]] = {
    "conv2d": _conv2d,
    "max_pool2d_with_indices": _max_pool2d,
    "pad": _pad,
    "scatter": _scatter,
}
