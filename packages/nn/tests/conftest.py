"""Tests of this package compute on the reference, from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import pytest

from phlox_tensor import Backend, Decorator, Entry, Numpy, Op, seed, use_device


@dataclass(frozen=True, slots=True)
class Held:
    """A primitive of ``Recording``."""

    value: Any
    tracked: bool = False


@final
class Recording(Decorator):
    """Stands in for automatic differentiation: it marks leaves and records nothing."""

    name = "recording"

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.records = True

    def decorate(self, op: Op, inside: Entry) -> Entry:
        return lambda *args: self.lift_all(op, inside(*self.lower_all(op, args)))

    def lift(self, primitive: Any, /) -> Held:
        return Held(primitive)

    def lower(self, primitive: Held, /) -> Any:
        return primitive.value

    def require_grad(self, primitive: Held, /) -> Held:
        return Held(primitive.value, tracked=True)

    def is_tracked(self, primitive: Held, /) -> bool:
        return primitive.tracked


@pytest.fixture(autouse=True)
def _on_the_reference() -> Iterator[None]:
    with use_device(Numpy()):
        seed(0)
        yield


@pytest.fixture
def recording() -> Backend:
    """A device that records, over the reference."""
    return Recording(Numpy())
