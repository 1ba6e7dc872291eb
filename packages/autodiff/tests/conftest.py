"""What the tests of this package share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import phlox_tensor as pt


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    """Derivatives are compared in float64, on the backend that is always there."""
    with pt.use_device(pt.Numpy(float="float64")):
        yield


@pytest.fixture(params=["cpu", "numpy", "wgpu"])
def backend(request: Any) -> pt.Backend:
    """Each backend that is installed and finds what it needs."""
    try:
        return pt.as_device(request.param)
    except (pt.ArgumentError, pt.BackendUnavailableError, ImportError) as error:
        pytest.skip(f"{request.param} does not run here: {error}")
