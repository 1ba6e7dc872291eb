"""The last product and its loss in one: the same numbers in less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_kernels import Cpu, _native

RNG = np.random.default_rng(0)
TRAIN = px.Autodiff(Cpu())


def operands(rows: int, size: int, classes: int) -> list[Any]:
    x = RNG.standard_normal((rows, size)).astype(np.float32)
    weight = RNG.standard_normal((size, classes)).astype(np.float32) / 8
    targets = px.asarray(RNG.integers(0, classes, rows), device=TRAIN)
    return [*(px.asarray(a, device=TRAIN).require_grad() for a in (x, weight)), targets]


def measured(loss: Any, x: Any, weight: Any, targets: Any) -> tuple[int, list[Any]]:
    """Bytes that a loss and its slopes need at most, and what they are."""
    TRAIN.sync()
    before = Cpu().memory().current
    _native._reset_peak()
    value = loss(x, weight, targets)
    grads = value.backward()
    found = [value.numpy(), x.grad(grads).numpy(), weight.grad(grads).numpy()]
    return Cpu().memory().peak - before, found


def test_values_and_slopes_are_those_of_the_pair_in_a_third_of_the_memory() -> None:
    given = operands(1536, 32, 20_000)
    pair, want = measured(lambda x, w, n: nn.CrossEntropyLoss()(x @ w, n), *given)
    one, found = measured(nn.LinearCrossEntropyLoss(rows=128), *given)
    for a, b in zip(found, want, strict=True):
        assert np.abs(a - b).max() < 1e-6
    assert one <= 0.3 * pair


def test_compiled_and_of_second_order() -> None:
    x, weight, targets = operands(10, 4, 6)
    loss = nn.LinearCrossEntropyLoss(rows=4)

    def second(loss: Any) -> Any:
        slope = px.grad(loss)
        return px.grad(lambda v: slope(v).square().sum())(x.detach().to_device(Cpu()))

    w, n = weight.detach().to_device(Cpu()), targets.to_device(Cpu())
    found = second(lambda v: loss(v, w, n)).numpy()
    want = second(lambda v: nn.CrossEntropyLoss()(v @ w, n)).numpy()
    assert np.abs(found - want).max() < 1e-6

    @px.compile
    def step(x: Any, weight: Any, targets: Any) -> Any:
        value = loss(x, weight, targets)
        return value, x.grad(value.backward())

    value, slope = [step(x, weight, targets) for _ in range(3)][-1]
    plain = nn.CrossEntropyLoss()(x @ weight, targets)
    assert abs(value.item() - plain.item()) < 1e-6
    assert np.abs(slope.numpy() - x.grad(plain.backward()).numpy()).max() < 1e-6


def test_an_empty_batch_and_what_does_not_fit() -> None:
    x, weight, targets = operands(4, 4, 6)
    none = nn.LinearCrossEntropyLoss(reduction="sum")(x[:0], weight, targets[:0])
    assert none.item() == 0.0
    for wrong in ((x, weight.mT, targets), (x, weight, targets[:3]), (x[:, :2], weight, targets)):
        with pytest.raises(px.ShapeError, match="do not fit"):
            nn.LinearCrossEntropyLoss()(*wrong)
    with pytest.raises(px.IndexOutOfRangeError, match="got 6, expected 0 to 5"):
        nn.LinearCrossEntropyLoss()(x, weight, targets * 0 + 6)
    with pytest.raises(nn.ConfigError, match="rows"):
        nn.LinearCrossEntropyLoss(rows=0)
