"""Slopes where there is none: at kinks activations have those of PyTorch, in every mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Wgpu

# Function, points, slopes of ``torch.nn.functional`` there in float64.
KINKS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "abs": (px.abs, [-1, 0, 1], [-1, 0, 1]),
    "hard_shrink": (px.hard_shrink, [-0.5, 0, 0.5], [0, 0, 0]),
    "hard_sigmoid": (px.hard_sigmoid, [-3, 0, 3], [0, 1 / 6, 0]),
    "hard_swish": (px.hard_swish, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1]),
    "hard_tanh": (px.hard_tanh, [-2, -1, 0, 1, 2], [0, 0, 1, 0, 0]),
    "hard_tanh 0..2": (lambda x: px.hard_tanh(x, 0.0, 2.0), [0, 1, 2], [0, 1, 0]),
    "leaky_relu": (px.leaky_relu, [-1, 0, 1], [0.01, 0.01, 1]),
    "maximum": (lambda x: x.maximum(x * 0), [-1, 0, 1], [0, 0.5, 1]),
    "prelu": (lambda x: px.prelu(x, ((x * 0).sum() + 0.25).detach()), [-1, 0, 1], [0.25, 0.25, 1]),
    "relu": (px.relu, [-1, 0, 1], [0, 0, 1]),
    "relu6": (px.relu6, [-1, 0, 3, 6, 7], [0, 0, 1, 0, 0]),
    "soft_shrink": (px.soft_shrink, [-0.5, 0, 0.5], [0, 0, 0]),
}
DEVICES = {"numpy64": Numpy(float="float64"), "numpy": Numpy(), "cpu": Cpu(), "wgpu": Wgpu()}


def eager(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@pytest.mark.parametrize("run", [eager, px.compile])
@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("name", sorted(KINKS))
def test_slopes_at_kinks_are_those_of_pytorch(name: str, device: Backend, run: Any) -> None:
    function, points, slopes = KINKS[name]
    x = px.asarray(points, device=device).astype(device.default_float)
    want = pytest.approx(slopes, rel=1e-6)

    def slope(x: Any) -> Any:
        return px.grad(lambda x: function(x).sum())(x)

    assert run(slope)(x).tolist() == want
    assert run(lambda x: px.jvp(function, (x,), (x * 0 + 1,))[1])(x).tolist() == want
    assert run(px.vmap(px.grad(function)))(x).tolist() == want
    bends = run(px.grad(lambda x: slope(x).sum()))(x).tolist()
    third = [1 / 3 if name == "hard_swish" and x == 0 else 0 for x in points]
    assert bends == pytest.approx(third, rel=1e-6)


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_the_slope_of_prelu_learns_below_zero_alone(device: Backend) -> None:
    x, quarter = px.asarray([-2.0, 0.0, 3.0], device=device), px.asarray(0.25, device=device)
    assert px.grad(lambda slope: px.prelu(x, slope).sum())(quarter).tolist() == -2.0


@pytest.mark.parametrize("run", [eager, px.compile])
@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_no_slope_is_0_at_nan(device: Backend, run: Any) -> None:
    functions = (
        *(px.celu, px.elu, px.gelu, px.hard_sigmoid, px.hard_swish, px.hard_tanh, px.leaky_relu),
        *(px.mish, px.relu, px.relu6, px.selu, px.silu, px.softplus, px.tanh),
    )
    x = px.asarray([math.nan], device=device).astype(device.default_float)
    for function in functions:
        (slope,) = run(px.grad(lambda x, f=function: f(x).sum()))(x).tolist()
        assert slope != 0, function


@pytest.mark.parametrize("order", [-1.0, 0.5])
def test_an_element_that_is_0_has_no_slope_in_a_norm_of_a_low_order(order: float) -> None:
    for given, wanted in (([1.0, 0.0], [float(order > 0), 0.0]), ([0.0, 0.0], [0.0, 0.0])):
        x = px.asarray(given, device=px.Autodiff(px.Numpy())).require_grad()
        assert x.grad(px.linalg.vector_norm(x, ord=order).backward()).tolist() == wanted
