"""Checks of the parameters of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .._data.creation import full, sizes
from .._device.backend import Backend
from .._device.finding import as_device
from .._errors.classes import ArgumentError, ShapeError
from .._recording.record import recording
from .._values.dtype import DTypeLike
from .._values.tensor import Tensor
from ..shapes._broadcast import broadcast_shapes
from .draws import float_type

Device = Backend | str | None
Shape = int | Sequence[int]

# Half of the smallest step between uniforms in float32, so that no logarithm is of 0.
LEAST: Final = 2.0**-25


def of_the_result(op: str, dtype: DTypeLike | None, device: Device) -> Tensor:
    """A 0 of the float type and on the device of what is drawn."""
    return full((), 0.0, dtype=float_type(dtype, as_device(device), op), device=device)


def parameters(
    op: str, shape: Shape, dtype: DTypeLike | None, device: Device, *given: Tensor | float
) -> list[Tensor]:
    """Parameters as tensors of the shape and type of the result."""
    dims = sizes(shape, op)
    tensors = [x for x in given if isinstance(x, Tensor)]
    if broadcast_shapes([dims, *(x.shape for x in tensors)], op) != dims:
        got = ", ".join(str(x.shape) for x in tensors)
        raise ShapeError(op, "parameters do not broadcast to shape", got=got, expected=dims)
    if tensors:
        device = tensors[0].device
        dtype = tensors[0].dtype if dtype is None else dtype
    float_type(dtype, as_device(device), op)
    like = full(dims, 0.0, dtype=dtype, device=device)
    return [
        (x if isinstance(x, Tensor) else full((), float(x), dtype=like.dtype, device=like.device))
        .astype(like.dtype)
        .broadcast_to(dims)
        for x in given
    ]


def require(op: str, holds: bool, got: str, expected: str) -> None:
    """Refuse parameters that no distribution has."""
    if not holds:
        raise ArgumentError(op, "parameters out of range", got=got, expected=expected)


def require_positive(op: str, **given: Tensor | float) -> None:
    """Numbers are looked at; tensors are not read for it."""
    for name, value in given.items():
        fits = isinstance(value, Tensor) or value > 0
        require(op, fits, f"{name} {value}", f"{name} > 0")


def may_look_at(x: Tensor) -> bool:
    """Whether numbers can be read here, which a replay of what is recorded could not do."""
    return recording() is None and x.device.is_readable(x.primitive)
