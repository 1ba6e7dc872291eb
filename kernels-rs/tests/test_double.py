"""Functions of float64, powers by one number, counts and searches: beside libm and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_kernels import Cpu

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, INF, -INF, NAN, 5e-324, -5e-324, 1.0, -1.0]
NEAR = {  # name: libm's, where it is drawn, units in the last place
    "cos": (math.cos, (-1e6, 1e6), 2.0),
    "erf": (math.erf, (-6.5, 6.5), 2.0),
    "exp": (math.exp, (-745.0, 709.0), 2.0),
    "log": (math.log, (1e-300, 1e3), 2.0),
    "sin": (math.sin, (-1e6, 1e6), 2.0),
    "tanh": (math.tanh, (-3.0, 3.0), 3.0),
}


def _called(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return INF
    except ValueError:  # of log, and of functions at infinities
        return -INF if x == 0 else NAN


@pytest.mark.parametrize("name", sorted(NEAR))
def test_functions_of_float64_are_near_those_of_libm(name: str) -> None:
    function, (low, high), most = NEAR[name]
    random = np.random.default_rng(1)
    drawn = random.uniform(low, high, 20_000)
    small = random.uniform(0.1, 2.0, 20_000)
    x = np.concatenate([drawn, small, 2.0 ** random.uniform(-40, 9, 20_000), SPECIAL])
    x = np.concatenate([x, np.arange(1, 2000) * (math.pi / 2), [1e22, 3e300]])
    got = getattr(pt.asarray(x, device=Cpu()), name)().numpy()
    want = np.array([_called(function, float(each)) for each in x])
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    np.testing.assert_array_equal(np.isfinite(got[~same]), np.isfinite(want[~same]))
    off = np.abs(got[~same] - want[~same]) / np.spacing(np.abs(want[~same]))
    assert off.max(initial=0.0) <= most
    zeros = (want == 0) & np.isin(x, [0.0])
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.5, 0.5, 2.0, 3.0, 4.0])
def test_powers_by_one_number_are_those_of_ieee_754(exponent: float, dtype: Any) -> None:
    random = np.random.default_rng(2)
    x = np.array([*SPECIAL, *(2.0 ** random.uniform(-20, 20, 2000)), -2.5, -3.0], dtype)
    got = (pt.asarray(x, device=Cpu()) ** exponent).numpy()
    want = np.array([_power(float(each), exponent) for each in x]).astype(dtype)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    off = np.abs(got[~same] - want[~same]) / np.spacing(np.abs(want[~same]))
    assert off.max(initial=0.0) <= 2
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


def _power(x: float, exponent: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float_power(x, exponent)) if exponent != 0.5 else _root(x)


def _root(x: float) -> float:
    """NumPy's power of 0.5 is a square root, which differs at -0.0 and -inf."""
    if x in (0, -INF):
        return abs(x)
    return math.sqrt(x) if x > 0 else NAN


def test_counts_are_of_the_default_integer_type() -> None:
    for device in (Cpu(), Cpu(int="int32")):
        x = pt.asarray([1, 3, 3], dtype="uint8", device=device)
        counts = pt.bincount(x, minlength=5)
        assert counts.dtype is device.default_int
        assert counts.tolist() == [0, 1, 0, 2, 0]
        places = pt.searchsorted(pt.asarray([1, 3], device=device), pt.asarray(2, device=device))
        assert places.dtype is device.default_int
        boxes = pt.asarray([[0.0, 0.0, 1.0, 1.0]], device=device)
        assert pt.nms(boxes, pt.asarray([1.0], device=device)).dtype is device.default_int


def test_distances_of_numbers_far_apart_and_next_to_each_other() -> None:
    x = pt.asarray([[1e30, 1.0], [1e-30, 0.0], [0.0, 0.0]], device=Cpu())
    found = pt.cdist(x, x).numpy()
    wanted = [[0, 1e30, 1e30], [1e30, 0, 1e-30], [1e30, 1e-30, 0]]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    rows = np.random.default_rng(3).standard_normal((70, 300)).astype(np.float32)
    gaps = rows[:, None].astype(np.float64) - rows[None]
    found = pt.cdist(pt.asarray(rows, device=Cpu()), pt.asarray(rows, device=Cpu())).numpy()
    np.testing.assert_allclose(found, np.sqrt((gaps**2).sum(-1)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("exponent", [2.5, -7.0, 1.0 / 3, 1e4, -1e-3])
def test_powers_of_float64_are_near_those_of_libm(exponent: float) -> None:
    random = np.random.default_rng(5)
    x = np.concatenate([SPECIAL, 2.0 ** random.uniform(-60, 60, 5000), random.normal(size=5000)])
    x = np.concatenate([x, 1 + random.normal(size=5000) * 1e-3])
    got = (pt.asarray(x, device=Cpu()) ** exponent).numpy()
    with np.errstate(all="ignore"):
        want = np.float_power(x, exponent)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    off = np.abs(got[~same] - want[~same]) / np.spacing(np.abs(want[~same]))
    assert off.max(initial=0.0) <= 2
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("given", [{}, {"nan": INF}, {"posinf": NAN, "nan": 3.0}, {"neginf": INF}])
def test_what_is_no_number_is_replaced_as_by_the_reference(given: Any, dtype: Any) -> None:
    x = np.array([1.5, NAN, INF, -INF, -0.0, 65000.0, *np.arange(40.0)])
    x = x.reshape(2, 23)
    found = [
        pt.asarray(x, dtype=dtype, device=device).T.nan_to_num(**given).astype("float64").numpy()
        for device in (Cpu(), pt.Numpy())
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(found[1]))


def test_a_number_that_is_broadcast_is_replaced() -> None:
    for x in (INF, NAN, 2.0):
        row = pt.asarray([x], device=Cpu()).broadcast_to((3, 70))
        want = np.nan_to_num(np.full((3, 70), x, np.float32), nan=5.0, posinf=7.0)
        np.testing.assert_array_equal(row.nan_to_num(nan=5.0, posinf=7.0).numpy(), want)
        np.testing.assert_array_equal(row.nan_to_num().numpy(), np.nan_to_num(row.numpy()))


def test_digamma_has_a_pole_on_both_sides_of_zero() -> None:
    for device in (Cpu(), pt.Numpy()):
        assert pt.asarray([0.0, -0.0], device=device).digamma().tolist() == [-INF, INF]
