"""The device under test, and arrays on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu, _kernel
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


_SHARED = re.compile(r"var<(?:workgroup|storage, read_write)> (\w+): ([^;]+);")
_STRUCT = re.compile(r"struct (\w+) \{([^}]*)\}")
_STORED = re.compile(r"\s*(?:[-+*/%&|^]|<<|>>)?=(?!=)|\s*(?:\+\+|--)")
_SCALARS = re.compile(r"(?:atomic<)?(?:[fiu](?:32|16)|bool)\b")


def component_stores(text: str) -> list[str]:
    """Stores to a component of a vector that threads share: each may touch the whole vector."""
    text = re.sub(r"//.*", "", text)
    for name, kind in re.findall(r"alias (\w+) = (.*);", text):
        text = re.sub(rf"\b{name}\b", kind, text)
    structs = {
        name: dict(re.findall(r"(\w+): ((?:[^,<]|<[^>]*>)+)", fields))
        for name, fields in _STRUCT.findall(text)
    }
    found = []
    for name, kind in _SHARED.findall(text):
        for use in re.finditer(rf"\b{name}\b(?=[\[.])", text):
            end, inner = _store(text, use.end(), kind, structs)
            if inner:
                found.append(text[use.start() : end])
    return found


def _store(text: str, at: int, kind: str, structs: dict[str, dict[str, str]]) -> tuple[int, bool]:
    """The end of a path of members, and whether it leads into a vector and is stored to."""
    inner = False
    while text[at] in "[.":
        inner = kind.startswith("vec")
        if text[at] == "[":
            depth = 1
            while depth:
                at += 1
                depth += {"[": 1, "]": -1}.get(text[at], 0)
            at += 1
            element = re.match(r"array<(.*?)(?:, *\w+)?>$", kind)
            kind = element[1] if element else "f32"
        else:
            member = re.compile(r"\.(\w+)").match(text, at)
            assert member is not None
            at = member.end()
            kind = structs.get(kind, {}).get(member[1], "f32").strip()
        known = _SCALARS.match(kind) or kind.startswith(("vec", "array<")) or kind in structs
        assert known, f"the walk does not know {kind}"
    return at, inner and _STORED.match(text, at) is not None


@pytest.fixture(scope="session", name="component_stores")
def _component_stores() -> Callable[[str], list[str]]:
    return component_stores


@pytest.fixture(scope="session", autouse=True)
def whole_stores() -> Iterator[None]:
    """Every shader that a test compiles stores whole vectors where threads share them."""
    made = _kernel.source

    def source(kernel: _kernel.Kernel, op_code: int = 0) -> str:
        text = made(kernel, op_code)
        assert not component_stores(text)
        return text

    _kernel.source = source
    yield
    _kernel.source = made
