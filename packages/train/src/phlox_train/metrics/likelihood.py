"""How well probabilities or scores predict the class that is right."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import (
    Tensor,
    arange,
    log,
    log_softmax,
    relu,
    softplus,
    take_along_axis,
    where,
)

from .labels import Labeled
from .metric import State
from .row import Parts, divided


class Penalty(Labeled, better="lower"):
    """Base of means over examples, and over labels, of what scores cost."""

    def part(self, logits: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return the cost of each example, or label."""
        classes = self.fit(logits, targets)
        scores = logits.to_full_precision()
        if self.task == "multiclass":
            # Targets that do not count may be no class; those that do are checked on the host.
            there = (targets >= 0) & (targets < classes)
            costs = self._several(scores, where(there, targets, 0))
        else:
            costs = self._two(scores, _ones(targets))
        # Costs of logits that are nan are nan themselves.
        more = self.extremes(scores, targets) if self.scores == "probabilities" else {}
        return {"costs": costs, "targets": targets, "classes": classes, **more}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return the sum of costs and their number."""
        self.refuse(part)
        counts = self.counted(part["targets"].astype(np.int64), int(part["classes"]))
        return {"sum": np.sum(part["costs"], where=counts, dtype=np.float64), "count": counts.sum()}

    def value(self, state: State) -> float:
        """Return the mean cost; NaN without examples."""
        return float(self._final(divided(state["sum"], state["count"], np.nan)))

    @abstractmethod
    def _several(self, scores: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        """Return what scores of all classes cost."""

    @abstractmethod
    def _two(self, scores: Tensor[Any], right: Tensor[Any]) -> Tensor[Any]:
        """Return what scores for yes cost, where yes is right or not."""

    def _final(self, mean: NDArray[Any]) -> Any:
        """Return what the mean cost means."""
        return mean


class Likelihood(Penalty):
    """Base of means of ``-ln p``, with p the probability of the right class."""

    def _several(self, scores: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        logs = log_softmax(scores, axis=-1) if self.scores == "logits" else log(scores)
        return -_at(logs, targets)

    def _two(self, scores: Tensor[Any], right: Tensor[Any]) -> Tensor[Any]:
        if self.scores == "logits":
            return softplus(where(right, -scores, scores))
        return -log(where(right, scores, 1 - scores))


class LogLoss(Likelihood):
    """The mean of ``-ln p``, with p the probability of the right class: cross entropy.

    Infinite where p is 0. Good, "Rational decisions", 1952,
    https://doi.org/10.1111/j.2517-6161.1952.tb00104.x

    Example:
        >>> LogLoss(scores="probabilities")(px.asarray([[0.5, 0.5]]), px.asarray([1]))
        0.693147...
    """


class Perplexity(Likelihood):
    """``exp`` of ``LogLoss``: among how many equal words a model of language hesitates.

    The mean is over all tokens of all batches; ``ignore_index=`` leaves padding out. Jelinek et
    al., "Perplexity: a measure of the difficulty of speech recognition tasks", 1977,
    https://doi.org/10.1121/1.2016299

    Example:
        >>> Perplexity()(px.zeros((1, 3, 50)), px.zeros((1, 3), dtype="int32"))
        50.0000...
    """

    def _final(self, mean: NDArray[Any]) -> Any:
        return np.exp(mean)


class Brier(Penalty):
    """The mean of ``Σ (p - right)²`` over classes, from 0 to 2; of yes and no ``(p - right)²``.

    Brier, "Verification of forecasts expressed in terms of probability", 1950,
    https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Example:
        >>> Brier(scores="probabilities")(px.asarray([[0.5, 0.5]]), px.asarray([1]))
        0.5
    """

    def _several(self, scores: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        p = self.probabilities(scores)
        return p.square().sum(axis=-1) - 2 * _at(p, targets) + 1

    def _two(self, scores: Tensor[Any], right: Tensor[Any]) -> Tensor[Any]:
        return (self.probabilities(scores) - right.astype(scores.dtype)).square()


class Hinge(Penalty):
    """The mean of ``max(0, 1 - margin)``, with margin the score of the right class minus the next.

    Of yes and no the margin is the score, or its negative. Scores are used as they are. Crammer
    and Singer, "On the algorithmic implementation of multiclass kernel-based vector machines",
    2001, https://www.jmlr.org/papers/v2/crammer01a.html

    Attributes:
        squared: whether the mean is that of squares.

    Example:
        >>> Hinge()(px.asarray([[0.5, 1.0, 0.0]]), px.asarray([1]))
        0.5
    """

    squared: bool = False

    def _several(self, scores: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
        right = arange(scores.shape[-1], device=scores.device) == targets[..., None]
        others = where(right, -np.inf, scores).max(axis=-1)
        return self._cost(_at(scores, targets) - others)

    def _two(self, scores: Tensor[Any], right: Tensor[Any]) -> Tensor[Any]:
        return self._cost(where(right, scores, -scores))

    def _cost(self, margin: Tensor[Any]) -> Tensor[Any]:
        cost = relu(1 - margin)
        return cost.square() if self.squared else cost


class CalibrationError(Labeled, better="lower"):
    """How far probabilities are from how often they come true, over bins ``(i/n, (i + 1)/n]``.

    ``Σ (examples / all) |mean probability - share that came true|``. Of several classes it is the
    probability of the largest; of yes and no that of yes. Guo et al., "On calibration of modern
    neural networks", 2017, https://arxiv.org/abs/1706.04599

    Attributes:
        bins: n.
        norm: ``"l1"``; ``"l2"``, the root of the mean of squares; ``"max"``, the worst bin.

    Example:
        >>> metric = CalibrationError(task="binary", scores="probabilities", bins=2)
        >>> metric(px.asarray([0.25, 0.25, 0.75]), px.asarray([0, 1, 1]))
        0.25
    """

    bins: int = 15
    norm: Literal["l1", "l2", "max"] = "l1"

    def _limits(self) -> None:
        self.require("bins", self.bins >= 1, "at least 1")

    def part(self, logits: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return the probability of what is predicted, and whether it came true."""
        classes = self.fit(logits, targets)
        p, several = self.probabilities(logits), self.task == "multiclass"
        right = p.argmax(axis=-1) == targets if several else _ones(targets)
        found = {"sure": p.max(axis=-1) if several else p, "right": right}
        return {**found, "targets": targets, "classes": classes, **self.extremes(logits, targets)}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return counts, sums of probabilities, and how often they came true, of each bin."""
        self.refuse(part)
        counts = self.counted(part["targets"].astype(np.int64), int(part["classes"]))
        sure = np.asarray(part["sure"], np.float64)[counts]
        places = np.searchsorted(np.linspace(0, 1, self.bins + 1)[1:-1], sure)
        weights = {"count": None, "sure": sure, "right": part["right"][counts]}
        return {k: np.bincount(places, w, minlength=self.bins) for k, w in weights.items()}

    def value(self, state: State) -> float:
        """Return the error; NaN without examples."""
        count = state["count"]
        if not count.any():
            return np.nan
        gaps, shares = divided(np.abs(state["sure"] - state["right"]), count), count / count.sum()
        found = {"l1": gaps @ shares, "l2": np.sqrt(gaps**2 @ shares), "max": gaps.max()}
        return float(found[self.norm])


def _at(values: Tensor[Any], targets: Tensor[Any]) -> Tensor[Any]:
    """What is at the target on the last axis."""
    return take_along_axis(values, targets[..., None], axis=-1)[..., 0]


def _ones(targets: Tensor[Any]) -> Tensor[Any]:
    """Where targets are yes."""
    return targets if targets.dtype.kind == "Bool" else targets == 1
