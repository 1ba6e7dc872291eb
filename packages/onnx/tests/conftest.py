"""Tests of this package compute on the reference."""

from collections.abc import Iterator

import pytest

from phlox_tensor import Numpy, seed, use_device


@pytest.fixture(autouse=True)
def _on_the_reference() -> Iterator[None]:
    with use_device(Numpy()):
        seed(0)
        yield
