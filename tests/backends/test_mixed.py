"""A device that multiplies in a narrow type: what is narrow, what stays wide, how it trains."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Mixed, Numpy, nn, optim

NARROW = ("bfloat16", "float16")
DEVICES: dict[str, Callable[[], Any]] = {"cpu": Cpu, "numpy": Numpy}


def _drawn(*shape: int, device: Any, seed: int = 0) -> px.Tensor[Any]:
    values = np.random.default_rng(seed).standard_normal(shape).astype("f4")
    return px.asarray(values, device=device)


@pytest.mark.parametrize("on", sorted(DEVICES))
@pytest.mark.parametrize("dtype", NARROW)
def test_products_are_those_of_rounded_operands(on: str, dtype: Any) -> None:
    plain = DEVICES[on]()
    device = Mixed(plain, dtype)
    calls: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
        "attention": (px.attention, [(2, 5, 8)] * 3),
        "conv1d": (px.conv1d, [(2, 3, 9), (4, 3, 3), (4,)]),
        "conv2d": (px.conv2d, [(2, 3, 6, 5), (4, 3, 3, 3), (4,)]),
        "conv_transpose2d": (px.conv_transpose2d, [(2, 3, 6, 5), (3, 4, 2, 2)]),
        "linear": (px.linear, [(5, 7), (7, 4), (4,)]),
        "matmul": (px.matmul, [(3, 5, 7), (7, 4)]),
    }
    for name, (call, shapes) in calls.items():
        mixed = [_drawn(*shape, device=device, seed=i) for i, shape in enumerate(shapes)]
        narrow = [x.to_device(plain).astype(dtype) for x in mixed]
        got = call(*mixed)
        assert got.dtype == px.float32, name
        assert got.tolist() == call(*narrow).astype(px.float32).tolist(), name
        assert got.tolist() != call(*[x.to_device(plain) for x in mixed]).tolist(), name


def test_sums_of_products_are_wide() -> None:
    x = px.ones((1, 4096), device=Mixed(Cpu()))
    assert (x @ x.mT).item() == 4096  # a bfloat16 sum would stand still at 256


def test_rows_reductions_and_sums_stay_wide() -> None:
    x = _drawn(33, 65, device=Cpu())
    y = x.to_device(Mixed(Cpu()))
    for name in ("softmax", "sum", "var", "exp", "logsumexp", "cumulative_sum"):
        kept = {"axis": -1} if name != "exp" else {}
        assert getattr(px, name)(y, **kept).tolist() == getattr(px, name)(x, **kept).tolist()


def test_other_types_are_left_alone() -> None:
    device = Mixed(Numpy())
    x = _drawn(4, 5, device=device)
    wide, narrow = x.astype(px.float64), x.astype(px.bfloat16)
    plain = x.to_device(Numpy())
    assert (wide @ wide.mT).tolist() == (
        plain.astype(px.float64) @ plain.astype(px.float64).mT
    ).tolist()
    assert (narrow @ narrow.mT).dtype == px.bfloat16
    assert (x @ narrow.mT).dtype == px.float32
    whole = px.asarray([[1, 2], [3, 4]], device=device)
    assert (whole @ whole).tolist() == [[7, 10], [15, 22]]


def test_it_is_a_device_like_any_other() -> None:
    device = Mixed("cpu", px.float16)
    assert device is Mixed(Cpu(), "float16")
    assert device is not Mixed(Cpu())
    assert device.inner is Cpu()
    assert pickle.loads(pickle.dumps(device)) is copy.deepcopy(device) is device
    assert "float16" in repr(device)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_wide_types_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match="no narrow float"):
        Mixed(Cpu(), dtype)


ORDERS: dict[str, Callable[[], Any]] = {
    "autodiff of mixed": lambda: Autodiff(Mixed(Cpu())),
    "mixed of autodiff": lambda: Mixed(Autodiff(Cpu())),
}


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_gradients_are_near_those_of_float32(order: str) -> None:
    def gradient(device: Any) -> np.ndarray[Any, Any]:
        x, w = _drawn(64, 32, device=device), _drawn(32, 16, device=device, seed=1).require_grad()
        grads = (x @ w).tanh().sum().backward()
        found = w.grad(grads)
        assert found is not None
        return found.numpy()

    near, exact = gradient(ORDERS[order]()), gradient(Autodiff(Cpu()))
    assert near.dtype == np.float32
    assert 0 < abs(near - exact).max() < 0.02 * abs(exact).max()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_model_trains_in_float32_parameters(compiled: bool) -> None:
    device = Autodiff(Mixed(Cpu()))
    px.seed(0)
    model: Any = nn.Sequential(nn.Linear(8, 32), nn.Activation("relu"), nn.Linear(32, 1)).to_device(
        device
    )
    rule: Any = optim.AdamConfig().init()
    x = px.random.normal((256, 8), device=device)
    y = x.square().sum(axis=1, keepdims=True)

    def step(model: Any, rule: Any) -> Any:
        loss = (model(x) - y).square().mean()
        return rule.step(1e-2, model, loss.backward()), loss

    run: Any = px.compile(step) if compiled else step
    losses = []
    for _ in range(60):
        model, loss = run(model, rule)
        losses.append(float(loss))
    assert losses[-1] < 0.2 * losses[0]
    assert getattr(run, "fallbacks", 0) == 0
    assert {p.value.dtype for p in model.param_list()} == {px.float32}
