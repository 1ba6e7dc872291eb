"""An optimizer rule of a user's own, compiled: one pass over each parameter, the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Tensor, nn, optim


class RootSign(optim.SimpleOptimizer):
    """Momentum, and a step by the signed root of it."""

    def step(
        self, lr: float, tensor: Tensor, grad: Tensor, state: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        speed = grad if state is None else state["speed"] * 0.9 + grad
        count = 1 if state is None else state["count"] + 1
        step = speed.sign() * speed.abs().sqrt() * (lr / count)
        return tensor - step, {"speed": speed, "count": count}


@pytest.mark.parametrize("base", [Cpu(), Numpy()], ids=repr)
def test_a_rule_of_a_users_own_is_one_program_for_each_parameter(base: Backend) -> None:
    device = Autodiff(base)
    with px.use_device(device):
        model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2, bias=False), nn.Linear(2, 1))
        x = px.random.normal((5, 3))
    slope = px.grad(lambda m: m(x).square().mean())
    eager, fast = optim.OptimizerAdaptor(RootSign()), optim.OptimizerAdaptor(RootSign())
    step = px.compile(fast.step)
    one = other = model
    for count in range(6):
        one = eager.step(0.1 / (1 + count), one, slope(one))
        other = step(0.1 / (1 + count), other, slope(other))
        for (path, want), got in zip(one.params().items(), other.params().values(), strict=True):
            assert np.array_equal(want.value.numpy(), got.value.numpy()), (path, count)
    assert fast.steps == eager.steps == 6
    said = step.explain(0.1, other, slope(other))
    counts = re.search(r"calls: (\d+), of which (\d+) programs", said)
    if base == Cpu():  # Numpy runs op by op
        assert counts is not None, said
        assert counts.groups() == ("5", "5")
