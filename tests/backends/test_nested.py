"""Transforms of functions inside each other, in any order, on every device.

Of ``f(x) = exp(a · x)`` each transform here makes a multiple of ``f`` again, by a number that a
line of algebra gives. So the value of any nesting is the product of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import exp

import numpy as np
import pytest

import phlox as px
from phlox import Backend, Cpu, Numpy, Tensor, Wgpu

A, V, X = (0.5, -0.25, 0.75), (1.0, 2.0, -0.5), (0.1, 0.2, -0.3)
SUM, ALONG = sum(A), float(np.dot(A, V))
F = Callable[[Tensor], Tensor]
DEVICES: dict[str, Backend] = {"numpy": Numpy(), "cpu": Cpu(), "wgpu": Wgpu()}


def direction(x: Tensor) -> Tensor:
    return px.asarray(V, device=x.device).astype(x.dtype)


def of_lanes(f: F) -> F:
    def run(x: Tensor) -> Tensor:
        shifts = px.asarray([0.0, 1.0], device=x.device).astype(x.dtype)
        return px.vmap(lambda shift: f(x + shift * direction(x)))(shifts).sum()

    return run


def by_graph(f: F) -> F:
    def run(x: Tensor) -> Tensor:
        value, pull = px.vjp(f, x)
        (found,) = pull(value.zeros() + 1)
        return found.sum()

    return run


# What each makes of a function of one element, and of ``f`` the factor.
TRANSFORMS: dict[str, tuple[Callable[[F], F], float]] = {
    "checkpoint": (px.checkpoint, 1.0),
    "columns": (lambda f: lambda x: px.jacobian(f, mode="columns")(x).sum(), SUM),
    "grad": (lambda f: lambda x: px.grad(f)(x).sum(), SUM),
    "hessian": (lambda f: lambda x: px.hessian(f)(x).sum(), SUM**2),
    "hvp": (lambda f: lambda x: px.hvp(f, (x,), (direction(x),))[0].sum(), SUM * ALONG),
    "jvp": (lambda f: lambda x: px.jvp(f, (x,), (direction(x),))[1], ALONG),
    "rows": (lambda f: lambda x: px.jacobian(f, mode="rows")(x).sum(), SUM),
    "vjp": (by_graph, SUM),
    "vmap": (of_lanes, 1.0 + exp(ALONG)),
}


def exponential(x: Tensor) -> Tensor:
    return (x * px.asarray(A, device=x.device).astype(x.dtype)).sum().exp()


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_transforms_nest_in_any_order(outer: str, device: Backend) -> None:
    x = px.asarray(X, device=device)
    value = exp(float(np.dot(A, X)))
    around, one = TRANSFORMS[outer]
    for inner, (inside, other) in TRANSFORMS.items():
        found = around(inside(exponential))(x)
        assert found.device == device
        assert found.shape == ()
        assert found.item() == pytest.approx(one * other * value, rel=1e-5), inner


@pytest.mark.parametrize("names", [*product(["grad", "jvp", "vmap"], repeat=3)], ids=" ".join)
def test_three_levels_nest_in_any_order(names: tuple[str, ...]) -> None:
    function: F = exponential
    factor = exp(float(np.dot(A, X)))
    for name in names:
        transform, share = TRANSFORMS[name]
        function, factor = transform(function), factor * share
    x = px.asarray(X, device=Numpy(float="float64")).astype("float64")
    assert function(x).item() == pytest.approx(factor, rel=1e-12)
