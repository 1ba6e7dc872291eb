"""Layers, losses and rules on rows of 1e20 and at infinite distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn, optim

BACKENDS = [px.Cpu(), px.Numpy()]


@pytest.mark.parametrize("device", BACKENDS, ids=str)
@pytest.mark.parametrize("kind", [nn.HuberLoss, nn.SmoothL1Loss])
def test_an_infinite_distance_has_the_slope_of_those_beyond_the_bend(
    kind: Any, device: px.Backend
) -> None:
    x = px.asarray([np.inf, -np.inf, 3.0, 0.5, 0.0], dtype="float32", device=device)
    loss = kind(reduction="sum")
    slopes = px.grad(lambda x: loss(x, px.zeros_like(x)))(x)
    assert slopes.tolist() == [1.0, -1.0, 1.0, 0.5, 0.0]
    second = px.grad(lambda x: px.grad(lambda x: loss(x, px.zeros_like(x)))(x).sum())(x)
    assert np.abs(second.numpy()).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("device", BACKENDS, ids=str)
def test_cosines_of_far_rows_are_those_of_near_ones(device: px.Backend) -> None:
    near = px.asarray([[1.0, 2.0], [3.0, -1.0]], dtype="float32", device=device)
    for factor in (1e20, 1e-3):
        far = near * factor
        assert np.allclose(nn.CosineSimilarity()(far, far).tolist(), 1.0)
        assert np.allclose(
            nn.CosineSimilarity()(far, near[0]).tolist(),
            nn.CosineSimilarity()(near, near[0]).tolist(),
            atol=1e-6,
        )
        one = px.ones(2, device=device)
        assert abs(nn.CosineEmbeddingLoss()(far, far, one).item()) < 1e-6


def test_muon_steps_by_gradients_of_any_size() -> None:
    model = nn.Linear(2, 3, bias=False)
    grad = px.asarray([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    steps = [
        optim.MuonConfig().init().step(0.1, model, {model.weight.id: grad * factor})
        for factor in (1.0, 1e20)
    ]
    first, far = (step.weight.value.numpy() for step in steps)
    assert np.allclose(first, far, atol=1e-5)
    assert not np.allclose(first, model.weight.value.numpy() * (1 - 0.01), atol=1e-3)
