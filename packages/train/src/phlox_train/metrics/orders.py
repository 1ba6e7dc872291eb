"""Rank correlations and the median error, for which all predictions and targets are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

from .metric import State
from .row import Merge, Parts, Row, floats


class Kept(Row, takes=("predictions", "targets"), better="higher"):
    """Base of rows whose state is all predictions and targets: it grows with the examples."""

    merges: ClassVar[Merge] = "keep"

    def part(self, predictions: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return predictions and targets."""
        self.same_shapes(predictions=predictions, targets=targets)
        both = {"predictions": predictions, "targets": targets}
        return {name: floats(x).reshape((-1,)) for name, x in both.items()}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return them as they are, if they are numbers."""
        return {name: self.numbers(name, values) for name, values in part.items()}

    def value(self, state: State) -> float:
        """Return what their orders say; NaN where there is none."""
        if not len(state["targets"]):
            return np.nan
        return float(self._of(state["predictions"], state["targets"]))

    @abstractmethod
    def _of(self, p: NDArray[Any], t: NDArray[Any]) -> Any:
        """Return the value of predictions and targets."""


class KendallCorrelation(Kept):
    """Kendall's tau-b: pairs in the same order minus those in the other one, corrected for ties.

    ``(same - other) / √(pairs untied in p · pairs untied in t)``, in n log n steps. Kendall, "The
    treatment of ties in ranking problems", 1945, https://doi.org/10.2307/2332303

    Example:
        >>> KendallCorrelation()(px.asarray([1.0, 2.0, 3.0]), px.asarray([1.0, 3.0, 2.0]))
        0.333333...
    """

    def _of(self, p: NDArray[Any], t: NDArray[Any]) -> Any:
        order = np.lexsort((t, p))
        p, t = (
            np.unique(p[order], return_inverse=True)[1],
            np.unique(t[order], return_inverse=True)[1],
        )
        pairs = len(p) * (len(p) - 1) / 2
        in_p, in_t, in_both = _ties(p), _ties(t), _ties(p * (t.max() + 1) + t)
        same = pairs - in_p - in_t + in_both - 2 * _inversions(t)
        with np.errstate(invalid="ignore"):
            return same / np.sqrt(pairs - in_p) / np.sqrt(pairs - in_t)


class MedianAbsoluteError(Kept, better="lower"):
    """The median of ``|prediction - target|``, which a few wild errors do not move.

    Example:
        >>> MedianAbsoluteError()(px.asarray([1.0, 2.0, 99.0]), px.asarray([1.0, 3.0, 3.0]))
        1.0
    """

    def _of(self, p: NDArray[Any], t: NDArray[Any]) -> Any:
        return np.median(np.abs(p - t))


class SpearmanCorrelation(Kept):
    """Spearman's rho: the correlation of ranks, where equal numbers share the mean of theirs.

    Spearman, "The proof and measurement of association between two things", 1904,
    https://doi.org/10.2307/1412159

    Example:
        >>> p, t = px.asarray([1.0, 9.0, 2.0, 0.0]), px.asarray([3.0, 5.0, 4.0, 6.0])
        >>> SpearmanCorrelation()(p, t)
        -0.2
    """

    def _of(self, p: NDArray[Any], t: NDArray[Any]) -> Any:
        p, t = _ranks(p), _ranks(t)
        p, t = p - p.mean(), t - t.mean()
        with np.errstate(invalid="ignore"):
            return (p @ t) / np.sqrt((p @ p) * (t @ t))


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Ranks from 0 on; those of equal values are their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[inverse])


def _ties(values: NDArray[Any]) -> int:
    """How many pairs are equal."""
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _inversions(values: NDArray[Any]) -> int:
    """How many pairs of non-negative integers stand in falling order.

    Such a pair differs first at one bit: the earlier one has it, the later one has not.
    """
    found = 0
    for bit in range(int(values.max()).bit_length()):
        block = values >> (bit + 1)  # equal above that bit
        order = np.argsort(block, kind="stable")
        block, ones = block[order], (values[order] >> bit) & 1
        before = np.cumsum(ones) - ones
        first = np.flatnonzero(np.r_[True, block[1:] != block[:-1]])
        in_block = before - np.repeat(before[first], np.diff(np.r_[first, len(block)]))
        found += int(in_block[ones == 0].sum())
    return found
