"""Whole models without data: forward, backward and steps on ``Autodiff(Meta())``."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Cpu, Meta, Tensor, nn, optim


class Block(nn.Module):
    conv: nn.Conv2d
    norm: nn.BatchNorm
    head: nn.Linear
    dropout: nn.Dropout

    def forward(self, images: Tensor) -> Tensor:
        x = nn.gelu(self.norm(self.conv(images)))
        return self.head(self.dropout(px.max_pool2d(x, 2).flatten(1)))


def block(device: px.Backend) -> Block:
    return Block(
        conv=nn.Conv2d(1, 4, 3, device=device),
        norm=nn.BatchNorm(4, device=device),
        head=nn.Linear(4 * 5 * 5, 3, device=device),
        dropout=nn.Dropout(0.1),
    )


def step(device: px.Backend) -> tuple[Block, list[tuple[int, ...]]]:
    """One training step, and the shapes of all gradients."""
    model = block(device)
    images = px.random.normal((2, 1, 12, 12), device=device)
    targets: Any = px.zeros((2,), dtype=px.int64, device=device)
    grads = nn.CrossEntropyLoss()(model(images), targets).backward()
    found = [grads.get(p.value) for p in model.param_list() if p.trainable]
    shapes = [g.shape for g in found if g is not None]
    return optim.AdamConfig().init().step(1e-3, model, grads), shapes


def test_a_training_step_has_the_shapes_of_one_with_data() -> None:
    without, shapes = step(Autodiff(Meta()))
    with_data, expected = step(Autodiff(Cpu()))
    assert shapes == expected
    assert len(shapes) == 6
    assert [p.shape for p in without.param_list()] == [p.shape for p in with_data.param_list()]


def test_a_model_of_a_hundred_billion_parameters_allocates_nothing() -> None:
    device = Autodiff(Meta())
    tracemalloc.start()
    try:
        model = nn.Linear(10**6, 10**5, device=device)
        x = px.ones((64, 10**6), device=device)
        grads = model(x).square().mean().backward()
        weight = model.weight.value.grad(grads)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert weight is not None
    assert weight.shape == (10**6, 10**5)
    assert peak < 1 << 20


def test_second_derivatives_have_shapes_too() -> None:
    device = Autodiff(Autodiff(Meta()))
    x = px.ones((5,), device=device)
    assert px.grad(lambda x: px.grad(lambda x: (x**3).sum())(x).sum())(x).shape == (5,)


def test_a_gradient_is_not_there_to_read() -> None:
    x = px.ones((3,), device=Autodiff(Meta())).require_grad()
    gradient = x.grad((x * x).sum().backward())
    assert gradient is not None
    with pytest.raises(px.DeviceError, match="no values"):
        gradient.tolist()
