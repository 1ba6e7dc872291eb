"""Errors of numbers beside scikit-learn and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from phlox_tensor import ShapeError, asarray
from phlox_train.metrics import moments, orders, regression, signals

Check = Callable[..., None]
Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
sk: Any = import_module("sklearn.metrics")
stats: Any = import_module("scipy.stats")
special: Any = import_module("scipy.special")


def pair(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    targets = chance.normal(3, 2, count)
    return targets + chance.normal(0, 1, count), targets


def columns(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    targets = chance.normal(3, 2, (count, 3))
    return targets + chance.normal(0, 1, (count, 3)), targets


def positive(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    return chance.gamma(2, 1, count) + 0.01, chance.gamma(2, 1, count) + 0.01


def counts(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    return chance.gamma(2, 1, count) + 0.01, chance.poisson(1, count).astype(np.float64)


def tied(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    wide = int(chance.integers(3, 30))
    drawn = [np.r_[0, 1, chance.integers(0, wide, count)] for _ in range(2)]
    return drawn[0].astype(np.float64), drawn[1].astype(np.float64)


def shares(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    return chance.dirichlet(np.ones(4), count), chance.dirichlet(np.ones(4) / 2, count)


def deviance(power: float) -> Callable[..., Any]:
    return lambda p, t: sk.mean_tweedie_deviance(t, p, power=power)


def concordance(p: Any, t: Any) -> Any:
    slope, r = np.std(t) / np.std(p), stats.pearsonr(p, t)[0]
    bias = (np.mean(p) - np.mean(t)) ** 2 / (np.std(p) * np.std(t))
    return 2 * r / (slope + 1 / slope + bias)  # Lin's r times his C_b


def loud(x: Any) -> Any:
    return 20 * np.log10(np.linalg.norm(x, axis=1))


def decibels(p: Any, t: Any) -> Any:
    """The angle between both says it as well."""
    cosine = np.diag(sk.pairwise.cosine_similarity(p, t))
    return np.mean(-20 * np.log10(np.tan(np.arccos(np.abs(cosine)))))


ROWS: list[tuple[Any, Draw, Callable[..., Any]]] = [
    (regression.MeanSquaredError(), pair, lambda p, t: sk.mean_squared_error(t, p)),
    (regression.MeanSquaredError(), columns, lambda p, t: sk.mean_squared_error(t, p)),
    (regression.RootMeanSquaredError(), pair, lambda p, t: sk.root_mean_squared_error(t, p)),
    (regression.MeanAbsoluteError(), pair, lambda p, t: sk.mean_absolute_error(t, p)),
    (
        regression.MeanAbsolutePercentageError(),
        pair,
        lambda p, t: sk.mean_absolute_percentage_error(t, p),
    ),
    (
        regression.SymmetricMeanAbsolutePercentageError(),
        pair,
        lambda p, t: 2 * np.mean(stats.hmean([1 / np.abs(t), 1 / np.abs(p)]) * np.abs(p - t)) / 2,
    ),
    (
        regression.WeightedMeanAbsolutePercentageError(),
        pair,
        lambda p, t: sk.mean_absolute_error(t, p) / sk.mean_absolute_error(t, 0 * t),
    ),
    (regression.MeanSquaredLogError(), positive, lambda p, t: sk.mean_squared_log_error(t, p)),
    (regression.LogCosh(), pair, lambda p, t: np.mean(np.log(np.cosh(p - t)))),
    (regression.Pinball(0.3), pair, lambda p, t: sk.mean_pinball_loss(t, p, alpha=0.3)),
    (regression.TweedieDeviance(), pair, deviance(0)),
    (regression.TweedieDeviance(1.0), counts, deviance(1)),
    (regression.TweedieDeviance(1.5), counts, deviance(1.5)),
    (regression.TweedieDeviance(2.0), positive, deviance(2)),
    (regression.TweedieDeviance(3.0), positive, deviance(3)),
    (
        regression.CosineSimilarity(),
        columns,
        lambda p, t: np.mean(np.diag(sk.pairwise.cosine_similarity(p, t))),
    ),
    (
        regression.KLDivergence(),
        shares,
        lambda p, t: np.mean(special.rel_entr(t, p).sum(axis=1)),
    ),
    (moments.ConcordanceCorrelation(), pair, concordance),
    (moments.ExplainedVariance(), pair, lambda p, t: sk.explained_variance_score(t, p)),
    (moments.ExplainedVariance(), columns, lambda p, t: sk.explained_variance_score(t, p)),
    (moments.PearsonCorrelation(), pair, lambda p, t: stats.pearsonr(p, t)[0]),
    (moments.R2(), pair, lambda p, t: sk.r2_score(t, p)),
    (moments.R2(), columns, lambda p, t: sk.r2_score(t, p)),
    (signals.ScaleInvariantSDR(), columns, decibels),
    (signals.SignalNoiseRatio(), columns, lambda p, t: np.mean(loud(t) - loud(t - p))),
    (signals.Average("p", "t"), positive, lambda p, t: np.average(p, weights=t)),
    (orders.KendallCorrelation(), tied, lambda p, t: stats.kendalltau(p, t)[0]),
    (orders.KendallCorrelation(), pair, lambda p, t: stats.kendalltau(p, t)[0]),
    (orders.MedianAbsoluteError(), pair, lambda p, t: sk.median_absolute_error(t, p)),
    (orders.SpearmanCorrelation(), tied, lambda p, t: stats.spearmanr(p, t)[0]),
]


@pytest.mark.parametrize(
    ("metric", "draw", "oracle"), ROWS, ids=[f"{row[0].name}-{row[1].__name__}" for row in ROWS]
)
def test_errors_are_those_of_others(
    metric: Any, draw: Draw, oracle: Callable[..., Any], check: Check
) -> None:
    check(metric, draw, oracle)


def test_moments_far_from_zero_do_not_cancel() -> None:
    p, t = pair(np.random.default_rng(0), 50)
    state = None
    for part in range(0, 50, 10):
        both = np.stack([p, t])[:, part : part + 10, None] + 1e8
        state = moments.R2().merge(state, {"variables": both})
    assert state is not None
    assert abs(moments.R2().value(state) - sk.r2_score(t, p)) < 1e-6


def test_what_is_undefined_is_nan() -> None:
    one, flat = np.asarray([1.0]), np.asarray([2.0, 2.0])
    assert np.isnan(moments.R2()(one, one))
    assert np.isnan(moments.R2()(np.asarray([1.0, 2.0]), flat))
    assert np.isnan(moments.ExplainedVariance()(np.asarray([1.0, 2.0]), flat))
    assert np.isnan(moments.PearsonCorrelation()(flat, flat))
    assert np.isnan(orders.KendallCorrelation()(flat, flat))
    assert np.isnan(orders.SpearmanCorrelation()(one[:0], one[:0]))
    assert np.isnan(regression.MeanSquaredError()(one[:0], one[:0]))
    assert np.isnan(regression.TweedieDeviance(1.0)(np.asarray([-1.0]), one))


def test_zeros_are_no_errors_in_per_cent() -> None:
    zero, one = np.asarray([0.0, 1.0]), np.asarray([0.0, 2.0])
    assert regression.MeanAbsolutePercentageError()(zero, one) == 0.25
    assert regression.SymmetricMeanAbsolutePercentageError()(zero, zero) == 0
    assert regression.MeanAbsolutePercentageError()(one, zero * 0) == np.inf


@pytest.mark.parametrize(
    "row", [regression.MeanSquaredError(), moments.R2(), orders.MedianAbsoluteError()]
)
def test_shapes_that_differ_are_refused(row: Any) -> None:
    with pytest.raises(
        ShapeError, match=r"shapes differ: got predictions \(2,\), targets \(2, 1\)"
    ):
        row.part(asarray([1.0, 2.0]), asarray([[1.0], [2.0]]))


def test_integers_are_numbers_too() -> None:
    small = np.asarray([100, 200], np.uint8)
    whole, more = np.arange(5), np.asarray([0.0, 1.0, 2.0, 4.0, 3.0])
    for row in (regression.MeanSquaredError(), regression.CosineSimilarity(), moments.R2()):
        assert row(whole, more) == row(whole * 1.0, more)
    assert regression.MeanSquaredError()(small, small[::-1]) == 10_000
    assert orders.MedianAbsoluteError()(small, small + 1) == 1
    assert np.isnan(regression.KLDivergence()(-more[None], more[None]))


def test_orders_of_nan_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[SpearmanCorrelation\] predictions are not numbers"):
        orders.SpearmanCorrelation()(np.asarray([1.0, np.nan]), np.asarray([1.0, 2.0]))
