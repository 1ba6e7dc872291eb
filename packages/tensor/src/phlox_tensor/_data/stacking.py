"""Nested lists of tensors as one tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors.classes import ShapeError
from .._op.declaration import REGISTRY
from .._values.dtype import number_for
from .._values.number import Scalar
from .._values.tensor import Tensor
from .transfer import upload


def holds_tensor(data: Any) -> bool:
    """Whether nested lists hold a tensor."""
    if isinstance(data, list | tuple):
        return any(map(holds_tensor, data))
    return isinstance(data, Tensor)


def stacked(data: Any, op: str) -> Tensor[Any]:
    """Make one tensor of nested lists that hold tensors, on their device; gradients flow to them.

    Numbers between them take their type.

    Raises:
        DeviceError: for tensors on two base devices.
        DTypeError: for a number or types that do not fit together.
        KindError: for tensors of different kinds.
    """
    if isinstance(data, Tensor):
        return data
    items = list(data)
    known = [stacked(item, op) for item in items if holds_tensor(item)]
    like = _meeting(known, op)

    def item_like(item: Any) -> Tensor[Any]:
        if isinstance(item, Scalar):
            value = number_for(item, like.dtype, op)
            return Tensor(like.device.ops.full((), value, like.dtype), like.device)
        if isinstance(item, np.ndarray):
            return upload(item, None, like.device, op)
        if like.dtype.kind != "Float":
            for value in np.asarray(item).reshape(-1).tolist():
                number_for(value, like.dtype, op)
        return upload(item, like.dtype, like.device, op)

    tensors = iter(known)
    parts = [next(tensors) if holds_tensor(item) else item_like(item) for item in items]
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ShapeError(
            op, "ragged data", got=" and ".join(map(str, shapes)), expected="items of one shape"
        )
    (shape,) = shapes
    return REGISTRY["concat"]([part.reshape((1, *shape)) for part in parts], 0)


def _meeting(tensors: list[Tensor[Any]], op: str) -> Tensor[Any]:
    """An empty tensor of the device and element type in which tensors meet."""
    return REGISTRY["concat"]([t.detach().reshape((t.size,))[:0] for t in tensors], 0)
