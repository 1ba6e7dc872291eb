"""What tensors hold, and how two records differ."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from phlox_tensor.tree import leaves_with_paths

from ._errors import shown
from ._tree import LEAF, TensorEntry, tensor_of

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the elements of a tensor are, computed in double precision.

    Attributes:
        low: the smallest finite one; NaN without any.
        high: the largest finite one.
        mean: of the finite ones.
        std: their standard deviation, that of the whole and not of a sample.
        nan: how many are no number.
        infinite: how many are infinite.
    """

    low: float
    high: float
    mean: float
    std: float
    nan: int
    infinite: int

    def __str__(self) -> str:
        text = f"{self.low:.4g}..{self.high:.4g}, mean {self.mean:.4g}, std {self.std:.4g}"
        text += f", {self.nan:,} NaN" if self.nan else ""
        return text + (f", {self.infinite:,} infinite" if self.infinite else "")


def statistics(tensor: TensorEntry) -> Statistics:
    """Read a tensor, and return what it holds; it is never twice in memory.

    Raises:
        RecordError: damaged bytes in the file.
    """
    count, total, squares = 0, 0.0, 0.0
    low, high, nan, infinite = math.inf, -math.inf, 0, 0
    shift = None
    for block in _blocks(tensor):
        numbers = block.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        nan += int(np.isnan(numbers).sum())
        infinite += int(np.isinf(numbers).sum())
        if not finite.size:
            continue
        # Squares of the distance from some element: those of the numbers themselves cancel.
        shift = float(finite[0]) if shift is None else shift
        away = finite - shift
        count += finite.size
        total += float(away.sum())
        squares += float((away * away).sum())
        low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if not count or shift is None:
        return Statistics(math.nan, math.nan, math.nan, math.nan, nan, infinite)
    variance = max(squares / count - (total / count) ** 2, 0.0)
    return Statistics(low, high, shift + total / count, math.sqrt(variance), nan, infinite)


def _blocks(tensor: TensorEntry) -> Iterator[Any]:
    flat = np.ascontiguousarray(tensor.numpy()).reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK]
    tensor.drop()


def differences(one: Any, other: Any) -> Iterator[str]:
    """Yield a line for each place where two records differ, in structure or in values.

    Parameters are compared by their tensors, and not by their ids.
    """
    mine, theirs = _leaves(one), _leaves(other)
    for path in mine:
        if path not in theirs:
            yield f"- {shown(path)}  {_described(mine[path])}"
    for path in theirs:
        if path not in mine:
            yield f"+ {shown(path)}  {_described(theirs[path])}"
    for path, leaf in mine.items():
        if path in theirs:
            said = _differs(leaf, theirs[path])
            if said:
                yield f"~ {shown(path)}  {said}"


def _leaves(tree: Any) -> dict[str, Any]:
    pairs = leaves_with_paths(tree, LEAF)
    return {path: tensor_of(leaf) for path, leaf in pairs}


def _described(leaf: Any) -> str:
    if isinstance(leaf, TensorEntry):
        return f"{leaf.dtype.name} {list(leaf.shape)}"
    return shown(repr(leaf))


def _differs(one: Any, other: Any) -> str:
    tensors = isinstance(one, TensorEntry), isinstance(other, TensorEntry)
    if tensors != (True, True):
        same = tensors == (False, False) and type(one) is type(other) and repr(one) == repr(other)
        return "" if same else f"{_described(one)}, {_described(other)}"
    if one.shape != other.shape or one.dtype is not other.dtype:
        forms = f"{_described(one)}, {_described(other)}"
        return forms if one.shape != other.shape else f"{forms}{_values(one, other)}"
    return _values(one, other).removeprefix(", ")


def _values(one: TensorEntry, other: TensorEntry) -> str:
    """How many elements differ and by how much; NaN is equal to NaN."""
    count, largest = 0, 0.0
    for a, b in zip(_blocks(one), _blocks(other), strict=True):
        x, y = a.astype(np.float64), b.astype(np.float64)
        apart = ~((a == b) | (np.isnan(x) & np.isnan(y)))
        count += int(apart.sum())
        if apart.any():
            with np.errstate(invalid="ignore"):
                distance = np.abs(x[apart] - y[apart])
            largest = max(largest, float(np.nan_to_num(distance, nan=np.inf).max()))
    return f", {count:,} values differ, by at most {largest:.3g}" if count else ""
