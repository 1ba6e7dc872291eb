"""Factors and shifts of normalizations, and rows over several axes."""

from __future__ import annotations

from math import prod
from typing import Any, Literal

from phlox_tensor import Backend, Float, ShapeError, Tensor

from .. import initializers as init
from ..param.param import Param

Norm = Literal["layer", "rms"]


def affine(
    shape: tuple[int, ...], has_both: bool, has_bias: bool, device: Backend | str | None
) -> dict[str, Param | None]:
    """Return weight and bias of a shape by name; None for what there is not."""
    return {
        "weight": init.Ones().param(shape, device) if has_both else None,
        "bias": init.Zeros().param(shape, device) if has_both and has_bias else None,
    }


def row_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a row whose sizes are given."""
    return size if isinstance(size, tuple) else (size,)


def flat_rows(layer: Any, x: Tensor[Float]) -> Tensor[Float]:
    """Return the tensor with the axes of a row as one."""
    row = row_shape(layer.settings.d_model)
    if len(row) == 1:
        return x
    if x.shape[-len(row) :] != row:
        raise ShapeError(
            type(layer).__name__,
            "the last axes are of other sizes",
            got=x.shape,
            expected=f"(…, {', '.join(map(str, row))})",
        )
    return x.reshape(*x.shape[: -len(row)], prod(row))


def flat_value(param: Param | None) -> Tensor[Float] | None:
    """Return the value of a parameter as a vector."""
    if param is None:
        return None
    return param.value if len(param.shape) == 1 else param.value.reshape(-1)
