"""Each rule for the next token against plain NumPy, and against transformers where it is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Cpu, Numpy, Wgpu
from phlox_nn.generation.sampling import Sampling, numbers_of

RNG = np.random.default_rng(11)
LOGITS = RNG.normal(0.0, 3.0, (4, 57)).astype(np.float32)
SEEN = RNG.random((4, 57)) < 0.3
RULES = [
    Sampling(temperature=0.7),
    Sampling(top_k=1),
    Sampling(top_k=9),
    Sampling(top_k=500),
    Sampling(top_p=0.8),
    Sampling(top_p=0.01),
    Sampling(top_p=1.0),
    Sampling(min_p=0.1),
    Sampling(min_p=1.0),
    Sampling(repetition_penalty=1.3),
    Sampling(repetition_penalty=0.8, temperature=1.5, top_k=20, top_p=0.9, min_p=0.02),
]


def plain(rules: Sampling, row: Any, seen: Any) -> Any:
    """What is left of one row of logits, token by token."""
    row = [float(x) for x in row]
    factor = rules.repetition_penalty
    row = [
        (x * factor if x < 0 else x / factor) if s else x for x, s in zip(row, seen, strict=True)
    ]
    row = [x / rules.temperature for x in row]
    order = sorted(range(len(row)), key=lambda i: -row[i])
    left = set(order[: rules.top_k])
    if rules.top_p is not None:
        weights = {i: np.exp(row[i] - row[order[0]]) for i in left}
        before, whole = 0.0, sum(weights.values())
        for i in order:
            if i in left:
                if before >= rules.top_p:
                    left.discard(i)
                before += weights[i] / whole
    if rules.min_p is not None:
        most = row[order[0]]
        left = {i for i in left if np.exp(row[i] - most) >= rules.min_p}
    return np.array([x if i in left else -np.inf for i, x in enumerate(row)])


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("device", [Numpy(), Cpu(), Wgpu()], ids=str)
def test_what_is_left_of_logits_is_what_numpy_leaves(rules: Sampling, device: Any) -> None:
    seen = px.asarray(SEEN, device=device)
    got = rules.scores(px.asarray(LOGITS, device=device), seen).numpy()
    want = np.stack([plain(rules, *pair) for pair in zip(LOGITS, SEEN, strict=True)])
    assert np.array_equal(np.isinf(got), np.isinf(want))
    kept = ~np.isinf(want)
    assert np.allclose(got[kept], want[kept], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_draw_is_where_the_sum_of_shares_passes_the_number(rules: Sampling) -> None:
    numbers = np.array([0.0, 0.25, 0.75, 1 - 2.0**-23], np.float32)
    for device in (Numpy(), Cpu(), Wgpu()):
        tensors = [px.asarray(x, device=device) for x in (LOGITS, numbers, SEEN)]
        got = rules.chosen(*tensors).numpy()
        for token, row, seen, number in zip(got, LOGITS, SEEN, numbers, strict=True):
            left = plain(rules, row, seen)
            shares = np.exp(left - left.max())
            sums = np.cumsum(shares / shares.sum())
            assert shares[token] > 0.0
            assert (sums[token - 1] if token else 0.0) <= number + 1e-6
            assert number <= sums[token] + 1e-6


def test_a_temperature_of_zero_takes_the_likeliest_after_the_penalty() -> None:
    logits = px.asarray([[3.0, 2.5, -1.0], [3.0, 2.5, -1.0]])
    seen = px.asarray([[True, False, False], [False, False, True]])
    numbers = px.zeros((2,))
    rules = Sampling(repetition_penalty=2.0, temperature=0.0)
    assert rules.chosen(logits, numbers, seen).tolist() == [1, 0]
    assert Sampling(temperature=0.0).chosen(logits, numbers).tolist() == [0, 0]


def test_the_least_temperature_takes_the_likeliest() -> None:
    logits, numbers = px.asarray([[-1.0, 400.0, 399.0]]), px.asarray([0.9])
    assert Sampling(temperature=1e-45).chosen(logits, numbers).tolist() == [1]


def test_half_logits_are_summed_in_full_precision() -> None:
    words = 40_000  # shares of 1 / words would vanish beside a sum in float16
    logits = px.zeros((1, words), dtype="float16")
    for number in (0.2, 0.7):
        token = Sampling().chosen(logits, px.asarray([number])).item()
        assert abs(token / words - number) < 1e-3


def test_numbers_follow_from_seed_request_and_position() -> None:
    numbers = numbers_of(5, 3, 8)
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    assert len(np.unique(numbers)) == numbers.size
    assert np.array_equal(numbers_of(5, 3, 20)[:, :8], numbers)
    assert np.array_equal(numbers_of([9, 5], 2, 8)[1], numbers[0])
    # The first draw of seed 0, so that answers stay from version to version.
    assert (
        numbers_of(0, 1, 1)[0, 0] == np.float32(np.random.Philox(key=0).random_raw() >> 41) / 2**23
    )
    px.seed(1)
    first = numbers_of(None, 1, 4)
    again = numbers_of(None, 1, 4)
    px.seed(1)
    assert np.array_equal(numbers_of(None, 1, 4), first)
    assert not np.array_equal(first, again)


def test_rules_without_a_choice_are_refused() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"temperature": -1.0}, "no choice"),
        ({"temperature": float("nan")}, "no choice"),
        ({"temperature": float("inf")}, "no choice"),
        ({"temperature": "0.8"}, "temperature is no number: got '0.8', expected a number"),
        ({"repetition_penalty": "1"}, "repetition_penalty is no number"),
        ({"top_k": 2.5}, "top_k is no number: got 2.5, expected a whole number"),
        ({"top_k": 0}, "no choice"),
        ({"top_p": 0.0}, "top_p is no share"),
        ({"min_p": 1.5}, "min_p is no share"),
        ({"repetition_penalty": 0.0}, "repetition_penalty is no factor"),
    ]
    for wrong, said in refused:
        with pytest.raises(px.ArgumentError, match=said):
            Sampling(**wrong)
    with pytest.raises(px.ArgumentError, match="not a seed for each text: got 2 for 3"):
        numbers_of([1, 2], 3, 4)


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES, ids=str)
def test_what_is_left_of_logits_is_what_transformers_leaves(rules: Sampling) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    made: Any = pytest.importorskip("transformers", reason="transformers is not installed")
    steps: list[Any] = []
    if rules.repetition_penalty != 1.0:
        steps.append(made.RepetitionPenaltyLogitsProcessor(rules.repetition_penalty))
    steps.append(made.TemperatureLogitsWarper(rules.temperature))
    if rules.top_k is not None:
        steps.append(made.TopKLogitsWarper(rules.top_k))
    if rules.top_p is not None:
        steps.append(made.TopPLogitsWarper(rules.top_p))
    if rules.min_p is not None:
        steps.append(made.MinPLogitsWarper(rules.min_p))
    for row, seen in zip(LOGITS, SEEN, strict=True):
        ids, want = torch.tensor(np.flatnonzero(seen))[None], torch.tensor(row)[None]
        for step in steps:
            want = step(ids, want)
        got = rules.scores(px.asarray(row[None]), px.asarray(seen[None])).numpy()
        assert np.array_equal(np.isinf(got), np.isinf(want.numpy()))
        assert np.allclose(got, want.numpy(), rtol=1e-6, atol=1e-6)
