"""Running extremes and distances of the CPU backend against the definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu
from phlox_tensor import as_dtype
from phlox_tensor.reference import statistics

Array = np.ndarray[Any, Any]
CPU = Cpu()
LINE = [0.0, -0.0, 1.0, 1.0, -np.inf, np.inf, np.inf, 2.0, np.nan, 3.0, np.nan, np.inf]


def run(name: str, arrays: list[Array], *attributes: Any) -> Any:
    entry = CPU.entry(name)
    assert entry is not None, name
    return entry(*(CPU.upload(a, as_dtype(a.dtype.name)) for a in arrays), *attributes)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_last_of_equals_and_nan_win(name: str, dtype: str, axis: int) -> None:
    floats = dtype.startswith("float")
    line = np.array(LINE if floats else [3, 3, 0, 7, 7, 1, 0, 9, 9, 2, 0, 9], dtype)
    x = np.stack([line, line[::-1], np.roll(line, 3)])
    found = [CPU.read(part) for part in run(name, [x], axis)]
    values, places = statistics.running(x, axis, largest=name == "cummax")
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], places)
    if floats:
        np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(values))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
@pytest.mark.parametrize("axis", [0, 1])
def test_nothing_has_no_extremes(shape: tuple[int, int], axis: int) -> None:
    for part in run("cummax", [np.zeros(shape, np.float32)], axis):
        assert CPU.read(part).shape == shape


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
def test_distances_from_infinity_and_nan(p: float) -> None:
    rows = np.array([[0, 0], [1, 2], [-0.0, 1], [np.inf, 0], [-np.inf, 1], [np.nan, 1]], np.float32)
    found = CPU.read(run("cdist", [rows, rows], p))
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, statistics.cdist(rows, rows, p), rtol=1e-6, atol=1e-7)
