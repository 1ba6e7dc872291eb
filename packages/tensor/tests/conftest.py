"""Tests of this package see its own backend alone; backends are compared in tests/backends."""

from collections.abc import Iterator

import pytest

from phlox_tensor import Numpy, use_device
from phlox_tensor._device import finding as _device


@pytest.fixture(autouse=True)
def _on_the_reference(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_device, "backend_classes", dict)
    _forget()
    with use_device(Numpy()):
        yield
    _forget()


def _forget() -> None:
    """Which backends there are is kept; tests of other packages see more than these."""
    _device.load_class.cache_clear()
    _device._fallback.cache_clear()
