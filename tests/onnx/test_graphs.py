"""Graphs that people ship train: their weights have gradients, and the loss falls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, optim
from tests.onnx.shipped import GRAPHS, shipped


def _from_coins(coins: Any, y: Any) -> Any:
    return -((y + 1e-6).log() * coins + (1 - y + 1e-6).log() * (1 - coins)).mean()


def _from_half(half: Any, y: Any) -> Any:
    return (y - half).square().mean() / float(half.square().mean())


def _loss_of(found: list[Any]) -> Callable[[list[Any]], Any]:
    """Shares are to become coins, as logits would; other outputs half of what they are."""
    rng = np.random.default_rng(1)
    terms = []
    for y in found:
        if float(y.min()) >= 0 and float(y.max()) <= 1:
            coins = (rng.random(y.shape) < 0.5).astype(np.float32)
            terms.append(partial(_from_coins, px.asarray(coins, device=y.device)))
        else:
            terms.append(partial(_from_half, y.detach() * 0.5))

    def loss(outputs: list[Any]) -> Any:
        parts = [term(y) for term, y in zip(terms, outputs, strict=True)]
        return sum(parts[1:], parts[0])

    return loss


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name, graph in GRAPHS.items() if graph.trains])
def test_a_graph_trains_for_twenty_steps(name: str) -> None:
    train = Autodiff(Cpu())
    model = px.onnx.load(shipped(name), device=train)
    rng = np.random.default_rng(0)
    inputs = [px.asarray(draw(rng), device=train) for draw in GRAPHS[name].inputs]

    def outputs() -> list[Any]:
        found = model(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        return [y for y in found if y.dtype.kind == "Float"]

    loss_of = _loss_of(outputs())
    rule, losses, silent = optim.AdamConfig().init(), [], 0
    for step in range(20):
        loss = loss_of(outputs())
        gradients = loss.backward()
        for path, param in {} if step else model.params(trainable=True).items():
            gradient = gradients.get(param.value)
            silent += gradient is None or not np.abs(gradient.numpy()).max()
            assert gradient is None or np.isfinite(gradient.numpy()).all(), path
        model = rule.step(1e-4, model, gradients)
        losses.append(float(loss))
    assert silent <= GRAPHS[name].silent
    assert losses[-1] < 0.9 * losses[0]
