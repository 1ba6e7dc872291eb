"""How well clusters agree with classes, whatever their numbers are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

from .metric import State
from .row import Parts, Row, divided


class Clusters(Row, takes=("clusters", "targets"), better="higher"):
    """Base of rows over how often each cluster meets each class: integers of one shape.

    Attributes:
        clusters: how many there may be, numbered from 0.
        classes: how many there may be, numbered from 0.
    """

    clusters: int
    classes: int
    _: KW_ONLY

    def part(self, clusters: Tensor[Any], targets: Tensor[Any]) -> Parts:
        """Return both."""
        self.same_shapes(clusters=clusters, targets=targets)
        return {"clusters": clusters, "targets": targets}

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return counts (classes, clusters)."""
        for name, most in (("clusters", self.clusters), ("targets", self.classes)):
            wrong = part[name][(part[name] < 0) | (part[name] >= most)]
            if wrong.size:
                self.fail(f"{name} are out of range", wrong.reshape(-1)[0], f"0 to {most - 1}")
        pairs = part["targets"].astype(np.int64) * self.clusters + part["clusters"]
        found = np.bincount(pairs.reshape(-1), minlength=self.classes * self.clusters)
        return {"matrix": found.reshape((self.classes, self.clusters))}

    def value(self, state: State) -> float:
        """Return the value; NaN without examples."""
        matrix = state["matrix"].astype(np.float64)
        return float(self._of(matrix)) if matrix.any() else np.nan

    @abstractmethod
    def _of(self, matrix: NDArray[Any]) -> Any:
        """Return the value of counts."""


class AdjustedRand(Clusters):
    """The share of pairs that are together or apart in both, minus chance: 1 at best, 0 for chance.

    Hubert and Arabie, "Comparing partitions", 1985, https://doi.org/10.1007/BF01908075

    Example:
        >>> AdjustedRand(2, 2)(px.asarray([1, 1, 0]), px.asarray([0, 0, 1]))
        1.0
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        both, first, second = (_pairs(x) for x in (matrix, matrix.sum(1), matrix.sum(0)))
        chance = divided(first * second, _pairs(matrix.sum()))
        return divided(both - chance, (first + second) / 2 - chance, 1.0)


class Rand(Clusters):
    """The share of pairs of examples that are together in both, or apart in both.

    Rand, "Objective criteria for the evaluation of clustering methods", 1971,
    https://doi.org/10.1080/01621459.1971.10482356

    Example:
        >>> Rand(2, 2)(px.asarray([1, 1, 0, 0]), px.asarray([0, 0, 1, 0]))
        0.5
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        both, first, second = (_pairs(x) for x in (matrix, matrix.sum(1), matrix.sum(0)))
        every = _pairs(matrix.sum())
        return divided(every + 2 * both - first - second, every, 1.0)


class FowlkesMallows(Clusters):
    """The geometric mean of precision and recall of pairs that are together.

    Fowlkes and Mallows, "A method for comparing two hierarchical clusterings", 1983,
    https://doi.org/10.1080/01621459.1983.10478008

    Example:
        >>> FowlkesMallows(2, 2)(px.asarray([1, 1, 0, 0]), px.asarray([0, 0, 1, 0]))
        0.408248...
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        both, first, second = (_pairs(x) for x in (matrix, matrix.sum(1), matrix.sum(0)))
        return np.sqrt(divided(both, first) * divided(both, second))


class MutualInformation(Clusters):
    """``Σ p(i, j) ln(p(i, j) / p(i) p(j))``: what a cluster says of the class, in nats.

    Example:
        >>> MutualInformation(2, 2)(px.asarray([1, 1, 0, 0]), px.asarray([0, 0, 1, 1]))
        0.693147...
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        return _information(matrix)


class Homogeneity(Clusters):
    """``I / H(class)``: 1 where each cluster is of one class. Rosenberg and Hirschberg, 2007.

    Example:
        >>> Homogeneity(3, 2)(px.asarray([1, 2, 0, 0]), px.asarray([0, 0, 1, 1]))
        1.0
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        return divided(_information(matrix), _entropy(matrix.sum(1)), 1.0)


class Completeness(Clusters):
    """``I / H(cluster)``: 1 where each class is in one cluster. Rosenberg and Hirschberg, 2007.

    Example:
        >>> Completeness(2, 3)(px.asarray([1, 1, 0, 0]), px.asarray([0, 1, 2, 2]))
        1.0
    """

    def _of(self, matrix: NDArray[Any]) -> Any:
        return divided(_information(matrix), _entropy(matrix.sum(0)), 1.0)


class VMeasure(Clusters):
    """The harmonic mean of homogeneity and completeness: normalized mutual information.

    ``(1 + beta) h c / (beta h + c)``. Rosenberg and Hirschberg, "V-measure: a conditional
    entropy-based external cluster evaluation measure", 2007, https://aclanthology.org/D07-1043

    Attributes:
        beta: how much more completeness counts.

    Example:
        >>> VMeasure(3, 2)(px.asarray([1, 2, 0, 0]), px.asarray([0, 0, 1, 1]))
        0.8
    """

    beta: float = 1.0

    def _of(self, matrix: NDArray[Any]) -> Any:
        information = _information(matrix)
        h = divided(information, _entropy(matrix.sum(1)), 1.0)
        c = divided(information, _entropy(matrix.sum(0)), 1.0)
        return divided((1 + self.beta) * h * c, self.beta * h + c)


def _pairs(counts: Any) -> Any:
    """How many pairs there are within each count, together."""
    return np.sum(counts * (counts - 1)) / 2


def _entropy(counts: NDArray[Any]) -> Any:
    p = counts[counts > 0] / counts.sum()
    return -(p @ np.log(p))


def _information(matrix: NDArray[Any]) -> Any:
    joint = matrix / matrix.sum()
    apart = np.outer(joint.sum(1), joint.sum(0))
    here = joint > 0
    return max(0.0, joint[here] @ np.log(joint[here] / apart[here]))
