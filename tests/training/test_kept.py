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


def _of_recurrent_layers() -> Tensor:
    kinds: list[Any] = [nn.Gru, nn.Lstm, nn.Rnn]
    outs = [
        kind(64, 64, device=TRAIN)(px.ones((32, 32, 64), device=TRAIN))[0].sum() for kind in kinds
    ]
    return outs[0] + outs[1] + outs[2]


def _of_a_cell_in_a_loop() -> Tensor:
    cell = nn.LstmCell(SIZE, SIZE, device=TRAIN)
    state: Any = None
    for _ in range(3):
        state = cell(_data(), state)
    return state.hidden.sum()


def _of_images() -> Tensor:
    x = px.ones((4, 16, 64, 64), device=TRAIN)
    layers = nn.Conv2d(16, 16, 3, padding=1, device=TRAIN), nn.BatchNorm(16, device=TRAIN)
    return nn.MaxPool2d(2, device=TRAIN)(nn.Sequential(*layers)(x).relu()).sum()


def _of_attention() -> Tensor:
    layer = nn.TransformerEncoderLayer(64, 4, 256, device=TRAIN)
    return layer(px.ones((16, 64, 64), device=TRAIN)).sum()


def _of_closures_in_closures() -> Tensor:
    shift, layer = _data() + 1.0, _layer()

    def outer() -> Callable[[Tensor], Tensor]:
        return lambda y: layer(y * shift).tanh()

    inner = outer()
    return px.checkpoint(lambda y: inner(y) * 2.0)(_data()).sum()


def _of_weights_by_length() -> Tensor:
    return nn.weight_norm(_layer())(_data()).sum()


def _balanced() -> Tensor:
    device = Autodiff(CPU, checkpointing=px.BalancedCheckpointing())
    layer, x = nn.Linear(SIZE, SIZE, device=device), _data(device)
    for _ in range(3):
        x = layer(x).tanh().exp() * x.sigmoid()
    return x.sum()


KEEPING = [
    _balanced,
    _by_a_gradient_of_its_own,
    _compiled,
    _of_a_cell_in_a_loop,
    _of_a_closure,
    _of_a_method,
    _of_a_module,
    _of_attention,
    _of_closures_in_closures,
    _of_defaults,
    _of_images,
    _of_recurrent_layers,
    _of_weights_by_length,
]


# States go from step to step as views, each of which is listed beside what it is a view of.
VIEWS = {_of_a_cell_in_a_loop}


@pytest.mark.parametrize("make", KEEPING, ids=lambda make: make.__name__)
def test_what_is_listed_is_what_is_held(make: Callable[[], Tensor]) -> None:
    make().backward()  # what is made once and stays
    gc.collect()
    before = CPU.memory().current
    loss = make()
    gc.collect()
    held = CPU.memory().current - before
    listed = px.graph(loss).nbytes
    assert listed >= SIZE * SIZE * 4
    assert held - listed < SIZE * SIZE * 2, (held, px.graph(loss).kept())
    if make not in VIEWS:
        assert listed - held < SIZE * SIZE * 2, (held, px.graph(loss).kept())
