"""What layers ask of their inputs, and the values of weights that they may lack."""

from __future__ import annotations

from math import prod
from typing import Any

from phlox_tensor import DTypeError, KindError, ShapeError, Tensor

from ..param.param import Param


def check_dtype(layer: object, x: object, weight: Param | None) -> None:
    """Keep an input from changing the type that a model computes in, which promotion would do."""
    if weight is None:
        return
    dtype = x.dtype if isinstance(x, Tensor) else weight.dtype
    if dtype is not weight.dtype and dtype.kind == "Float":
        raise DTypeError(
            type(layer).__name__,
            "input and weights differ in type",
            got=f"{dtype} beside weights of {weight.dtype}",
            expected=weight.dtype,
            hint=f"x.astype({weight.dtype.name!r})",
        )


def value_of(param: Param | None) -> Tensor[Any] | None:
    """Return the value of a parameter; None where a layer has no such."""
    return None if param is None else param.value


def check_hidden(op: str, name: str, mask: Tensor[Any] | None, floats: str | None = None) -> None:
    """Refuse a mask of numbers, of which nobody can tell whether 1 is what counts or what is left.

    Raises:
        KindError: with both ways to say it, or what to type for ``floats``.
    """
    if mask is not None and mask.dtype.kind != "Bool":
        added = floats if mask.dtype.kind == "Float" else None
        raise KindError(
            op,
            f"{name} is no mask",
            got=mask.dtype,
            expected="Bool: True for what is hidden",
            hint=added
            or f"{name} == 0, where 1 stands for what is seen, as tokenizers have it; "
            f"{name} != 0, where for what is hidden",
        )


def check_several(layer: object, x: Tensor[Any], examples: int | None = None) -> None:
    """Refuse one value for each channel (axis 1), which has no variance: all would become 0.

    Args:
        layer: what normalizes.
        x: (N, C, …).
        examples: how many are taken together; None for all of the batch.

    Raises:
        ShapeError: as batch and instance norms of PyTorch do.
    """
    if prod(x.shape[2:]) * (x.shape[0] if examples is None else examples) == 1:
        raise ShapeError(
            type(layer).__name__,
            "a single value for each channel has no variance",
            got=x.shape,
            expected="several values for each channel",
            hint="a larger batch, whose parts (microbatches) have several examples; "
            "DataLoader(..., drop_last=True); BatchNorm(..., synchronized=True) over all parts; "
            "model.valid() for inference"
            if examples is None
            else None,
        )
