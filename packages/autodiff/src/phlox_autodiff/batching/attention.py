"""Lanes of attention: one more batch axis, in front of the others."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import Tensor

from .._lanes import Call, LanesRule, NoLanes


def _with_lanes(call: Call, tensors: int) -> list[Any]:
    """The first ``tensors`` operands and after them mask and bias, which broadcast to scores."""
    rank = len(call.shape(tensors - 1))
    heads = [call.full(i) for i in range(tensors)]
    return [*heads, *(call.full(i, rank) for i in (tensors, tensors + 1))]


def _attention_backward(call: Call) -> tuple[Tensor[Any], ...]:
    *grads, dbias = call.run(*_with_lanes(call, 4))
    if call.operands[5] is None:  # then the cotangent is empty
        return (*grads, dbias.reshape((1, 0)).broadcast_to((call.size, 0)))
    return (*grads, dbias.reshape((call.size, *call.shape(5))))


LANES: Final[dict[str, LanesRule | NoLanes]] = {
    "attention": lambda call: call.run(*_with_lanes(call, 3)),
    "attention_backward": _attention_backward,
}
