"""What type checkers say of modules: a call has the signature of ``forward``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.typing.checkers import CHECKERS, found

PROGRAM = """
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import assert_type

from phlox_nn import BatchNorm, Dropout, Linear, Module, Param
from phlox_tensor import Tensor


class Net(Module):
    body: Linear
    rate: float = 0.5

    def forward(self, x: Tensor, *, twice: bool = False) -> Tensor:
        return self.body(x) * (2.0 if twice else 1.0)


class Own(Module):
    def __init__(self, width: int) -> None:
        self.body = Linear(2, width)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        return self.body(x), 1


class Base(Module, ABC):
    scale: float = 1.0

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...


class Wide(Base, kw_only=True):
    width: int

    def forward(self, x: Tensor) -> Tensor:
        return x


def right(x: Tensor, layers: list[Module]) -> Tensor:
    net = Net(Linear(2, 3))
    assert_type(net(x), Tensor)
    assert_type(net(x, twice=True), Tensor)
    assert_type(Own(3)(x), tuple[Tensor, int])
    assert_type(Own(3).body, Linear)
    assert_type(net.valid(), Net)
    assert_type(net.freeze("body").map(lambda _, p: p), Net)
    assert_type(BatchNorm(3)(x), Tensor)
    assert_type(net.params(trainable=True), dict[str, Param])
    assert_type(Wide(width=3)(x), Tensor)
    function: Callable[[Tensor], Tensor] = net
    for layer in layers:
        x = layer(x)
    return function(x)


def wrong(x: Tensor, net: Net) -> None:
    net()  # wrong
    net("text")  # wrong
    net(x, thrice=True)  # wrong
    Own(3)(x).sum()  # wrong: a tuple
    Dropout()(x, x)  # wrong
    Own()  # wrong
    Wide(3)  # wrong
"""
WRONG = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_calls_have_the_signature_of_forward(checker: str, tmp_path: Path) -> None:
    errors = found(CHECKERS[checker], tmp_path, PROGRAM)
    lines = PROGRAM.splitlines()
    missed = sorted(WRONG - set(errors))
    assert not missed, "passed:\n" + "\n".join(f"{n}: {lines[n - 1]}" for n in missed)
    extra = {n: text for n, text in errors.items() if n not in WRONG}
    assert not extra, "\n".join(f"{n}: {lines[n - 1]}\n  {text}" for n, text in extra.items())
