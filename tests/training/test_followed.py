"""What layers and fields of modules read from outside is followed by compiled functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

import phlox as px
from phlox import Cpu, Tensor, nn

K = 1.0


def scaled(x: Tensor) -> Tensor:
    return x * K


class Scaled:
    share = 1.0

    def __init__(self) -> None:
        self.rate = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.rate


class Chain(nn.Module):
    """Layers and functions in a field of any kind."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        held: Iterable[Any] = self.steps
        for step in held.values() if isinstance(held, dict) else held:
            x = step(x)
        return x


class Reading(nn.Module):
    def __init__(self, read: Any) -> None:
        self.read = read

    def forward(self, x: Tensor) -> Tensor:
        return x * (self.read.share if hasattr(self.read, "share") else self.read("rate"))


def set_global(value: float) -> None:
    global K  # noqa: PLW0603 - what the test is about
    K = value


def agree(model: Any, change: Callable[[float], Any]) -> None:
    """A change is another version of the model as an argument, from outside, and by itself."""
    x = px.ones((1, 1), device=Cpu())
    forms: list[tuple[Any, tuple[Any, ...]]] = [
        (px.compile(lambda model, x: model(x)), (model, x)),
        (px.compile(lambda models, x: models[0](x)), ([model], x)),
        (px.compile(lambda x: model(x)), (x,)),  # noqa: PLW0108 - it stands in the closure
        (px.compile(model), (x,)),
    ]
    for fast, args in forms:
        for value in (1.0, 7.0, 1.0, 7.0):
            change(value)
            expected = model(x).item()
            for _ in range(3):
                assert fast(*args).item() == expected
        assert fast.versions == 2
    change(1.0)


def layer() -> nn.Module:
    return nn.Linear(1, 1, device=Cpu())


@pytest.mark.parametrize(
    "made",
    [
        lambda step: nn.Sequential(layer(), step),
        lambda step: nn.Sequential(nn.Sequential(layer(), step), layer()),
        lambda step: Chain([step]),
        lambda step: Chain((step,)),
        lambda step: Chain([step, layer()]),
        lambda step: Chain((step, layer())),
        lambda step: Chain({"step": step, "layer": layer()}),
        lambda step: Chain(deque([step, layer()])),
        lambda step: Chain([layer(), partial(step)]),
    ],
)
def test_what_functions_in_containers_of_a_module_read_is_followed(
    made: Callable[[Any], nn.Module],
) -> None:
    agree(made(scaled), set_global)
    one = Scaled()
    agree(made(one), lambda value: setattr(one, "rate", value))
    agree(made(one.__call__), lambda value: setattr(one, "rate", value))


def test_classes_and_methods_of_containers_in_fields_are_followed() -> None:
    table = {"rate": 1.0}
    agree(Reading(table.get), lambda value: table.update(rate=value))
    agree(Reading(Scaled), lambda value: setattr(Scaled, "share", value))
    Scaled.share = 1.0


class Row(list[Any]):
    def rate(self) -> float:
        return K


class Queue(deque[Any]):
    def rate(self) -> float:
        return K


class Table(dict[str, Any]):
    def rate(self) -> float:
        return K


class Rated(nn.Module):
    def __init__(self, held: Any) -> None:
        self.held = held
        self.layer = layer()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * self.held.rate() * self.held.scale


@pytest.mark.parametrize("made", [Row, Queue, Table])
def test_what_classes_add_to_containers_in_fields_is_followed(made: type[Any]) -> None:
    held = made()
    held.scale = 1.0
    agree(Rated(held), set_global)
    agree(Rated(held), lambda value: setattr(held, "scale", value))
