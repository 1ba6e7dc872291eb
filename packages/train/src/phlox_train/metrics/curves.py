"""Metrics over all thresholds: hits and false alarms, which grow as the threshold falls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

from .counts import Average
from .labels import Labeled
from .metric import State
from .row import Merge, Parts, Value, divided


class Curve(Labeled):
    """Base of rows over scores of the right and of the other examples, one class against the rest.

    By default all scores are kept: the value is exact, and the state grows with the examples. Of
    ``thresholds=n`` the state is two counts at each of n probabilities from 0 to 1.

    Attributes:
        thresholds: how many, at least 2; None for one at each score.
    """

    thresholds: int | None = None
    merges: ClassVar[Merge] = "keep"

    def _limits(self) -> None:
        enough = self.thresholds is None or self.thresholds >= 2
        self.require("thresholds", enough, "at least 2, or None")

    def part(self, logits: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return scores (examples, classes), and targets."""
        classes = self.fit(logits, targets)
        exact = self.thresholds is None and self.task != "multiclass"
        # A sigmoid would make large scores equal; their order is the same without it.
        scores = logits.to_full_precision() if exact else self.probabilities(logits)
        columns = (-1,) if self.task == "multiclass" else (-1, classes)
        rows = targets.size // (1 if self.task == "multiclass" else classes)
        return {"scores": scores.reshape((rows, classes)), "targets": targets.reshape(columns)}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return scores and which are right, or how many are at each threshold."""
        scores, targets = part["scores"], part["targets"].astype(np.int64)
        classes = scores.shape[1]
        counts = self.counted(targets, classes)
        if self.task == "multiclass":
            counts, targets = counts[:, None], targets[:, None] == np.arange(classes)
        scores = np.where(counts, scores, scores.dtype.type(0.5))  # others may be nan
        wide = np.asarray(scores, np.float64)
        if wide.size:
            self.refuse({"low": wide.min(), "high": wide.max()})
        right = np.where(counts, targets, -1).astype(np.int8)  # -1 does not count
        if self.thresholds is None:
            return {"scores": scores, "right": right}
        grid = np.linspace(0, 1, self.thresholds)
        places = np.searchsorted(grid, wide, side="right") - 1 + np.arange(classes) * len(grid)
        shape = (classes, len(grid))
        size = classes * len(grid)
        found = {"positive": places[right == 1], "negative": places[right == 0]}
        return {k: np.bincount(x, minlength=size).reshape(shape) for k, x in found.items()}

    def _joined(self, old: State, new: State) -> Mapping[str, Any]:
        if self.thresholds is None:
            return super()._joined(old, new)
        return {name: old[name] + new[name] for name in new}

    def groups(self, state: State) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        """Return for each class how many right and other ones each threshold adds, falling."""
        if self.thresholds is not None:
            grid = np.linspace(0, 1, self.thresholds)[::-1]
            wide = (state[name].astype(np.float64)[:, ::-1] for name in ("positive", "negative"))
            for positive, negative in zip(*wide, strict=True):  # products of counts are large
                yield positive, negative, grid
            return
        for scores, right in zip(state["scores"].T, state["right"].T, strict=True):
            distinct, where = np.unique(-scores[right >= 0], return_inverse=True)
            positive = np.bincount(where, right[right >= 0], minlength=len(distinct))
            yield positive, np.bincount(where, minlength=len(distinct)) - positive, -distinct


class Area(Curve, better="higher"):
    """Base of areas under curves.

    Attributes:
        average: ``"macro"``, the mean over classes that are defined; ``"weighted"``, by how often
            they are there; ``"micro"``, of all scores as those of one class; None, an array.
    """

    average: Average | None = "macro"

    def value(self, state: State) -> Value:
        """Return the area; NaN where all examples are of one kind, or there are none."""
        if self.average == "micro" and self.thresholds is None:
            state = {name: each.reshape((-1, 1)) for name, each in state.items()}
        elif self.average == "micro":
            state = {name: each.sum(axis=0, keepdims=True) for name, each in state.items()}
        found, there = [], []
        for positive, negative, _ in self.groups(state):
            found.append(self._of(positive, negative))
            there.append(positive.sum())
        areas = np.asarray(found, np.float64)
        if self.average is None and self.task != "binary":
            return areas
        weights = np.asarray(there) if self.average == "weighted" else np.ones(len(areas))
        weights = np.where(np.isnan(areas), 0, weights)
        return float(divided(np.nansum(areas * weights), weights.sum(), np.nan))

    @abstractmethod
    def _of(self, positive: NDArray[Any], negative: NDArray[Any]) -> float:
        """Return the area from what falling thresholds add."""


class AUROC(Area):
    """The area under the curve of ``ROC``: how often a right example scores above another one.

    Equal scores count half. Of several classes each is taken against the rest. Hanley and McNeil,
    "The meaning and use of the area under a receiver operating characteristic (ROC) curve", 1982,
    https://doi.org/10.1148/radiology.143.1.7063747

    Example:
        >>> scores, targets = px.asarray([0.1, 0.4, 0.35, 0.8]), px.asarray([0, 0, 1, 1])
        >>> AUROC(task="binary")(scores, targets)
        0.75
    """

    def _of(self, positive: NDArray[Any], negative: NDArray[Any]) -> float:
        above = np.cumsum(positive) - positive / 2
        return float(divided(above @ negative, positive.sum() * negative.sum(), np.nan))


class AveragePrecision(Area):
    """``Σ (R_i - R_{i-1}) P_i`` over falling thresholds, with recall R and precision P.

    Nothing is interpolated. Su, Yuan and Zhu, "A relationship between the average precision and
    the area under the ROC curve", 2015, https://doi.org/10.1145/2808194.2809481

    Example:
        >>> scores, targets = px.asarray([0.1, 0.4, 0.35, 0.8]), px.asarray([0, 0, 1, 1])
        >>> AveragePrecision(task="binary")(scores, targets)
        0.833333...
    """

    def _of(self, positive: NDArray[Any], negative: NDArray[Any]) -> float:
        right = np.cumsum(positive)
        precision = divided(right, right + np.cumsum(negative))
        return float(divided(positive @ precision, positive.sum(), np.nan))


class Points(Curve):
    """Base of whole curves: (3, points), or (classes, 3, points) filled up with NaN."""

    def value(self, state: State) -> NDArray[Any]:
        """Return the points of each curve."""
        curves = [self._of(*group) for group in self.groups(state)]
        if self.task == "binary":
            return curves[0]
        found = np.full((len(curves), 3, max(c.shape[1] for c in curves)), np.nan)
        for place, curve in zip(found, curves, strict=True):
            place[:, : curve.shape[1]] = curve
        return found

    @abstractmethod
    def _of(self, positive: NDArray[Any], negative: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        """Return the points of one curve."""


class PrecisionRecallCurve(Points):
    """Precision, recall and threshold of each point, thresholds rising, and at last (1, 0, inf).

    Thresholds are scores as they are given, or probabilities for several classes and
    ``thresholds=n``. Recall is NaN where no example is right.

    Example:
        >>> scores, targets = px.asarray([0.5, 0.25, 0.75]), px.asarray([1, 0, 1])
        >>> PrecisionRecallCurve(task="binary")(scores, targets)[:2].round(3).tolist()
        [[0.667, 1.0, 1.0, 1.0], [1.0, 1.0, 0.5, 0.0]]
    """

    def _of(self, positive: NDArray[Any], negative: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        right = np.cumsum(positive)
        precision = divided(right, right + np.cumsum(negative), 1.0)
        recall = divided(right, positive.sum(), np.nan)
        return np.c_[[precision[::-1], recall[::-1], at[::-1]], [1.0, 0.0, np.inf]]


class ROC(Points):
    """Shares of other and of right examples above each threshold, thresholds falling from inf.

    Thresholds are scores as they are given, or probabilities for several classes and
    ``thresholds=n``. A share of no examples is NaN.

    Example:
        >>> scores, targets = px.asarray([0.5, 0.25, 0.75]), px.asarray([1, 0, 1])
        >>> ROC(task="binary")(scores, targets).tolist()
        [[0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 1.0, 1.0], [inf, 0.75, 0.5, 0.25]]
    """

    def _of(self, positive: NDArray[Any], negative: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        others, right = (np.r_[0, np.cumsum(x)] for x in (negative, positive))
        shares = [divided(x, x[-1], np.nan) for x in (others, right)]
        return np.asarray([*shares, np.r_[np.inf, at]])
