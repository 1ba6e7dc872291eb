"""What ``graph(loss).kept()`` lists is what the device holds until the backward pass."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import phlox as px
from phlox import Autodiff, Cpu, Tensor, nn

CPU = Cpu()
TRAIN = Autodiff(CPU)
SIZE = 256  # arrays of 256 KiB, beside which all else is small


def _layer() -> nn.Linear:
    return nn.Linear(SIZE, SIZE, bias=False, device=TRAIN)


def _data(device: Any = TRAIN) -> Tensor:
    return px.ones((SIZE, SIZE), device=device)


def _of_a_module() -> Tensor:
    return px.checkpoint(_layer())(_data()).sum()


def _of_a_method() -> Tensor:
    return px.checkpoint(_layer().forward)(_data()).sum()


def _of_a_closure() -> Tensor:
    layer, x = _layer(), _data()
    return px.checkpoint(lambda y: layer(x * y).tanh())(_data()).sum()


def _of_defaults() -> Tensor:
    def block(x: Tensor, layer: nn.Linear, shift: Tensor = _data(CPU) + 1.0) -> Tensor:  # noqa: B008 - what the test is about
        return layer(x + shift).tanh()

    return px.checkpoint(block)(_data(), _layer()).sum()


def _compiled() -> Tensor:
    layer, run = _layer(), px.compile(lambda m, x, y: (m(x).tanh() * y).exp())
    for _ in range(2):
        run(layer, _data(), _data(CPU)).sum().backward()
    return run(layer, _data(), _data(CPU)).sum()


def _by_a_gradient_of_its_own() -> Tensor:
    @px.custom_gradient
    def scaled(x: Tensor, y: Tensor) -> Any:
        return x * y, lambda g: (g * y, None)

    return scaled(_layer().weight.value, _data()).sum()


@pytest.mark.parametrize(
    "make",
    [_of_a_module, _of_a_method, _of_a_closure, _of_defaults, _compiled, _by_a_gradient_of_its_own],
    ids=lambda make: make.__name__,
)
def test_what_is_listed_is_what_is_held(make: Callable[[], Tensor]) -> None:
    make().backward()  # what is made once and stays
    gc.collect()
    before = CPU.memory().current
    loss = make()
    gc.collect()
    held = CPU.memory().current - before
    listed = px.graph(loss).nbytes
    assert listed >= SIZE * SIZE * 4
    assert abs(held - listed) < SIZE * SIZE * 2, (held, px.graph(loss).kept())
