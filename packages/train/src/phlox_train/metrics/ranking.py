"""How well scores order the items of each query: what is relevant should come first."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from phlox_tensor import (
    ShapeError,
    Tensor,
    arange,
    cumulative_sum,
    isnan,
    log2,
    minimum,
    take_along_axis,
    topk,
    where,
)

from .row import Each, Mean, floats


class Ranked(Mean, takes=("scores", "targets"), better="higher"):
    """Base of means over queries: scores (…, items), and how relevant each item is (…, items).

    Relevance is 0 or 1, or larger for more of it; below 0 there is no item, as where queries have
    different numbers of them. Of equal scores the first item comes first. Queries without a
    relevant item do not count; scores of nan give NaN.

    Attributes:
        k: how many of the first items are looked at; None for all.
    """

    k: int | None = None

    def validate(self) -> None:
        """Refuse a look at nothing."""
        self.require("k", self.k is None or self.k >= 1, "at least 1, or None")

    def _each(self, scores: Tensor[Any], targets: Tensor[Any]) -> Each:
        self.same_shapes(scores=scores, targets=targets)
        if not scores.ndim or not scores.shape[-1]:
            raise ShapeError(
                type(self).__name__, "no items", got=scores.shape, expected="(…, items)"
            )
        wide = floats(scores)
        relevant = floats(targets).astype(wide.dtype)
        there = relevant >= 0
        relevant = where(there, relevant, 0.0)
        first = topk(where(there, wide, -np.inf), min(self.k or wide.shape[-1], wide.shape[-1]))[1]
        found = self._query(take_along_axis(relevant, first, axis=-1), relevant)
        found = where(isnan(wide).any(axis=-1), np.nan, found)
        return found, (relevant > 0).any(axis=-1).astype(wide.dtype)

    @abstractmethod
    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        """Return the value of each query from relevance in the order of scores, and of all."""


class HitRate(Ranked):
    """The share of queries with a relevant item among the first k.

    Example:
        >>> HitRate(1)(px.asarray([[0.9, 0.1], [0.9, 0.1]]), px.asarray([[1, 0], [0, 1]]))
        0.5
    """

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        return (first > 0).any(axis=-1).astype(first.dtype)


class MAP(Ranked):
    """The mean of average precision: of precision at each relevant item among the first k.

    The sum of a query is divided by as many relevant items as could be there. Buckley and
    Voorhees, "Evaluating evaluation measure stability", 2000,
    https://doi.org/10.1145/345508.345543

    Example:
        >>> MAP()(px.asarray([[0.9, 0.5, 0.1]]), px.asarray([[1, 0, 1]]))
        0.833333...
    """

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        hits = (first > 0).astype(first.dtype)
        precision = cumulative_sum(hits, axis=-1) / _places(first)
        could = minimum((relevant > 0).sum(axis=-1), first.shape[-1]).astype(first.dtype)
        return (precision * hits).sum(axis=-1) / could


class MRR(Ranked):
    """The mean of one over the place of the first relevant item; 0 where it is behind k.

    Voorhees, "The TREC-8 question answering track report", 1999,
    https://trec.nist.gov/pubs/trec8/papers/qa_report.pdf

    Example:
        >>> MRR()(px.asarray([[0.9, 0.5, 0.1]]), px.asarray([[0, 1, 1]]))
        0.5
    """

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        return ((first > 0).astype(first.dtype) / _places(first)).max(axis=-1)


class NDCG(Ranked):
    """``Σ gain / log2(place + 1)`` over the first k, divided by that of the best order.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002,
    https://doi.org/10.1145/582415.582418

    Attributes:
        gain: ``"linear"``, the relevance, or ``"exponential"``, ``2 ** relevance - 1``.

    Example:
        >>> NDCG()(px.asarray([[0.9, 0.5, 0.1]]), px.asarray([[0, 2, 1]]))
        0.669671...
    """

    gain: Literal["linear", "exponential"] = "linear"

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        discount = 1 / log2(_places(first) + 1)
        best = topk(relevant, first.shape[-1])[0]
        ours, most = (self._gain(x) * discount for x in (first, best))
        return ours.sum(axis=-1) / most.sum(axis=-1)

    def _gain(self, relevance: Tensor[Any]) -> Tensor[Any]:
        return 2**relevance - 1 if self.gain == "exponential" else relevance


class PrecisionAtK(Ranked):
    """The mean share of the first k items that are relevant; a query with fewer items lacks some.

    Example:
        >>> PrecisionAtK(2)(px.asarray([[0.9, 0.5, 0.1]]), px.asarray([[1, 0, 1]]))
        0.5
    """

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        return (first > 0).sum(axis=-1).astype(first.dtype) / (self.k or first.shape[-1])


class RecallAtK(Ranked):
    """The mean share of the relevant items that are among the first k.

    Example:
        >>> RecallAtK(2)(px.asarray([[0.9, 0.5, 0.1]]), px.asarray([[1, 0, 1]]))
        0.5
    """

    def _query(self, first: Tensor[Any], relevant: Tensor[Any]) -> Tensor[Any]:
        found, there = (first > 0).sum(axis=-1), (relevant > 0).sum(axis=-1)
        return found.astype(first.dtype) / there.astype(first.dtype)


def _places(first: Tensor[Any]) -> Tensor[Any]:
    """1, 2, 3, … along the last axis."""
    return arange(1, first.shape[-1] + 1, device=first.device).astype(first.dtype)
