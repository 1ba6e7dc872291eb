"""Adapters beside weights of 4 bits learn, and the backward pass holds no weight of floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn, optim

DEVICE = px.Autodiff(px.Cpu())


def model(bits: Any) -> nn.Sequential:
    px.seed(0)
    made = nn.Sequential(nn.Linear(64, 96, device=DEVICE), nn.Linear(96, 4, device=DEVICE))
    return nn.quantize_weights(made, bits=bits, group=32)


@pytest.mark.parametrize("bits", [4, 8])
def test_adapters_learn_while_integers_stay(bits: Any) -> None:
    stored = model(bits)
    adapted = nn.apply_lora(stored, 4)
    x = px.random.normal((32, 64), device=DEVICE)
    target = px.random.normal((32, 4), device=DEVICE)
    rule = optim.AdamConfig().init()
    losses = []
    for _ in range(60):
        loss = (adapted(x) - target).square().mean()
        kept = {(k.op, k.name) for k in px.graph(loss).kept() if k.op == "quantized_linear"}
        assert kept == {("quantized_linear", "weight"), ("quantized_linear", "scale")}
        losses.append(float(loss))
        adapted = rule.step(3e-2, adapted, loss.backward())
    assert losses[-1] < 0.2 * losses[0]
    for place in range(2):
        before, after = (
            stored.path(f"layers.{place}.weight"),
            adapted.path(f"layers.{place}.weight.base"),
        )
        np.testing.assert_array_equal(before.integers.value.numpy(), after.integers.value.numpy())


@pytest.mark.parametrize("bits", [4, 8])
def test_transforms_give_what_they_give_of_the_same_floats(bits: Any) -> None:
    stored = model(bits).valid()
    floats = nn.dequantize_weights(stored)
    x = px.random.normal((3, 64), device=px.Cpu())
    transforms: list[Callable[[Any], Any]] = [
        lambda m: px.grad(lambda x: m(x).tanh().sum())(x),
        lambda m: px.vmap(m)(x),
        lambda m: px.jvp(m, (x,), (x,))[1],
        lambda m: px.jacobian(m)(x[0]),
        lambda m: px.hessian(lambda x: m(x).tanh().sum())(x[0]),
        lambda m: px.compile(lambda m, x: m(x))(m, x),
    ]
    for transform in transforms:
        found, want = (transform(m).numpy() for m in (stored, floats))
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def test_gradients_of_scales_are_those_of_the_formula() -> None:
    whole = px.asarray(np.arange(-8, 8).reshape(4, 4), dtype="int8", device=DEVICE)
    for bits, rows in ((8, 4), (4, 8)):
        x = px.random.normal((3, rows), device=DEVICE)
        scale = px.random.uniform((2, 4), 0.5, 1.5, device=DEVICE).require_grad()
        found = scale.grad(px.quantized_linear(x, whole, scale, bits=bits).tanh().sum().backward())
        floats = (px.unpack_int4(whole, 0) if bits == 4 else whole).astype("float32")
        spread = (floats.reshape(2, -1, 4) * scale[:, None]).reshape(rows, 4)
        want = scale.grad((x @ spread).tanh().sum().backward())
        assert found is not None
        assert want is not None
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
