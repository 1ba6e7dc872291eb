"""A step is the same wherever its gradients come from, and whatever history they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, nn, optim

WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "backward": lambda loss, model: loss(model).backward(),
    "dict": lambda loss, model: nn.gradients_of(px.grad(loss)(model)),
    "grad": lambda loss, model: px.grad(loss)(model),
    "value_and_grad": lambda loss, model: px.value_and_grad(loss)(model)[1],
}
CLIPPINGS = [None, optim.ClipByGlobalNorm(0.01), optim.ClipByNorm(0.01), optim.ClipByValue(0.01)]
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def weights(device: Any, way: str, clipping: Any, divide_by: float) -> list[Any]:
    """What two steps make of a model on a device, with normalization."""

    def loss(model: Any) -> px.Tensor:
        return model(px.asarray(X, device=device)).square().mean()

    px.seed(0)
    parts = nn.Linear(3, 4, device=device), nn.BatchNorm(4, device=device)
    model: Any = nn.Sequential(*parts, nn.Linear(4, 2, device=device)).with_training(True)
    optimizer = optim.AdamConfig(weight_decay=0.1, grad_clipping=clipping).init()
    for _ in range(2):
        model = optimizer.step(0.1, model, WAYS[way](loss, model), divide_by=divide_by)
    states: Any = optimizer.into_record()["states"]
    assert not any(state["first"].requires_grad for state in states.values())
    if way == "dict":  # which brings no statistics
        return [p.value.detach().numpy() for p in model.param_list() if p.trainable]
    return [p.value.detach().numpy() for p in model.param_list()]


@pytest.mark.parametrize("divide_by", [1.0, 2.0])
@pytest.mark.parametrize("clipping", CLIPPINGS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("way", sorted(WAYS))
def test_devices_and_ways_to_gradients_agree(way: str, clipping: Any, divide_by: float) -> None:
    devices: list[Any] = [Autodiff(Cpu()), Autodiff(Autodiff(Cpu()))]
    if way != "backward":
        devices.append(Cpu())
    want = weights(Cpu(), "dict" if way == "dict" else "grad", clipping, divide_by)
    for device in devices:
        for one, other in zip(weights(device, way, clipping, divide_by), want, strict=True):
            assert np.array_equal(one, other), device


def test_a_gradient_with_a_history_is_a_constant_of_the_step() -> None:
    device = Autodiff(Cpu())
    model = nn.Linear(2, 1, bias=False, device=device)
    kept = model.weight.value * 2.0
    assert kept.requires_grad
    out = optim.SgdConfig().init().step(1.0, model, {model.weight.id: kept})
    first = model.weight.value.detach().numpy()
    assert np.allclose(out.weight.value.detach().numpy(), -first, rtol=1e-6)
