"""The array API on the CPU backend; on the reference too in the long run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from phlox import Cpu, Numpy, use_device

DEVICES = [Cpu(), pytest.param(Numpy(), marks=pytest.mark.long)]


@pytest.fixture(params=DEVICES, ids=repr, autouse=True)
def _device(request: Any) -> Iterator[None]:
    with use_device(request.param):
        yield
