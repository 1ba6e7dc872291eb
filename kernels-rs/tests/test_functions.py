"""Functions of float32 with a form of their own in AVX-512: values, special values, places."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import as_dtype

Array = np.ndarray[Any, Any]
DEVICE = Cpu()
INF, NAN = math.inf, math.nan
# name: the function of a float64, and its values at inf, -inf, nan, 0.0 and -0.0
FUNCTIONS: dict[str, tuple[Any, list[float]]] = {
    "erf": (math.erf, [1.0, -1.0, NAN, 0.0, -0.0]),
    "exp": (math.exp, [INF, 0.0, NAN, 1.0, 1.0]),
    "log": (math.log, [INF, NAN, NAN, -INF, -INF]),
    "sigmoid": (lambda x: 1.0 / (1.0 + math.exp(-x)), [1.0, 0.0, NAN, 0.5, 0.5]),
    "silu": (lambda x: x / (1.0 + math.exp(-x)), [INF, -0.0, NAN, 0.0, -0.0]),
    "tanh": (math.tanh, [1.0, -1.0, NAN, 0.0, -0.0]),
}
EDGES = [INF, -INF, NAN, 0.0, -0.0]


def applied(name: str, x: Array) -> Array:
    primitive = DEVICE.upload(x, as_dtype(x.dtype))
    return DEVICE.read(getattr(_native, name)(primitive))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_special_values_are_exact(name: str) -> None:
    want = np.array(FUNCTIONS[name][1], np.float32)
    got = applied(name, np.array(EDGES, np.float32))
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    assert np.signbit(got[known]).tolist() == np.signbit(want[known]).tolist()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_values_are_within_two_units_in_the_last_place(name: str) -> None:
    sizes = np.concatenate([np.logspace(-45, 1.9, 3001), np.linspace(0.01, 12, 3001)])
    x = np.concatenate([sizes, -sizes]).astype(np.float32)
    x = np.abs(x[x != 0]) if name == "log" else x
    exact = np.array([FUNCTIONS[name][0](float(value)) for value in x])
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    off = np.abs(applied(name, x) - exact) / unit
    assert off.max() <= 2, f"{name}({x[off.argmax()]!r}) is off by {off.max()} ulp"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_value_does_not_depend_on_its_place_in_a_run(name: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([np.array(EDGES), rng.normal(0, 4, 150)]).astype(np.float32)
    whole = applied(name, x).view(np.uint32)
    for length in range(1, 80):
        assert (applied(name, x[:length]).view(np.uint32) == whole[:length]).all(), length
        assert (applied(name, x[length:]).view(np.uint32) == whole[length:]).all(), length
