"""Optimizer steps as one kernel for each parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import float32
from phlox_wgpu import Wgpu

ADAM = (0.1, 3, 0.5, 0.25, 1e-3, 0.5)  # lr, time, both decays of means, epsilon, weight decay


def parts(gpu: Wgpu, count: int) -> list[Any]:
    """Tensors of some shapes."""
    drawn = np.random.default_rng(count).random
    return [gpu.upload(drawn(n, np.float32), float32) for n in (700, 3, 8)[:count]]


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_adam_runs_one_kernel_for_each_parameter(
    gpu: Wgpu, dispatches: list[int], held: bool, amsgrad: bool, decoupled: bool
) -> None:
    x, g, m, v, top = (parts(gpu, 3) for _ in range(5))
    means = (m, v, top if amsgrad else None) if held else (None, None, None)
    out = gpu.ops.adam_step(x, g, *means, *ADAM, decoupled, amsgrad)
    assert (len(out), len(dispatches)) == (12 if amsgrad else 9, 3)


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_gradient_descent_runs_one_kernel_for_each_parameter(
    gpu: Wgpu, dispatches: list[int], momentum: float, decay: float
) -> None:
    x, g, v = (parts(gpu, 3) for _ in range(3))
    for held in (None, v):
        dispatches.clear()
        out = gpu.ops.sgd_step(x, g, held, 0.1, momentum, 0.25, decay, True)
        assert (len(out), len(dispatches)) == (6 if momentum else 3, 3)


def test_steps_of_nothing_give_nothing(gpu: Wgpu) -> None:
    assert gpu.ops.adam_step([], [], None, None, None, *ADAM, False, True) == ()
    assert gpu.ops.sgd_step([], [], None, 0.1, 0.5, 0.0, 0.0, False) == ()


def test_a_common_norm_gives_one_factor_for_all(gpu: Wgpu, dispatches: list[int]) -> None:
    grads = [pt.ones((5, 7), device=gpu) for _ in range(10)]
    dispatches.clear()
    pt.ops.clip_norms(grads, 1.0, True)
    assert len(dispatches) < 10 * len(grads)  # 18 each where every gradient has its own
