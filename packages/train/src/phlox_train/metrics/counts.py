"""Metrics over counts by class or label: of correct ones, of predictions, of targets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .labels import Decided
from .metric import State
from .row import Value, divided

Average: TypeAlias = Literal["macro", "micro", "weighted"]
Normalize: TypeAlias = Literal["true", "pred", "all"]


class Share(Decided, better="higher"):
    """Base of shares of what is right, or wrong."""

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return how many count as right, and how many there are."""
        predicted, targets, counts, _ = self.decided(part)
        several = self.task == "multiclass"
        right = predicted == (targets[:, None] if several else targets)
        right = right.any(axis=1) if several else right
        found, there = self._shares(right, counts, len(part["targets"]))
        return {"right": found.sum(), "count": there.sum()}

    def _shares(self, right: Any, counts: Any, examples: int) -> tuple[Any, Any]:
        """Return what is right and what counts; by default of each place."""
        return right & counts, counts

    def value(self, state: State) -> float:
        """Return the share; NaN without examples."""
        return float(divided(state["right"], state["count"], np.nan))


class Accuracy(Share):
    """The share of examples whose class is predicted, or is among the ``top_k`` largest scores.

    Of many labels each one counts. Beside a few large classes see ``BalancedAccuracy``.

    Example:
        >>> Accuracy()(px.asarray([[0.1, 0.9], [0.8, 0.2]]), px.asarray([1, 1]))
        0.5
        >>> Accuracy(top_k=2)(px.asarray([[0.1, 0.9, 0.0]]), px.asarray([0]))
        1.0
    """


class ExactMatch(Share):
    """The share of examples of which all labels, or all classes along a sequence, are right.

    Example:
        >>> metric = ExactMatch(task="multilabel", scores="probabilities")
        >>> metric(px.asarray([[0.9, 0.1], [0.9, 0.9]]), px.asarray([[1, 0], [1, 0]]))
        0.5
    """

    def _shares(self, right: Any, counts: Any, examples: int) -> tuple[Any, Any]:
        shape = (examples, right.size // max(examples, 1))
        right, counts = right.reshape(shape), counts.reshape(shape)
        there = counts.any(axis=1)
        return (right | ~counts).all(axis=1) & there, there


class Hamming(Share, better="lower"):
    """The share of wrong labels, or of wrong classes: ``1 - Accuracy``.

    Example:
        >>> metric = Hamming(task="multilabel", scores="probabilities")
        >>> metric(px.asarray([[0.9, 0.1], [0.9, 0.9]]), px.asarray([[1, 0], [1, 0]]))
        0.25
    """

    def _shares(self, right: Any, counts: Any, examples: int) -> tuple[Any, Any]:
        return ~right & counts, counts


class Counted(Decided, better="higher"):
    """Base of rows over four numbers of each class: right, predicted, there, and all examples."""

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return these numbers."""
        predicted, targets, counts, classes = self.decided(part)
        if self.task != "multiclass":
            there, said = (targets == 1) & counts, (predicted == 1) & counts
            found = {"right": there & said, "predicted": said, "actual": there, "count": counts}
            return {name: each.sum(axis=0) for name, each in found.items()}
        predicted, targets = predicted[counts], targets[counts]
        right = targets[(predicted == targets[:, None]).any(axis=1)]
        found = {"right": right, "predicted": predicted.reshape(-1), "actual": targets}
        each = {name: np.bincount(x, minlength=classes) for name, x in found.items()}
        return {**each, "count": np.full(classes, len(targets))}


class PerClass(Counted):
    """Base of rows that are a quotient for each class.

    Attributes:
        average: ``"macro"``, the mean over the classes that are there or predicted; ``"micro"``,
            the quotient of sums over classes; ``"weighted"``, by how often a class is there; None,
            an array of all.
    """

    average: Average | None = "macro"

    def value(self, state: State) -> Value:
        """Return the quotient, 0 where it divides by 0; NaN without examples."""
        if not state["count"].any():
            return np.nan
        if self.average == "micro":
            state = {name: each.sum(keepdims=True) for name, each in state.items()}
        found = divided(
            *self._of(state["right"], state["predicted"], state["actual"], state["count"])
        )
        if self.average is None and self.task != "binary":
            return found
        weights = state["actual"] if self.average == "weighted" else _seen(state)
        return float(np.average(found, weights=weights if weights.any() else None))

    @abstractmethod
    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        """Return what is divided and by what, of each class."""


class Dice(PerClass):
    """``2 right / (predicted + there)`` of each class: the overlap of masks, and F1.

    Dice, "Measures of the amount of ecologic association between species", 1945,
    https://doi.org/10.2307/1932409

    Example:
        >>> Dice(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.666666...
    """

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        return 2 * right, predicted + actual


class FBeta(PerClass):
    """``(1 + b²) precision · recall / (b² precision + recall)``; recall counts b times as much.

    Attributes:
        beta: b; 1 gives F1.

    van Rijsbergen, "Information retrieval", 1979, chapter 7

    Example:
        >>> FBeta(task="binary", beta=2.0)(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.833333...
    """

    beta: float = 1.0

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        square = self.beta**2
        return (1 + square) * right, square * actual + predicted


class Jaccard(PerClass):
    """``right / (predicted + there - right)``: intersection over union; macro is the mean IoU.

    Jaccard, "The distribution of the flora in the alpine zone", 1912,
    https://doi.org/10.1111/j.1469-8137.1912.tb05611.x

    Example:
        >>> Jaccard(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.5
    """

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        return right, predicted + actual - right


class Precision(PerClass):
    """``right / predicted``: the share of predictions of a class that are right.

    Example:
        >>> Precision(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.5
    """

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        return right, predicted


class Recall(PerClass):
    """``right / there``: the share of a class that is found. Also: sensitivity.

    Example:
        >>> Recall(task="binary")(px.asarray([1, 0, 0]), px.asarray([1, 1, 0]))
        0.5
    """

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        return right, actual


class Specificity(PerClass):
    """The share of examples of other classes that are not taken for this one.

    Example:
        >>> Specificity(task="binary")(px.asarray([1, 0, 0]), px.asarray([0, 0, 1]))
        0.5
    """

    def _of(self, right: Any, predicted: Any, actual: Any, count: Any) -> tuple[Any, Any]:
        return count - predicted - actual + right, count - actual


class Agreement(Counted):
    """Base of rows over all classes at once, for binary and multiclass tasks."""

    many: ClassVar[bool] = False
    multilabel: ClassVar[bool] = False

    def value(self, state: State) -> float:
        """Return the value of all classes; of a binary task these are two. NaN without examples."""
        count = state["count"]
        if not count.any():
            return np.nan
        right, predicted, actual = state["right"], state["predicted"], state["actual"]
        if self.task == "binary":
            right = np.r_[count - predicted - actual + right, right]
            predicted, actual = np.r_[count - predicted, predicted], np.r_[count - actual, actual]
        return float(self._of(right, predicted.astype(np.float64), actual.astype(np.float64)))

    @abstractmethod
    def _of(self, right: NDArray[Any], predicted: NDArray[Any], actual: NDArray[Any]) -> Any:
        """Return the value."""


class BalancedAccuracy(Agreement):
    """The mean of ``Recall`` over the classes that are there.

    Attributes:
        adjusted: whether chance is 0 and perfect answers are 1.

    Brodersen et al., "The balanced accuracy and its posterior distribution", 2010,
    https://doi.org/10.1109/ICPR.2010.764

    Example:
        >>> BalancedAccuracy(task="binary")(px.asarray([1, 0, 0, 0]), px.asarray([1, 1, 0, 0]))
        0.75
    """

    adjusted: bool = False

    def _of(self, right: NDArray[Any], predicted: NDArray[Any], actual: NDArray[Any]) -> Any:
        there = actual > 0
        mean, chance = np.mean(right[there] / actual[there]), 1 / there.sum()
        return divided(mean - chance, 1 - chance, np.nan) if self.adjusted else mean


class MatthewsCorrelation(Agreement):
    """The correlation of predicted and right classes, from -1 to 1; 0 where one class is alone.

    ``(r n - Σ p t) / √((n² - Σ p²)(n² - Σ t²))`` with r right ones of n. Matthews, "Comparison of
    the predicted and observed secondary structure of T4 phage lysozyme", 1975,
    https://doi.org/10.1016/0005-2795(75)90109-9; for several classes Gorodkin, 2004.

    Example:
        >>> MatthewsCorrelation(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.5
    """

    def _of(self, right: NDArray[Any], predicted: NDArray[Any], actual: NDArray[Any]) -> Any:
        n = actual.sum()
        under = np.sqrt(n**2 - predicted @ predicted) * np.sqrt(n**2 - actual @ actual)
        return divided(right.sum() * n - predicted @ actual, under)


class Matrix(Decided):
    """Base of rows over how often each class is taken for each other one."""

    many: ClassVar[bool] = False

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return counts (classes, classes), or (labels, 2, 2): right classes, then predicted."""
        predicted, targets, counts, classes = self.decided(part)
        if self.task == "multiclass":
            pairs = (targets * classes + predicted.reshape(-1))[counts]
            found = np.bincount(pairs, minlength=classes**2).reshape((classes, classes))
            return {"matrix": found}
        labels = np.arange(classes) * 4 + targets * 2 + predicted
        found = np.bincount(labels[counts], minlength=4 * classes).reshape((-1, 2, 2))
        return {"matrix": found[0] if self.task == "binary" else found}


class ConfusionMatrix(Matrix):
    """How often class i, the row, is taken for class j, the column; of labels (labels, 2, 2).

    Attributes:
        normalize: None for counts; ``"true"``, ``"pred"`` or ``"all"`` for shares of rows, columns
            or everything.

    Example:
        >>> ConfusionMatrix(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0])).tolist()
        [[1, 1], [0, 1]]
    """

    normalize: Normalize | None = None

    def value(self, state: State) -> NDArray[Any]:
        """Return the matrix; shares of nothing are 0."""
        matrix = state["matrix"]
        if self.normalize is None:
            return matrix
        axes = {"true": (-1,), "pred": (-2,), "all": (-2, -1)}[self.normalize]
        return divided(matrix, matrix.sum(axis=axes, keepdims=True))


class CohenKappa(Matrix, better="higher"):
    """Agreement beyond chance: ``1 - Σ w observed / Σ w expected``, of independent answers.

    Attributes:
        weights: None, each error counts as 1; ``"linear"`` or ``"quadratic"`` in the distance of
            classes.

    Cohen, "A coefficient of agreement for nominal scales", 1960,
    https://doi.org/10.1177/001316446002000104

    Example:
        >>> CohenKappa(task="binary")(px.asarray([1, 1, 0]), px.asarray([1, 0, 0]))
        0.4
    """

    weights: Literal["linear", "quadratic"] | None = None

    multilabel: ClassVar[bool] = False

    def value(self, state: State) -> float:
        """Return kappa; NaN without examples, and where there is only one class."""
        matrix = state["matrix"].astype(np.float64)
        expected = np.outer(matrix.sum(axis=1), matrix.sum(axis=0))
        far = np.abs(np.subtract.outer(range(len(matrix)), range(len(matrix))))
        weights = {None: far > 0, "linear": far, "quadratic": far**2}[self.weights]
        under = (weights * expected).sum()
        return float(1 - divided((weights * matrix).sum() * matrix.sum(), under, np.nan))


def _seen(state: State) -> NDArray[np.bool_]:
    return np.asarray(state["predicted"] + state["actual"] > 0)
