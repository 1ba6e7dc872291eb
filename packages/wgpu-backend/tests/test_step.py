"""Optimizer steps as one kernel for many small parameters, and for each large one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import float32
from phlox_wgpu import Wgpu

ADAM = (0.1, 3, 0.5, 0.25, 1e-3, 0.5)  # lr, time, both decays of means, epsilon, weight decay


def parts(gpu: Wgpu, seed: int = 0, shapes: tuple[Any, ...] = (700, 3, (2, 4))) -> list[Any]:
    """Tensors of some shapes."""
    drawn = np.random.default_rng(seed).random
    return [gpu.upload(drawn(shape, np.float32), float32) for shape in shapes]


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_adam_runs_one_kernel_for_small_parameters(
    gpu: Wgpu, dispatches: list[int], held: bool, amsgrad: bool, decoupled: bool
) -> None:
    x, g, m, v, top = (parts(gpu) for _ in range(5))
    means = (m, v, top if amsgrad else None) if held else (None, None, None)
    out = gpu.ops.adam_step(x, g, *means, *ADAM, decoupled, amsgrad)
    assert (len(out), len(dispatches)) == (12 if amsgrad else 9, 1)


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_gradient_descent_runs_one_kernel_for_small_parameters(
    gpu: Wgpu, dispatches: list[int], momentum: float, decay: float
) -> None:
    x, g, v = (parts(gpu) for _ in range(3))
    for held in (None, v):
        dispatches.clear()
        out = gpu.ops.sgd_step(x, g, held, 0.1, momentum, 0.25, decay, True)
        assert (len(out), len(dispatches)) == (6 if momentum else 3, 1)


def test_each_parameter_gets_the_bits_that_it_gets_alone(gpu: Wgpu, dispatches: list[int]) -> None:
    shapes = (5, 1 << 17, (300, 3), 1, (0, 4), *range(2, 40))
    lists = [parts(gpu, seed, shapes) for seed in range(4)]
    lists[0][0] = gpu.ops.slice(parts(gpu, 9, (8,))[0], (3,), (5,), (1,))
    lists[1][2] = gpu.ops.permute_dims(parts(gpu, 9, ((3, 300),))[0], (1, 0))
    dispatches.clear()
    out = gpu.ops.adam_step(*lists, None, *ADAM, True, False)
    assert len(dispatches) < len(shapes) / 2
    for row in range(len(shapes)):
        alone = gpu.ops.adam_step(*[[each[row]] for each in lists], None, *ADAM, True, False)
        for place, x in enumerate(alone):
            both = gpu.read(out[row + place * len(shapes)]), gpu.read(x)
            np.testing.assert_array_equal(*both)


def test_steps_of_nothing_give_nothing(gpu: Wgpu) -> None:
    assert gpu.ops.adam_step([], [], None, None, None, *ADAM, False, True) == ()
    assert gpu.ops.sgd_step([], [], None, 0.1, 0.5, 0.0, 0.0, False) == ()


def test_a_common_norm_gives_one_factor_for_all(gpu: Wgpu, dispatches: list[int]) -> None:
    grads = [pt.ones((5, 7), device=gpu) for _ in range(10)]
    dispatches.clear()
    pt.ops.clip_norms(grads, 1.0, True)
    assert len(dispatches) < 10 * len(grads)  # 18 each where every gradient has its own
