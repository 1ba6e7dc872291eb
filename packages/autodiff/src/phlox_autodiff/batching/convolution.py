"""Lanes of convolutions: more images where all share the weight, else more groups."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import Tensor

from .._lanes import Call, LanesRule, NoLanes
from ._classes import folded, images


def _of_some(rule: LanesRule) -> LanesRule:
    """The rule where there are lanes: of none, nothing would tell channels and groups of one."""

    def run(call: Call) -> Any:
        return rule(call) if call.size else None

    return run


def _beside(x: Tensor[Any]) -> Tensor[Any]:
    """(lanes, N, C, …) as (N, lanes · C, …)."""
    size, count, channels, *rest = x.shape
    order = (1, 0, *range(2, x.ndim))
    return x.permute_dims(order).reshape((count, size * channels, *rest))


def _apart(x: Tensor[Any], size: int) -> Tensor[Any]:
    """(N, lanes · C, …) as (lanes, N, C, …)."""
    count, channels, *rest = x.shape
    split = x.reshape((count, size, channels // size, *rest))
    return split.permute_dims((1, 0, *range(2, split.ndim)))


def _conv2d(call: Call) -> Any:
    if call.only(0):
        return images(call)
    x, weight, bias = call.operands
    groups = call.attribute("groups")
    if bias is not None:
        bias = call.full(2).reshape((call.size, 1, -1, 1, 1))
    if not any(call.mapped[:2]):
        return call.run(x, weight, None) + bias  # which broadcasts over the lanes
    if not call.mapped[1]:
        return images(call._replace(operands=(x, weight, None), mapped=(True, False, False))) + bias
    if call.mapped[0] or groups > 1:
        x, groups = _beside(call.full(0)), groups * call.size
    out = call.run(x, folded(weight), None, attributes=call.replaced(groups=groups))
    out = _apart(out, call.size)
    return out if bias is None else out + bias


def _conv2d_input_grad(call: Call) -> Any:
    if call.only(0):
        return images(call)
    count, channels, *rest = call.attribute("input_shape")
    attributes = call.replaced(
        input_shape=(count, channels * call.size, *rest),
        groups=call.attribute("groups") * call.size,
    )
    out = call.run(_beside(call.full(0)), folded(call.full(1)), attributes=attributes)
    return _apart(out, call.size)


def _conv2d_weight_grad(call: Call) -> Any:
    """Each lane has channels and groups of its own, so that none meets another."""
    out, *rest = call.attribute("weight_shape")
    attributes = call.replaced(
        weight_shape=(out * call.size, *rest), groups=call.attribute("groups") * call.size
    )
    grad = call.run(_beside(call.full(0)), _beside(call.full(1)), attributes=attributes)
    return grad.reshape((call.size, out, *rest))


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "conv2d": _of_some(_conv2d),
    "conv2d_input_grad": _of_some(_conv2d_input_grad),
    "conv2d_weight_grad": _of_some(_conv2d_weight_grad),
}
