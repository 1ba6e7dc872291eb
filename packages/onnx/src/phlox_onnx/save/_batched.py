"""Numbers that follow from the batch, told from runs with several batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, Final, final

import numpy as np

from phlox_tensor.capture import same

# What is linear in the batch at these is taken for linear; halves, remainders and roots are not.
BATCHES: Final = (2, 3, 7)


@final
@dataclass(frozen=True)
class Batched:
    """A number that follows from the batch: ``times * batch + plus``."""

    times: float
    plus: float

    @property
    def whole(self) -> bool:
        """Whether it is a whole number for each batch."""
        return isinstance(self.times, int) and isinstance(self.plus, int)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Batched):
            return batched(self.times + other.times, self.plus + other.plus)
        return batched(self.times, self.plus + other)

    __radd__ = __add__

    def __mul__(self, other: int) -> Any:
        return batched(self.times * other, self.plus * other)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        whole = "batch" if self.times == 1 else f"{self.times}*batch"
        return whole + (f"{self.plus:+}" if self.plus else "")


@final
@dataclass(frozen=True)
class Unlike:
    """What differs from batch to batch in another way."""

    values: tuple[Any, ...]

    def __repr__(self) -> str:
        return " / ".join(map(repr, self.values))


def batched(times: float, plus: float) -> Any:
    """A number that follows from the batch, or one that does not."""
    return Batched(times, plus) if times else plus


def merged(found: Sequence[Any]) -> Any:
    """What the runs have in common: a value, what follows from the batch, or ``Unlike``."""
    first = found[0]
    if all(type(v) is tuple and len(v) == len(first) for v in found):
        return tuple(merged(each) for each in zip(*found, strict=True))
    if all(isinstance(v, slice) for v in found):
        return slice(*(merged([getattr(v, k) for v in found]) for k in ("start", "stop", "step")))
    if all(v is first or same(v, first) for v in found):
        return first
    if all(type(v) is int for v in found) or all(type(v) is float for v in found):
        times = (found[1] - found[0]) / (BATCHES[1] - BATCHES[0])
        times = round(times) if type(first) is int else times
        plus = first - times * BATCHES[0]
        if isclose(times * BATCHES[2] + plus, found[2], rel_tol=1e-12):
            return batched(times, plus)
    return Unlike(tuple(found))


def has(item: Any, kind: type) -> bool:
    """Whether there is one of a kind among the parts of an attribute."""
    if isinstance(item, slice):
        item = item.start, item.stop, item.step
    return any(has(i, kind) for i in item) if isinstance(item, tuple) else isinstance(item, kind)


def _line(arrays: Sequence[Any]) -> tuple[Any, Any] | None:
    """Slope and start of what lies on a line through the batches, element by element."""
    one, two, three = BATCHES
    whole = arrays[0].dtype.kind in "iu"
    wide = [a.astype(np.int64 if whole else np.float64) for a in arrays]
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.where(wide[0] == wide[1], 0, wide[1] - wide[0])
        times = off // (two - one) if whole else off / (two - one)
        plus = wide[0] - times * one
        there = times * three + plus
    if whole:
        return (times, plus) if np.array_equal(there, wide[2]) else None
    near = 8 * float(np.finfo(arrays[0].dtype).eps)  # each was rounded
    fits = np.allclose(there, wide[2], rtol=near, atol=0, equal_nan=True)
    return (times, plus) if fits else None


@final
@dataclass(frozen=True)
class Spread:
    """A constant of runs: ``times * batch + plus``, then spread to a shape.

    Attributes:
        plus: what does not follow from the batch.
        times: what is added for each row, or None.
        shape: where it is spread to, or None.
        dtype: its element type.
    """

    plus: Any
    dtype: Any
    times: Any = None
    shape: tuple[Any, ...] | None = None


def spread(arrays: Sequence[Any]) -> Spread | None:
    """What constants of the runs have in common, or None where it cannot be said."""
    first = arrays[0]
    if len(arrays) == 1:
        return Spread(first, first.dtype)
    if len({a.dtype for a in arrays}) > 1 or len({a.ndim for a in arrays}) > 1:
        return None
    shape = merged([a.shape for a in arrays])
    if has(shape, Unlike):
        return None
    axes = [i for i, n in enumerate(shape) if isinstance(n, Batched)]
    if axes:
        rows = [_row(a, axes) for a in arrays]
        inner = None if any(row is None for row in rows) else spread(rows)
        return None if inner is None else Spread(inner.plus, inner.dtype, inner.times, shape)
    if all(a.tobytes() == first.tobytes() for a in arrays):
        return Spread(first, first.dtype)
    line = None if first.dtype.kind not in "iuf" else _line(arrays)
    return None if line is None else Spread(line[1], first.dtype, line[0])


def _row(array: Any, axes: Sequence[int]) -> Any:
    """The first along some axes, where all are alike."""
    row = array[tuple(slice(0, 1) if i in axes else slice(None) for i in range(array.ndim))]
    nan = array.dtype.kind == "f"
    return row if np.array_equal(array, np.broadcast_to(row, array.shape), equal_nan=nan) else None
