"""Random numbers against their distributions: moments here, Kolmogorov and Smirnov's test long."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, erf, erfc, exp, factorial, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, DTypeError, KindError, ShapeError, Tensor, random

Array = np.ndarray[Any, Any]
MANY = 20_000


@pytest.fixture(autouse=True)
def _seeded() -> None:
    pt.seed(11)


def erlang(k: int) -> Callable[[float], float]:
    return lambda x: 1 - sum(exp(-x) * x**i / factorial(i) for i in range(k))


def whole_beta(a: int, b: int) -> Callable[[float], float]:
    n = a + b - 1
    return lambda x: sum(comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))


def phi(x: float) -> float:
    return (1 + erf(x / sqrt(2))) / 2


# By name: how to draw, the distribution function, mean and variance.
CONTINUOUS: dict[str, tuple[Callable[[int], Any], Callable[[float], float], float, float]] = {
    "beta 0.5 0.5": (
        lambda n: random.beta(n, 0.5, 0.5),
        lambda x: 2 / pi * np.arcsin(sqrt(x)), 0.5, 0.125,
    ),
    "beta 2 3": (lambda n: random.beta(n, 2.0, 3.0), whole_beta(2, 3), 0.4, 0.04),
    "exponential": (lambda n: random.exponential(n, 2.0), lambda x: 1 - exp(-x / 2), 2.0, 4.0),
    "gamma 0.5": (lambda n: random.gamma(n, 0.5), lambda x: erf(sqrt(x)), 0.5, 0.5),
    "gamma 1": (lambda n: random.gamma(n, 1.0), erlang(1), 1.0, 1.0),
    "gamma 7 of scale 2": (
        lambda n: random.gamma(n, 7.0, 2.0), lambda x: erlang(7)(x / 2), 14.0, 28.0,
    ),
    "normal from -1 to 2": (
        lambda n: random.truncated_normal(n, -1.0, 2.0),
        lambda x: (phi(x) - phi(-1)) / (phi(2) - phi(-1)), 0.2296, 0.5197,
    ),
}  # fmt: skip
RATES = [0.3, 4.0, 9.9, 10.0, 33.0, 400.0]


def distance(drawn: Array, function: Callable[[float], float]) -> float:
    """The largest gap between the two distribution functions."""
    line = np.sort(drawn.astype(np.float64))
    want = np.array([function(float(x)) for x in line])
    n = len(line)
    return float(max((np.arange(1, n + 1) / n - want).max(), (want - np.arange(n) / n).max()))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_mean_and_variance(name: str) -> None:
    draw, _, mean, variance = CONTINUOUS[name]
    x = draw(MANY).numpy().astype(np.float64)
    assert x.mean() == pytest.approx(mean, abs=5 * sqrt(variance / MANY))
    assert x.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_distribution_function(name: str, dtype: str) -> None:
    """A right one fails once in 10⁶ seeds: Kolmogorov's bound is 2.7/√n there."""
    draw, function, _, _ = CONTINUOUS[name]
    with pt.use_device(pt.Numpy(float=dtype)):
        count = 200_000
        x = draw(count)
    assert x.dtype.name == dtype
    assert distance(x.numpy(), function) < 2.7 / sqrt(count)


def poisson_pmf(rate: float, top: int) -> Array:
    return np.array([exp(k * log(rate) - rate - lgamma(k + 1)) for k in range(top)])


@pytest.mark.parametrize("rate", RATES)
def test_counts_of_events(rate: float) -> None:
    x = random.poisson(MANY, rate)
    assert x.dtype is x.device.default_int
    counts = x.numpy().astype(np.float64)
    assert counts.mean() == pytest.approx(rate, abs=5 * sqrt(rate / MANY))
    assert counts.var() == pytest.approx(rate, rel=0.1)
    mixed = random.poisson((MANY,), pt.full((MANY,), rate)).numpy()
    assert mixed.mean() == pytest.approx(rate, abs=5 * sqrt(rate / MANY))


@pytest.mark.parametrize("rate", [1e6, 1e7, 1e12])
def test_counts_of_large_rates_spread_as_their_root(rate: float) -> None:
    one, each = random.poisson(MANY, rate), random.poisson(MANY, pt.full(MANY, rate))
    for drawn in (one.numpy().astype(np.float64), each.numpy().astype(np.float64)):
        held = np.float64(np.float32(rate))
        assert drawn.mean() == pytest.approx(held, abs=5 * sqrt(rate / MANY))
        assert drawn.var() == pytest.approx(rate, rel=0.06)  # whose deviation is 0.01
        assert {*(drawn % 2)} == {0.0, 1.0}


@pytest.mark.parametrize("a", [1e-3, 0.01])
def test_small_parameters_of_beta_leave_nothing_out(a: float) -> None:
    for drawn in (random.beta(MANY, a, a), random.beta(MANY, pt.full(MANY, a), pt.asarray(a))):
        x = drawn.numpy().astype(np.float64)
        assert x.mean() == pytest.approx(0.5, abs=5 * 0.5 / sqrt(MANY))
        assert x.var() == pytest.approx(0.25 / (1 + 2 * a), rel=0.02)


@pytest.mark.parametrize(("low", "high"), [(4.5, 6.0), (-7.0, -5.0), (2.0, np.inf)])
def test_normal_numbers_far_out_are_as_fine_as_others(low: float, high: float) -> None:
    def tail(x: float) -> float:
        return erfc(abs(x) / sqrt(2))

    x = random.truncated_normal(MANY, low, high).numpy()
    assert low <= x.min() <= x.max() <= high
    assert len({*x.tolist()}) > 0.9 * MANY
    ends = tail(low), tail(high)
    middle = float(np.median(x))
    part = (tail(middle) - min(ends)) / abs(ends[1] - ends[0])
    assert part == pytest.approx(0.5, abs=5 * 0.5 / sqrt(MANY))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_waits_are_drawn_in_full_precision(dtype: str) -> None:
    x = random.exponential(MANY, dtype=dtype).astype("float32").numpy()
    assert (x > 0).all()
    assert x.max() > 7
    assert x.mean() == pytest.approx(1, abs=5 / sqrt(MANY) + 2**-9)


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
def test_counts_of_events_have_their_probabilities(rate: float) -> None:
    """The statistic has mean k and variance 2k: six deviations."""
    count = 400_000
    top = int(rate + 12 * sqrt(rate) + 20)
    seen = np.bincount(random.poisson(count, rate).numpy(), minlength=top)[:top]
    want = poisson_pmf(rate, top) * count
    likely = want > 20
    score = float(((seen - want)[likely] ** 2 / want[likely]).sum())
    k = int(likely.sum())
    assert score < k + 6 * sqrt(2 * k)


def test_categories_come_as_often_as_they_should() -> None:
    weights = np.array([0.0, 1.0, 3.0, 6.0])
    logits = pt.asarray(np.log(np.maximum(weights, 1e-300)).clip(-1e30), dtype="float32")
    logits = pt.where(logits < -1e3, -np.inf, logits)
    for drawn in (
        random.categorical(logits, MANY),
        random.multinomial(pt.asarray(weights), MANY),
        random.choice(pt.arange(4), MANY, weights=pt.asarray(weights)),
    ):
        part = np.bincount(drawn.numpy(), minlength=4) / MANY
        np.testing.assert_allclose(part, weights / 10, atol=5 * 0.5 / sqrt(MANY))
        assert part[0] == 0


def test_draws_of_weights_keep_to_lines_and_to_weights_above_0() -> None:
    weights = np.zeros((3, 2000), np.float32)
    weights[0, ::7], weights[1, 1500:1503], weights[2, 3] = 1e-3, 1e38, 5e-39
    drawn = random.multinomial(pt.asarray(weights), 4000).numpy()
    assert all((line[places] > 0).all() for line, places in zip(weights, drawn, strict=True))
    part = np.bincount(drawn[1] - 1500, minlength=3) / 4000
    np.testing.assert_allclose(part, 1 / 3, atol=5 * 0.5 / sqrt(4000))
    assert len({*drawn[0].tolist()}) > 250


def test_shapes_of_draws() -> None:
    logits = pt.zeros((2, 5, 3))
    assert random.categorical(logits).shape == (2, 5)
    assert random.categorical(logits, (7,), axis=1).shape == (7, 2, 3)
    assert random.multinomial(pt.ones((2, 5)), 4).shape == (2, 4)
    assert random.choice(pt.ones((6, 2)), (3, 1)).shape == (3, 1, 2)
    assert random.choice(pt.ones(6)).shape == ()
    assert random.gamma((4, 2), pt.asarray([0.5, 2.0])).shape == (4, 2)
    assert random.truncated_normal(3, dtype="float16").dtype is pt.float16


def test_without_replacement_nothing_comes_twice() -> None:
    rows = random.multinomial(pt.ones((50, 8)), 8, replacement=False).numpy()
    assert all(sorted(row) == list(range(8)) for row in rows)
    picked = random.choice(pt.arange(30), 30, replacement=False).numpy()
    assert sorted(picked) == list(range(30))
    assert picked.tolist() != list(range(30))
    heavy = pt.asarray([0.0, 5.0, 5.0])
    assert all(
        set(random.multinomial(heavy, 2, replacement=False).tolist()) == {1, 2} for _ in range(20)
    )


def test_what_is_not_drawn_is_not_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    pt.seed(4)
    order = random.permutation(60).tolist()
    monkeypatch.delattr(Tensor, "argsort")
    pt.seed(4)
    assert random.choice(pt.arange(60), 7, replacement=False).tolist() == order[:7]
    assert random.choice(pt.arange(60), 0, replacement=False).shape == (0,)
    assert random.multinomial(pt.ones((3, 60)), 7, replacement=False).shape == (3, 7)


def test_several_draws_of_categories_take_a_number_each() -> None:
    before = random.generator().state()[1]
    drawn = random.categorical(pt.zeros((2, 1000)), (4, 5))
    assert drawn.shape == (4, 5, 2)
    assert random.generator().state()[1] - before == 10  # 40 numbers, four in a block
    lines = np.array([[0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    with np.errstate(divide="ignore"):
        logits = pt.asarray(np.log(lines).astype(np.float32).T + 200)
    found = random.categorical(logits, (MANY,), axis=0).numpy()
    for line, places in zip(lines, found.T, strict=True):
        part = np.bincount(places, minlength=3) / MANY
        np.testing.assert_allclose(part, line, atol=5 * 0.5 / sqrt(MANY))
    np.testing.assert_array_equal(random.categorical(logits.T, (4,))[:, 1].numpy(), 1)


def test_the_same_seed_gives_the_same_numbers() -> None:
    def all_of_them() -> list[list[Any]]:
        pt.seed(5)
        return [
            random.gamma(4, 0.7).tolist(), random.poisson(4, 50.0).tolist(),
            random.categorical(pt.zeros(9), 4).tolist(), random.exponential(4).tolist(),
            random.gumbel_softmax(pt.zeros(4)).tolist(),
        ]  # fmt: skip

    assert all_of_them() == all_of_them()


def test_bounds_hold() -> None:
    x = random.truncated_normal(MANY, 3.0, 3.5, std=1.0).numpy()
    assert 3.0 <= x.min() <= x.max() <= 3.5
    assert random.exponential(MANY).min().item() >= 0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: random.exponential(3, -1.0), ArgumentError, "scale >= 0"),
        (lambda: random.truncated_normal(3, 2.0, 1.0), ArgumentError, "low < high"),
        (lambda: random.truncated_normal(3, 18.0, 19.0), ArgumentError, "10 std"),
        (lambda: random.gamma(3, 2.0, dtype="int32"), KindError, r"\[gamma\] not a float"),
        (lambda: random.poisson(3, 1.0, dtype="float32"), KindError, "not an integer type"),
        (lambda: random.poisson(3, 300.0, dtype="uint8"), DTypeError, "<= 255, which uint8 holds"),
        (lambda: random.poisson(3, pt.full(3, 1e9), dtype="int8"), DTypeError, "int8 holds"),
        (lambda: random.poisson(3, -1.0), ArgumentError, "rate < inf"),
        (lambda: random.gamma(3, pt.ones(2)), ShapeError, "broadcast"),
        (lambda: random.multinomial(pt.ones(2), 3, replacement=False), ArgumentError, "3 of 2"),
        (lambda: random.choice(pt.ones(0)), ShapeError, "nothing to draw"),
        (lambda: random.choice(pt.ones(2), weights=pt.ones(3)), ShapeError, "weights"),
        (lambda: random.categorical(pt.asarray(1.0)), ShapeError, "no categories"),
        (lambda: random.gumbel_softmax(pt.ones(2), 0.0), ArgumentError, "temperature"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.gamma(3, -1.0),
        lambda: random.gamma(3, 1.0, -2.0),
        lambda: random.beta(3, 0.0, 1.0),
        lambda: random.beta(3, 1.0, -1.0),
    ],
)
def test_a_parameter_that_no_distribution_has_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match=r"> 0|>= 0"):
        call()


NONE = float("nan")
ENDLESS = float("inf")


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.categorical(pt.asarray([NONE, 1.0])),
        lambda: random.categorical(pt.asarray([[0.0, 1.0], [-ENDLESS, -ENDLESS]])),
        lambda: random.categorical(pt.asarray([ENDLESS, 1.0])),
        lambda: random.choice(pt.arange(2), (3,), weights=pt.asarray([-1.0, 2.0])),
        lambda: random.multinomial(pt.asarray([-1.0, 2.0]), 3),
        lambda: random.multinomial(pt.asarray([1.0, 0.0]), 2, replacement=False),
        lambda: random.multinomial(pt.asarray([ENDLESS, 2.0]), 3),
        lambda: random.multinomial(pt.asarray([NONE, 2.0]), 3),
        lambda: random.multinomial(pt.zeros((2, 3)), 3),
        lambda: random.poisson((2,), ENDLESS),
        lambda: random.poisson((2,), pt.asarray([-1.0, 2.0])),
        lambda: random.poisson((2,), pt.asarray([NONE, 2.0])),
    ],
)
def test_numbers_that_no_draw_follows_are_refused_in_tensors_too(call: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match="out of range"):
        call()


def test_no_draws_and_no_lines_are_fine() -> None:
    assert random.multinomial(pt.ones((2, 3)), 0).shape == (2, 0)
    assert random.multinomial(pt.ones((0, 3)), 2).shape == (0, 2)
    assert random.categorical(pt.zeros((0, 3)), (4,)).shape == (4, 0)


def test_concentrations_that_no_distribution_has_give_nan() -> None:
    drawn = random.gamma(3, pt.asarray([-1.0, 0.0, 2.0])).isnan()
    assert drawn.tolist() == [True, True, False]
