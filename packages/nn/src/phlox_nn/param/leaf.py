"""The values of parameters as leaves of graphs: which may be trained, and how."""

from __future__ import annotations

from typing import Any, Literal

from phlox_tensor import DType, DTypeError, Tensor

from .errors import tracked

Role = Literal["weight", "state"]


def check_weight(dtype: DType, trainable: bool) -> None:
    """Refuse to train what has no gradients."""
    if trainable and dtype.kind != "Float":
        raise DTypeError(
            "param",
            "a weight that is trained is no Float",
            got=dtype,
            expected="float32, or a parameter that is not trained",
            hint='nn.Param(x.astype("float32")), nn.State(x) or nn.Param(x, trainable=False)',
        )


def as_leaf(value: Tensor[Any], trainable: bool) -> Tensor[Any]:
    """Return the tensor as a leaf: gradients wanted where that is possible and asked for."""
    if not value.device.records or value.dtype.kind != "Float":
        return value
    if trainable:
        inner = value.device.inner
        if inner is not None and inner.records and not value.requires_grad:
            # A leaf on every device that records, so that gradients have derivatives.
            value = as_leaf(value.inner(), trainable).to_device(value.device)
        return value.require_grad()
    if value.requires_grad:
        raise tracked("weight")
    return value
