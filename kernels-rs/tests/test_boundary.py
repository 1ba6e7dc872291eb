"""Malformed arguments at the native boundary: an exception of Python's, never a crash or panic."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phlox_kernels import _native
from phlox_tensor import ArgumentError


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_malformed_arguments_are_refused() -> None:
    program = Path(__file__).with_name("fuzz_boundary.py")
    done = subprocess.run(
        [sys.executable, str(program), "1", "60"],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    calls, _, refused, _ = done.stdout.split()[-4:]
    assert int(calls) > int(refused) > 1000


SIZES = (1 << 56, 1 << 57, 1 << 58, 1 << 59, 1 << 60, 1 << 61, (1 << 63) - 1)


@pytest.mark.parametrize("size", SIZES, ids=hex)
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_more_memory_than_there_is_raises_and_harms_nothing(size: int, dtype: str) -> None:
    with pytest.raises(MemoryError):
        _native.full((size,), 0, dtype)
    with pytest.raises(MemoryError):
        _native.full((0, size, size), 0, dtype)
    assert np.asarray(_native.full((3,), 1, dtype)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "op", [_native.logsumexp, lambda x, axis, keep: _native.var(x, axis, 0.0, keep)]
)
def test_an_axis_that_has_none_after_it_is_refused(op: Callable[..., object]) -> None:
    with pytest.raises(ArgumentError, match="wrong axis"):
        op(_native.full((2, 3), 1, "float32"), ((1 << 64) - 1, 0), False)


def test_a_view_of_too_many_elements_is_refused() -> None:
    x = _native.full((4,), 1, "float32")
    for shape in [(1 << 62, 4), (1 << 60, 16), (1 << 31, 1 << 31, 4), (0, 1 << 62, 4)]:
        with pytest.raises(MemoryError):
            _native.broadcast_to(x if shape[-1] == 4 else _native.full((1,), 1, "int8"), shape)
    large = _native.broadcast_to(x, (1 << 50, 4))
    assert large.size == 1 << 52
    last = _native.slice(_native.flip(large, (0, 1)), ((1 << 50) - 1, 3), (1, 1), (1, 1))
    assert np.asarray(last).tolist() == [[1.0]]
    with pytest.raises(MemoryError):
        _native.contiguous(large)
    with pytest.raises(MemoryError):
        _native.concat((large,) * 300, 0)
    with pytest.raises(MemoryError):
        _native.pad(large, ((1 << 63, 1 << 63), (0, 0)), 0)
