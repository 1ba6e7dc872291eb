"""The device under test, and arrays on it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray


@pytest.fixture(scope="session")
def gpu() -> Wgpu:
    if not Wgpu.found():
        pytest.skip("no GPU adapter here; mesa-vulkan-drivers brings a software one")
    return Wgpu()


@pytest.fixture
def up(gpu: Wgpu) -> Callable[[Any], GpuArray]:
    def upload(values: Any) -> GpuArray:
        array = np.asarray(values)
        return gpu.upload(array, pt.as_dtype(array.dtype))

    return upload


@pytest.fixture
def dispatches(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every dispatch."""
    calls: list[int] = []
    record = gpu.device.record

    def counted(*arguments: Any) -> None:
        calls.append(1)
        record(*arguments)

    monkeypatch.setattr(gpu.device, "record", counted)
    return calls


@pytest.fixture
def run() -> Callable[[str], str]:
    """Run a program in a process of its own; gives what it prints."""

    def process(program: str) -> str:
        code = textwrap.dedent(program)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return process


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240601)


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a shader with the stored one; PHLOX_UPDATE_GOLDEN=1 stores it."""

    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / f"{name}.wgsl"
        if os.environ.get("PHLOX_UPDATE_GOLDEN"):
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), "to accept it: PHLOX_UPDATE_GOLDEN=1 pytest"

    return compare
