"""Which element type floats have in a file, and the cast on the way in and out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DType, bfloat16, finfo, float16, float32, float64, iinfo

from ._errors import Malformed

_BLOCK: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True)
class PrecisionSettings:
    """The element type that float tensors get when written. Ints and bools keep theirs.

    Attributes:
        name: written into the file, for people.
        float_dtype: None leaves every tensor as it is.
    """

    name: str
    float_dtype: DType | None

    def target(self, dtype: DType) -> DType:
        """Return the dtype in which a tensor of `dtype` is written."""
        if self.float_dtype is None or dtype.kind != "Float":
            return dtype
        return self.float_dtype

    def __repr__(self) -> str:
        return _NAMES.get(self.name, f"PrecisionSettings({self.name!r}, {self.float_dtype})")


BFloat16Precision: Final = PrecisionSettings("bfloat16", bfloat16)
DoublePrecision: Final = PrecisionSettings("double", float64)
FullPrecision: Final = PrecisionSettings("full", float32)
HalfPrecision: Final = PrecisionSettings("half", float16)
KeepPrecision: Final = PrecisionSettings("keep", None)

_NAMES: Final = {
    "bfloat16": "BFloat16Precision",
    "double": "DoublePrecision",
    "full": "FullPrecision",
    "half": "HalfPrecision",
    "keep": "KeepPrecision",
}


def cast_blocks(array: NDArray[Any], target: DType, where: str) -> Iterator[NDArray[Any]]:
    """Yield the elements of `array` in C order as one-dimensional contiguous pieces of `target`.

    Pieces are small, so a cast costs no second copy of the tensor.

    Raises:
        Malformed: a finite number or an int that `target` cannot hold.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        yield block if block.dtype == target.numpy else _cast(block, target, where)


def byte_pieces(
    array: NDArray[Any], target: DType, where: str = "the tensor"
) -> Iterator[memoryview]:
    """Yield the elements of `array` in `target` as little-endian bytes. Raises as `cast_blocks`."""
    for block in cast_blocks(array, target, where):
        yield little_endian(block).view(np.uint8).data


def little_endian(block: NDArray[Any]) -> NDArray[Any]:
    """Return `block` with little-endian bytes; itself on little-endian machines."""
    if sys.byteorder == "little" or block.dtype.itemsize == 1:
        return block
    return block.view(f"u{block.dtype.itemsize}").byteswap()


def cast_array(array: NDArray[Any], target: DType, where: str) -> NDArray[Any]:
    """Return `array` in `target`, itself when nothing changes. Raises as `cast_blocks` does."""
    if array.dtype == target.numpy:
        return array
    result = np.empty(array.size, target.numpy)
    start = 0
    for block in cast_blocks(array, target, where):
        result[start : start + block.size] = block
        start += block.size
    return result.reshape(array.shape)


def _cast(block: NDArray[Any], target: DType, where: str) -> NDArray[Any]:
    if target.kind == "Int":
        info = iinfo(target)
        low, high = int(block.min()), int(block.max())
        if low < info.min or high > info.max:
            raise _overflow(where, high if high > info.max else low, target, int(info.max))
        return block.astype(target.numpy)
    with np.errstate(over="ignore", invalid="ignore"):
        result = block.astype(target.numpy)
        lost = np.isfinite(block) & ~np.isfinite(result)
    if lost.any():
        raise _overflow(where, float(block[lost][0]), target, float(finfo(target).max))
    return result


def _overflow(where: str, value: float, target: DType, largest: float) -> Malformed:
    hint = (
        "BFloat16Precision or FullPrecision instead of HalfPrecision"
        if target is float16
        else 'dtype="stored", or a precision with a wider range'
    )
    return Malformed(
        f"{where} does not fit {target.name}",
        got=value,
        expected=f"magnitudes up to {largest:g}",
        hint=hint,
    )
