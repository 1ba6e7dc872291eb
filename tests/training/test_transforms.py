"""Transforms over modules: derivatives of first and second order by parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_tensor import Tensor

CPU = px.Cpu()


def model() -> Any:
    px.random.seed(3)
    return nn.Linear(3, 2, device=CPU)


X = px.asarray(np.linspace(-1.0, 1.0, 12).reshape(4, 3).astype("float32"), device=CPU)


def loss(m: Any) -> Tensor[Any]:
    return m(X).tanh().square().sum()


def weights(m: Any) -> list[Any]:
    return [x.numpy() for x in px.tree.leaves(m) if isinstance(x, Tensor)]


def test_a_hessian_vector_product_over_a_module_both_ways() -> None:
    m = model()
    v = px.grad(loss)(m)

    def along(m: Any) -> Tensor[Any]:
        slopes = zip(px.tree.leaves(px.grad(loss)(m)), px.tree.leaves(v), strict=True)
        return sum(((a * b).sum() for a, b in slopes), px.zeros((), device=CPU))

    (forward,) = px.hvp(loss, (m,), (v,))
    assert type(forward) is type(m)
    for one, other in zip(weights(forward), weights(px.grad(along)(m)), strict=True):
        assert np.abs(one).max() > 0
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_frozen_module_has_nothing_to_differentiate() -> None:
    with pytest.raises(px.GradientError, match="nothing to differentiate: got Linear of weight"):
        px.grad(loss)(model().freeze())


def test_a_module_that_is_no_argument_is_refused() -> None:
    m = model()
    with pytest.raises(px.GradientError, match="computed without the arguments"):
        px.grad(lambda _: loss(m))(model())


def test_checkpointed_blocks_train_as_plain_ones() -> None:
    """Dropout draws the same numbers again; running statistics move once."""
    device = px.Autodiff(CPU)
    found = []
    for decorate in (lambda f: f, px.checkpoint):
        px.random.seed(5)
        layers: list[Any] = [
            nn.Linear(8, 8, device=device),
            nn.Dropout(0.5, device=device),
            nn.BatchNorm(8, device=device),
        ]
        parts = [p for p in px.tree.leaves(layers) if isinstance(p, Tensor)]
        assert (layers[1](px.ones((8, 8), device=device)) == 0).any()
        x = px.random.normal((16, 8), device=device)

        def block(x: Tensor[Any], layers: list[Any] = layers) -> Tensor[Any]:
            for layer in layers:
                x = layer(x)
            return x.tanh()

        grads = decorate(block)(x).square().sum().backward()
        news = [grads.proposed(p) for p in parts]
        gradients = [p.grad(grads) for p in parts]
        assert sum(n is not None for n in news) == 2
        assert sum(g is not None for g in gradients) == 4
        found.append([t.numpy() for t in [*news, *gradients] if t is not None])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
