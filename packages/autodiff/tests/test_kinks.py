"""Slopes where there is none: at kinks activations have those of PyTorch, in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy

HERE = Numpy(float="float64")
QUARTER = pt.asarray(0.25, device=HERE)
# Function, points, slopes of ``torch.nn.functional`` there in float64.
KINKS: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "abs": (pt.abs, [-1, 0, 1], [-1, 0, 1]),
    "hard_shrink": (pt.hard_shrink, [-0.5, 0, 0.5], [0, 0, 0]),
    "hard_sigmoid": (lambda x: pt.hard_sigmoid(x, 1 / 6), [-3, 0, 3], [0, 1 / 6, 0]),
    "hard_swish": (pt.hard_swish, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1]),
    "hard_tanh": (pt.hard_tanh, [-2, -1, 0, 1, 2], [0, 0, 1, 0, 0]),
    "hard_tanh 0..2": (lambda x: pt.hard_tanh(x, 0.0, 2.0), [0, 1, 2], [0, 1, 0]),
    "leaky_relu": (pt.leaky_relu, [-1, 0, 1], [0.01, 0.01, 1]),
    "maximum": (lambda x: x.maximum(x * 0), [-1, 0, 1], [0, 0.5, 1]),
    "prelu": (lambda x: pt.prelu(x, QUARTER), [-1, 0, 1], [0.25, 0.25, 1]),
    "relu": (pt.relu, [-1, 0, 1], [0, 0, 1]),
    "relu6": (pt.relu6, [-1, 0, 3, 6, 7], [0, 0, 1, 0, 0]),
    "soft_shrink": (pt.soft_shrink, [-0.5, 0, 0.5], [0, 0, 0]),
}


@pytest.mark.parametrize("name", sorted(KINKS))
def test_slopes_at_kinks_are_those_of_pytorch(name: str) -> None:
    function, points, slopes = KINKS[name]
    x = pt.asarray(points, dtype="float64", device=HERE)
    want = pytest.approx(slopes, rel=1e-7)

    def slope(x: Any) -> Any:
        return ad.grad(lambda x: function(x).sum())(x)

    assert slope(x).tolist() == want
    assert ad.jvp(function, (x,), (x * 0 + 1,))[1].tolist() == want
    assert ad.vmap(ad.grad(function))(x).tolist() == want
    bends = ad.grad(lambda x: slope(x).sum())(x).tolist()
    assert bends == pytest.approx([1 / 3 if name == "hard_swish" and x == 0 else 0 for x in points])


def test_the_slope_of_prelu_learns_below_zero_alone() -> None:
    x = pt.asarray([-2.0, 0.0, 3.0], device=HERE)
    assert ad.grad(lambda slope: pt.prelu(x, slope).sum())(QUARTER).tolist() == -2.0
