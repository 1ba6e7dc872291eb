"""The norm of gradients, as training scripts log it."""

from __future__ import annotations

import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_tensor import GradientError


def test_the_norm_is_that_of_all_gradients_before_clipping() -> None:
    model = nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1, bias=False))
    sizes = [(1, 2), (2,), (2, 1)]
    grads = {p.id: pt.ones(s) for p, s in zip(model.param_list(), sizes, strict=True)}
    assert optim.gradient_norm(model, grads).item() == pytest.approx(6**0.5, rel=1e-6)


def test_a_model_without_gradients_has_no_norm() -> None:
    with pytest.raises(GradientError, match="no gradient belongs"):
        optim.gradient_norm(nn.Linear(1, 2), {})


def test_the_norm_of_large_gradients_is_in_range() -> None:
    model = nn.Linear(1, 1)
    grads = {
        p.id: pt.full(p.shape, size, dtype="float32")
        for p, size in zip(model.param_list(), (3e25, 4e25), strict=True)
    }
    assert optim.gradient_norm(model, grads).item() == pytest.approx(5e25, rel=1e-6)
