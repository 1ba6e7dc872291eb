"""Rows over the order of items and over clusters, beside scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from phlox_tensor import PhloxError
from phlox_train.metrics import clusters, ranking

Check = Callable[..., None]
Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
sk: Any = import_module("sklearn.metrics")
ITEMS = 7


def some(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Queries with one to all items relevant."""
    relevant = chance.integers(0, 2, (count, ITEMS))
    relevant[np.arange(count), chance.integers(0, ITEMS, count)] = 1
    return chance.normal(size=(count, ITEMS)), relevant


def one(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    relevant = np.eye(ITEMS, dtype=np.int64)[chance.integers(0, ITEMS, count)]
    return chance.normal(size=(count, ITEMS)), relevant


def graded(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    scores, relevant = some(chance, count)
    return scores, relevant * chance.integers(1, 4, (count, ITEMS))


def firsts(score: Any, k: int) -> Callable[..., Any]:
    """A score of labels that are the first k."""

    def oracle(scores: Any, relevant: Any) -> Any:
        said = (np.argsort(np.argsort(-scores, axis=1), axis=1) < k).astype(int)
        return score(relevant, said, average="samples", zero_division=0)

    return oracle


def reciprocal(k: int) -> Callable[..., Any]:
    def oracle(scores: Any, relevant: Any) -> Any:
        ranked = np.take_along_axis(relevant, np.argsort(-scores, axis=1), axis=1)
        places = [np.flatnonzero(row)[0] + 1 for row in ranked]
        return np.mean([1 / place if place <= k else 0 for place in places])

    return oracle


def labels(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    wide = int(chance.integers(1, 5))
    classes = chance.integers(0, wide, count)
    return np.where(chance.random(count) < 0.6, classes + 1, chance.integers(0, 5, count)), classes


def agreed(score: Any, **settings: Any) -> Callable[..., Any]:
    return lambda found, classes: score(classes, found, **settings)


ROWS: list[tuple[Any, Draw, Callable[..., Any]]] = [
    (
        ranking.HitRate(3),
        one,
        lambda s, t: sk.top_k_accuracy_score(t.argmax(axis=1), s, k=3, labels=range(ITEMS)),
    ),
    (ranking.MAP(), some, lambda s, t: sk.label_ranking_average_precision_score(t, s)),
    (ranking.MRR(), one, lambda s, t: sk.label_ranking_average_precision_score(t, s)),
    (ranking.MRR(2), some, reciprocal(2)),
    (ranking.NDCG(), graded, lambda s, t: sk.ndcg_score(t, s)),
    (ranking.NDCG(3), graded, lambda s, t: sk.ndcg_score(t, s, k=3)),
    (ranking.NDCG(20, gain="exponential"), graded, lambda s, t: sk.ndcg_score(2**t - 1, s, k=20)),
    (ranking.PrecisionAtK(3), some, firsts(sk.precision_score, 3)),
    (ranking.RecallAtK(3), some, firsts(sk.recall_score, 3)),
    (clusters.AdjustedRand(6, 4), labels, agreed(sk.adjusted_rand_score)),
    (clusters.Completeness(6, 4), labels, agreed(sk.completeness_score)),
    (clusters.FowlkesMallows(6, 4), labels, agreed(sk.fowlkes_mallows_score)),
    (clusters.Homogeneity(6, 4), labels, agreed(sk.homogeneity_score)),
    (clusters.MutualInformation(6, 4), labels, agreed(sk.mutual_info_score)),
    (clusters.Rand(6, 4), labels, agreed(sk.rand_score)),
    (clusters.VMeasure(6, 4), labels, agreed(sk.normalized_mutual_info_score)),
    (clusters.VMeasure(6, 4, beta=2.0), labels, agreed(sk.v_measure_score, beta=2.0)),
]


@pytest.mark.parametrize(
    ("metric", "draw", "oracle"), ROWS, ids=[f"{i}-{row[0].name}" for i, row in enumerate(ROWS)]
)
def test_orders_score_as_elsewhere(
    metric: Any, draw: Draw, oracle: Callable[..., Any], check: Check
) -> None:
    check(metric, draw, oracle)


EVERY = (ranking.HitRate, ranking.MAP, ranking.MRR, ranking.NDCG, ranking.RecallAtK)


@pytest.mark.parametrize("row", [*EVERY, ranking.PrecisionAtK])
def test_items_that_are_not_there_change_nothing(row: Any) -> None:
    scores, relevant = graded(np.random.default_rng(0), 9)
    filled = np.c_[scores, np.full(9, 99.0)], np.c_[relevant, np.full(9, -1)]
    assert row(3)(*filled) == row(3)(scores, relevant)


@pytest.mark.parametrize("row", EVERY)
def test_queries_without_relevant_items_do_not_count(row: Any) -> None:
    scores, relevant = graded(np.random.default_rng(0), 9)
    more = np.r_[scores, scores[:2]], np.r_[relevant, relevant[:2] * 0]
    assert row()(*more) == row()(scores, relevant)
    assert np.isnan(row()(scores, relevant * 0))


def test_yes_and_no_are_relevance_too() -> None:
    scores, relevant = some(np.random.default_rng(0), 9)
    assert ranking.MAP()(scores, relevant == 1) == ranking.MAP()(scores, relevant * 1.0)


def test_average_precision_of_a_few_is_of_those_that_could_be_there() -> None:
    scores, relevant = np.asarray([[4.0, 3.0, 2.0, 1.0]]), np.asarray([[1, 0, 1, 1]])
    assert ranking.MAP(2)(scores, relevant) == 0.5


def test_wrong_orders_are_told() -> None:
    with pytest.raises(PhloxError, match=r"\[NDCG\] shapes differ"):
        ranking.NDCG()(np.zeros((2, 3)), np.zeros((2, 4), np.int64))
    with pytest.raises(PhloxError, match=r"MAP.k makes no sense: got 0"):
        ranking.MAP(0)
    with pytest.raises(PhloxError, match=r"\[Rand\] clusters are out of range: got 2, expected 0"):
        clusters.Rand(2, 2)(np.asarray([2]), np.asarray([0]))
    assert np.isnan(ranking.MRR()(np.asarray([[np.nan, 1.0]]), np.asarray([[1, 0]])))
    assert np.isnan(clusters.Rand(2, 2)(np.zeros(0, np.int64), np.zeros(0, np.int64)))
