"""Ops of rules, called without checks: what a pass brings together fits."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Op, Tensor
from phlox_tensor.capture import wrap

Shape = tuple[int, ...]


def transposed(x: Tensor[Any]) -> Tensor[Any]:
    """A matrix with its axes exchanged."""
    device = x.device
    return wrap(device.ops.permute_dims(x.primitive, (1, 0)), device)


def broadcast(x: Tensor[Any], shape: Shape) -> Tensor[Any]:
    """The tensor seen with a larger shape."""
    device = x.device
    return wrap(device.ops.broadcast_to(x.primitive, shape), device)


def summed(x: Tensor[Any], axes: Shape) -> Tensor[Any]:
    """The sum of floats over axes, which the result lacks."""
    device = x.device
    return wrap(device.ops.sum(x.primitive, axes, False, x.dtype), device)


def unchecked(op: Op, operands: tuple[Tensor[Any], ...], *attributes: Any) -> Tensor[Any]:
    """The one result of an op of tensors; attributes are as entries get them, and all there."""
    device = operands[0].device
    for x in operands:
        if x.device is not device:  # one has lanes, the others have none
            return op(*operands, *attributes)
    entry = getattr(device.ops, op.name)
    return wrap(entry(*[x.primitive for x in operands], *attributes), device)
