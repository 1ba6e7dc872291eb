"""Tests of this package compute on the reference, from one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pytest

from phlox_tensor import REGISTRY, Backend, DType, Numpy, seed, use_device


@dataclass(frozen=True, slots=True)
class Held:
    """A primitive of ``Recording``."""

    value: Any
    tracked: bool = False


@final
class Recording(Backend):
    """Stands in for automatic differentiation: it marks leaves and records nothing."""

    name = "recording"
    records = True

    def __init__(self, inner: Backend) -> None:
        self.inner = self._inner = inner
        self.settings = (inner,)
        self.dtypes = inner.dtypes
        self.default_float, self.default_int = inner.default_float, inner.default_int

    def entry(self, name: str) -> Any:
        entry = self._inner.resolved(name)
        single = not REGISTRY[name].signature.several

        def plain(item: Any) -> Any:
            if isinstance(item, Held):
                return item.value
            return tuple(map(plain, item)) if isinstance(item, tuple) else item

        def run(*args: Any) -> Any:
            out = entry(*map(plain, args))
            return Held(out) if single else tuple(map(Held, out))

        return run

    def shape_of(self, primitive: Held, /) -> tuple[int, ...]:
        return self._inner.shape_of(primitive.value)

    def dtype_of(self, primitive: Held, /) -> DType:
        return self._inner.dtype_of(primitive.value)

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Held:
        return Held(self._inner.upload(array, dtype))

    def read(self, primitive: Held, /) -> np.ndarray[Any, Any]:
        return self._inner.read(primitive.value)

    def lift(self, primitive: Any, /) -> Held:
        return Held(primitive)

    def lower(self, primitive: Held, /) -> Any:
        return primitive.value

    def require_grad(self, primitive: Held, /) -> Held:
        return Held(primitive.value, tracked=True)

    def is_tracked(self, primitive: Held, /) -> bool:
        return primitive.tracked

    def detach(self, primitive: Held, /) -> Held:
        return Held(primitive.value)


@pytest.fixture(autouse=True)
def _on_the_reference() -> Iterator[None]:
    with use_device(Numpy()):
        seed(0)
        yield


@pytest.fixture
def recording() -> Backend:
    """A device that records, over the reference."""
    return Recording(Numpy())
