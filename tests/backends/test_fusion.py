"""The lazy device on all backends: the bits of the ops, and never more memory."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phlox as px
from phlox import Autodiff, Backend, Cpu, Fusion, Numpy, Tensor, Wgpu, nn, optim
from phlox_kernels import _native
from phlox_tensor import REGISTRY
from phlox_tensor.testing import Check, checks

LAZY = Fusion(Cpu(), least=0)
NESTED = [
    Fusion(Numpy(), least=0),
    LAZY,
    Fusion(Wgpu(), least=0),
    Autodiff(LAZY),
    Autodiff(Autodiff(LAZY)),
    Fusion(Autodiff(Cpu())),
    Fusion(LAZY),
]
WAITING = [n for n, op in REGISTRY.items() if op.op_class.diagonal and not op.signature.several]


@pytest.mark.parametrize("check", checks(LAZY, WAITING)[::4], ids=str)
def test_ops_that_wait_conform(check: Check) -> None:
    with px.use_device(LAZY):
        check()
    assert LAZY.fallbacks == 0


@pytest.mark.long
@pytest.mark.parametrize("device", NESTED, ids=repr)
def test_every_op_conforms(device: Backend) -> None:
    with px.use_device(device):
        for check in checks(device):
            check()


def steps(device: Backend, seed: int, count: int, size: int) -> list[Tensor[Any]]:
    """Random ops on random results; some results go, and others are made in between."""
    rng = np.random.default_rng(seed)
    values = [
        px.linspace(-1.5, 2.0, size * 8, device=device).reshape((size, 8)) + k for k in range(3)
    ]
    for _ in range(count):
        kind = rng.integers(0, 12)
        a, b = (values[rng.integers(len(values))] for _ in range(2))
        if kind < 3:
            made = a * float(rng.normal()) + 1
        elif kind < 5:
            made = a + b
        elif kind < 6:
            made = a.tanh().exp()
        elif kind < 7:
            made = px.ones((size, 8), device=device)
        elif kind < 8:
            made = px.where(a > b, a[0:1] * b, b)
        elif kind < 9:
            made = a.sum(axis=0, keepdims=True) + b * 0.5
        elif kind < 10 and seed % 2:
            made = a * (b * 0.5).mean(axis=-1, keepdims=True)
        elif kind < 10 and len(values) > 1:
            values.pop(rng.integers(len(values)))
            made = None
        else:
            made = a.astype(px.float16).astype(px.float32).relu()
        del a, b
        if made is not None:
            values.append(made)
        values = values[-6:]
        del made
    return values


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([1, 5, 400]))
def test_random_programs_have_the_bits_of_their_ops(seed: int, size: int) -> None:
    got, wanted = steps(LAZY, seed, 20, size), steps(Cpu(), seed, 20, size)
    for mine, own in zip(got, wanted, strict=True):
        assert mine.numpy().tobytes() == own.numpy().tobytes()
    assert LAZY.fallbacks == 0


def test_what_waits_folds_with_the_bits_of_its_ops() -> None:
    values = np.random.default_rng(4).standard_normal((512, 1024)).astype(np.float32)

    def folded(device: Backend) -> list[Tensor[Any]]:
        x = px.asarray(values, device=device)
        y = (x * 2 - 1).square()
        return [y.mean(), y.sum(axis=-1), (x.relu() + 1).max(axis=-1, keepdims=True)]

    got, wanted = folded(LAZY), folded(Cpu())
    if Cpu().limits.folds:
        assert all(each.primitive.stream is not None for each in got)
    for mine, own in zip(got, wanted, strict=True):
        assert mine.numpy().tobytes() == own.numpy().tobytes()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_more_memory_is_held_than_the_ops_hold(seed: int) -> None:
    def peak(device: Backend) -> int:
        LAZY.sync()
        before = _native._memory()[0]
        _native._reset_peak()
        for value in steps(device, seed, 25, 1 << 14):
            value.sum().item()
        return int(_native._memory()[1] - before)

    assert peak(LAZY) <= peak(Cpu())


def network(device: Backend) -> tuple[list[float], list[np.ndarray[Any, Any]]]:
    """A few steps of a small network with dropout, batch norm and Adam."""
    px.seed(5)
    layers: Any = nn.Sequential(
        nn.Linear(6, 8, device=device),
        nn.BatchNorm(8, device=device),
        nn.Dropout(0.2),
        nn.Linear(8, 2, device=device),
    )
    rule = optim.AdamWConfig().init()
    x = px.random.normal((16, 6), device=device)
    y = x[:, :2].sin()
    losses = []
    for _ in range(8):
        loss = (px.gelu(layers(x)) - y).square().mean()
        losses.append(loss.item())
        layers = rule.step(1e-2, layers, loss.backward())
    return losses, [p.numpy() for p in px.tree.leaves(layers) if isinstance(p, Tensor)]


def test_training_gives_the_same_bits() -> None:
    losses, weights = network(Autodiff(LAZY))
    wanted, own = network(Autodiff(Cpu()))
    assert losses == wanted
    assert len(weights) == len(own) > 0
    for a, b in zip(weights, own, strict=True):
        assert a.tobytes() == b.tobytes()
    assert LAZY.fallbacks == 0


def test_the_gpu_runs_what_waits() -> None:
    try:
        assert Wgpu().dtypes
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")
    x, y = (px.linspace(-2.0, 2.0, 12, device=device) for device in (NESTED[2], Wgpu()))
    for mine, own in (((x * 2 + 1).exp() * x, (y * 2 + 1).exp() * y), (x[:6].sin(), y[:6].sin())):
        # A driver may round a product and a sum of one kernel once.
        np.testing.assert_allclose(mine.numpy(), own.numpy(), 1e-5, 1e-5)


def test_derivatives_of_any_order_and_lanes_run_on_it() -> None:
    def cube(x: Tensor) -> Tensor:
        return (x * x * x).sum()

    def found(device: Backend) -> list[Any]:
        x = px.asarray([0.5, -2.0, 1.0], device=device)
        second = px.grad(lambda x: (px.grad(cube)(x) * x).sum())(x)
        tangent = px.jvp(lambda x: x.sin() * x, (x,), (x + 1,))[1]
        lanes = px.vmap(lambda x: (x * 2).exp() + x)(x)
        return [second.tolist(), tangent.tolist(), lanes.tolist()]

    assert found(LAZY) == found(Cpu())


def test_reading_without_blocking_runs_what_waits() -> None:
    x = px.ones(3, device=LAZY) * 2 + 1
    assert asyncio.run(x.numpy_async()).tolist() == [3.0, 3.0, 3.0]


def test_a_nan_is_found_behind_what_waited_before_the_block() -> None:
    before = px.asarray([1.0], device=LAZY).exp()
    with pytest.raises(px.GradientError, match=r"\[log\] the result holds nan"), px.detect_nan():
        (before - 10.0).log().tolist()
