"""What a model is called with: numbers, arrays and tensors as the file wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phlox_tensor import DTYPES, ArgumentError, Backend, Tensor

from .._graph import Value
from ..read._types import FOUR_BITS
from ._program import lifted
from ._roles import LITERAL_SIZE


def as_input(wanted: Value, value: Any) -> Any:
    """An input as arrays and tensors; numbers take the type that the file gives.

    Raises:
        ArgumentError: when it is none of them, or numbers that the type does not hold.
    """
    if value is None and wanted.dtype:
        got = f"None for {wanted.name!r}"
        raise ArgumentError("onnx", "an input is no tensor", got=got, expected=wanted.dtype)
    try:
        found = _as_value(value, wanted.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise ArgumentError(
            "onnx",
            "an input is no tensor",
            got=f"{type(value).__name__} for {wanted.name!r}",
            expected=f"a tensor, an array, or numbers of type {wanted.dtype or 'any'}",
            hint=f"model({wanted.name}=px.asarray(…))" if wanted.name.isidentifier() else None,
        ) from error
    if isinstance(found, np.ndarray) and found.dtype == object:
        got = f"{type(value).__name__} for {wanted.name!r}"
        raise ArgumentError("onnx", "an input is no tensor", got=got, expected="numbers")
    least, most = FOUR_BITS.get(wanted.code, (0, 0))
    if most and isinstance(found, np.ndarray) and found.size:
        ends = found.min().item(), found.max().item()
        if ends[0] < least or ends[1] > most:
            what, got = "numbers of more than four bits", f"{ends} for {wanted.name!r}"
            raise ArgumentError("onnx", what, got=got, expected=f"{least} to {most}")
    return found


def refuse_others(inputs: Sequence[Value], given: Sequence[Any], device: Backend) -> None:
    """Arrays and tensors have the types of the file, as in ONNX Runtime: nothing is converted.

    Where the device lacks a type, others of its kind stand for it. They have as many axes as in
    the file; of what sizes is up to the nodes, since exporters write those of an example.
    """
    for wanted, value in zip(inputs, given, strict=True):
        if wanted.dtype in DTYPES and isinstance(value, np.ndarray | Tensor):
            found: str = value.dtype.name
            word = f"px.{wanted.dtype}" if isinstance(value, Tensor) else repr(wanted.dtype)
            if found != wanted.dtype and not _stands_for(found, wanted.dtype, device):
                raise ArgumentError(
                    "onnx",
                    "an input has another type than in the file",
                    got=f"{found} for {wanted.name!r}",
                    expected=wanted.dtype,
                    hint=f"x.astype({word})",
                )
            if wanted.shape is not None and value.ndim != len(wanted.shape):
                raise ArgumentError(
                    "onnx",
                    "an input has another number of axes than in the file",
                    got=f"{value.shape} for {wanted.name!r}",
                    expected=wanted.sizes,
                )


def put(value: Any, device: Backend) -> Any:
    """An input where it is computed with; whole numbers that may be sizes stay on the host."""
    if isinstance(value, list):
        return [lifted(item, device) for item in value]
    whole = isinstance(value, np.ndarray) and (value.dtype.kind in "iub" or not value.ndim)
    return value if whole and value.size <= LITERAL_SIZE else lifted(value, device)


def _stands_for(found: str, wanted: str, device: Backend) -> bool:
    lacks = all(each.name != wanted for each in device.dtypes)
    return lacks and found in DTYPES and DTYPES[found].kind == DTYPES[wanted].kind


def _as_value(value: Any, dtype: str) -> Any:
    """Numbers take the type that the file gives; arrays and tensors keep theirs."""
    if isinstance(value, list) and not _numbers(value):
        return [_as_value(item, dtype) for item in value]
    if value is None or isinstance(value, Tensor | np.ndarray | np.generic):
        return np.asarray(value) if isinstance(value, np.generic) else value
    if dtype not in DTYPES:
        return np.asarray(value)
    found = np.asarray(value, DTYPES[dtype].numpy)
    if DTYPES[dtype].kind != "Float" and not np.array_equal(found, np.asarray(value)):
        raise ValueError("numbers that the type does not hold")
    return found


def _numbers(value: list[Any]) -> bool:
    """Whether a list is one tensor, and no sequence of them."""
    first = value[0] if value else None
    return _numbers(first) if isinstance(first, list) else isinstance(first, bool | int | float)
