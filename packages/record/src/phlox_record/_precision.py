"""Which element type floats have in a file, and the cast on the way in and out."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import DType, WrongTypeError, bfloat16, finfo, float16, float32, float64, iinfo

from ._errors import Malformed

_BLOCK: Final = 1 << 16  # elements that are cast at once, within the caches
_SAME: Final = 1 << 17  # those that stay as they are: fewer turns with the threads beside
_SHOWN: Final = 4
# Bits without the sign from which on a number is not finite: NumPy tests these types slowly.
_INFINITE: Final = {"bfloat16": 0x7F80, "float16": 0x7C00}


@final
@dataclass(frozen=True, slots=True)
class PrecisionSettings:
    """The element type that float tensors get in a file. Ints and bools keep theirs.

    Attributes:
        name: written into the file, for people.
        float_dtype: None leaves every tensor as it is.
        rules: patterns of paths with settings of their own; the first that fits holds.
        overflow: whether a number that is too large may become an infinity.

    >>> from phlox_record import FullPrecision, HalfPrecision
    >>> HalfPrecision.where({"*.norm.*": FullPrecision}).name
    'half, full at *.norm.*'
    """

    name: str
    float_dtype: DType | None
    rules: tuple[tuple[str, PrecisionSettings], ...] = ()
    overflow: bool = False

    def where(self, rules: Mapping[str, PrecisionSettings]) -> PrecisionSettings:
        """Return settings with others for some paths, in which ``*`` stands for anything.

        Writing a record refuses a pattern that fits none of its tensors.

        Raises:
            WrongTypeError: the rules are no dict, a pattern no text, a rule no PrecisionSettings.
        """
        given: Any = rules
        if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
            raise WrongTypeError(
                "where",
                "rules",
                got=rules,
                expected="settings by pattern",
                hint='HalfPrecision.where({"*.norm.*": FullPrecision})',
            )
        for pattern, other in rules.items():
            if not isinstance(other, PrecisionSettings):
                raise WrongTypeError(
                    "where", repr(pattern), got=other, expected="settings such as FullPrecision"
                )
        more = "".join(f", {other.name} at {pattern}" for pattern, other in rules.items())
        return replace(self, name=self.name + more, rules=(*self.rules, *rules.items()))

    def allow_overflow(self) -> PrecisionSettings:
        """Return settings that write infinities for finite numbers that are too large."""
        rules = tuple((pattern, other.allow_overflow()) for pattern, other in self.rules)
        return replace(self, rules=rules, overflow=True)

    def check_paths(self, paths: Collection[str]) -> None:
        """Refuse a pattern that fits none of the paths of a record.

        Raises:
            Malformed: also for one inside the settings of another pattern.
        """
        for pattern, other in self.rules:
            fitting = [path for path in paths if fnmatchcase(path, pattern)]
            if not fitting:
                known = list(paths)[:_SHOWN]
                near = get_close_matches(pattern, paths, 1, 0.0) or ["*"]
                raise Malformed(
                    "a pattern of the precision fits no tensor",
                    got=repr(pattern),
                    expected=", ".join(known) or "a record with tensors",
                    hint=f"precision.where({{{near[0]!r}: {other!r}}})",
                )
            other.check_paths(fitting)

    def target(self, dtype: DType, where: str = "") -> DType:
        """Return the dtype in which a tensor of `dtype` at the path `where` is written."""
        for pattern, other in self.rules:
            if fnmatchcase(where, pattern):
                return other.target(dtype, where)
        if self.float_dtype is None or dtype.kind != "Float":
            return dtype
        return self.float_dtype

    def __repr__(self) -> str:
        base, *_ = self.name.split(",")
        text = _NAMES.get(base, f"PrecisionSettings({base!r}, {self.float_dtype})")
        text += f".where({dict(self.rules)!r})" if self.rules else ""
        return text + (".allow_overflow()" if self.overflow and not self.rules else "")


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


def cast_blocks(
    array: NDArray[Any], target: DType, where: str, *, overflow: bool = False
) -> Iterator[NDArray[Any]]:
    """Yield the elements of `array` in C order as one-dimensional contiguous pieces of `target`.

    Pieces that are cast are small, so there is no second copy of the tensor.

    Raises:
        Malformed: an int that `target` cannot hold, a finite number unless `overflow` is set.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    same = flat.dtype == target.numpy
    size = _SAME if same else _BLOCK
    for start in range(0, flat.size, size):
        block = flat[start : start + size]
        yield block if same else _cast(block, target, where, overflow=overflow)


def byte_pieces(
    array: NDArray[Any], target: DType, where: str = "the tensor", *, overflow: bool = False
) -> Iterator[memoryview]:
    """Yield the elements of `array` in `target` as little-endian bytes. Raises as `cast_blocks`."""
    for block in cast_blocks(array, target, where, overflow=overflow):
        yield little_endian(block).view(np.uint8).data


def little_endian(block: NDArray[Any]) -> NDArray[Any]:
    """Return `block` with little-endian bytes; itself on little-endian machines."""
    if sys.byteorder == "little" or block.dtype.itemsize == 1:
        return block
    return block.view(f"u{block.dtype.itemsize}").byteswap()


def cast_array(
    array: NDArray[Any], target: DType, where: str, *, overflow: bool = False
) -> NDArray[Any]:
    """Return `array` in `target`, itself when nothing changes. Raises as `cast_blocks` does."""
    if array.dtype == target.numpy:
        return array
    result = np.empty(array.size, target.numpy)
    start = 0
    for block in cast_blocks(array, target, where, overflow=overflow):
        result[start : start + block.size] = block
        start += block.size
    return result.reshape(array.shape)


def _cast(block: NDArray[Any], target: DType, where: str, *, overflow: bool) -> NDArray[Any]:
    if target.kind == "Int":
        info = iinfo(target)
        low, high = int(block.min()), int(block.max())
        if low < info.min or high > info.max:
            raise _overflow(where, high if high > info.max else low, target, int(info.max))
        return block.astype(target.numpy)
    with np.errstate(over="ignore", invalid="ignore"):
        result = block.astype(target.numpy)
        # One pass over the result decides: most blocks have no infinity at all.
        lost = None if overflow or _finite(result, target) else ~np.isfinite(result)
        lost = None if lost is None else lost & np.isfinite(block)
    if lost is not None and lost.any():
        raise _overflow(where, float(block[lost][0]), target, float(finfo(target).max))
    return result


def _finite(block: NDArray[Any], dtype: DType) -> bool:
    bits = _INFINITE.get(dtype.name)
    if bits is None:
        return bool(np.isfinite(block).all())
    return int((block.view(np.uint16) & 0x7FFF).max()) < bits


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
