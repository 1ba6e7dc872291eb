"""Random numbers of the CPU backend: the published vectors, the reference, the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import Numpy, as_dtype

CPU = Cpu()
REFERENCE = Numpy()
FLOATS = ["bfloat16", "float16", "float32", "float64"]


def both(name: str, *attributes: Any) -> tuple[Any, Any]:
    entries = CPU.entry(name), REFERENCE.entry(name)
    assert entries[0] is not None
    assert entries[1] is not None
    return CPU.read(entries[0](*attributes)), REFERENCE.read(entries[1](*attributes))


def test_known_answer() -> None:
    words = CPU.read(_native.random_bits(4, 0, 0, "uint32"))
    assert [f"{word:08x}" for word in words] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@pytest.mark.parametrize("count", [0, 1, 5, 64, 100_003])
@pytest.mark.parametrize("counter", [0, 2**32 - 3, 2**63])
def test_bits_are_those_of_the_reference(count: int, counter: int) -> None:
    got, expected = both("random_bits", count, 2**64 - 5, counter, as_dtype("uint32"))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniforms_are_those_of_the_reference(dtype: str) -> None:
    got, expected = both("random_uniform", (301, 7), -1.3, 0.7, as_dtype(dtype), 11, 5)
    assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_normals_are_close_to_the_reference(dtype: str) -> None:
    got, expected = both("random_normal", (501, 7), 0.5, 2.0, as_dtype(dtype), 11, 5)
    tolerance = {"bfloat16": 0.04, "float16": 5e-3, "float32": 1e-5, "float64": 1e-13}[dtype]
    difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    assert difference.max() <= tolerance


def test_threads_change_no_bit() -> None:
    before = _native._num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 4):
            _native._set_num_threads(threads)
            normal = _native.random_normal((123_457,), 0.0, 1.0, "float32", 3, 4)
            uniform = _native.random_uniform((123_457,), 0.0, 1.0, "float64", 3, 4)
            results.append(CPU.read(normal).tobytes() + CPU.read(uniform).tobytes())
    finally:
        _native._set_num_threads(before)
    assert results == [results[0]] * 4
