"""Derivatives that count: float16 holds no count from 65,520 on, and few beyond 2,048."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_autodiff import Autodiff, grad
from phlox_tensor import Numpy, Tensor

MANY = 70_000
DEVICE = Autodiff(Numpy())
RNG = np.random.default_rng(0)


def gradient(f: Callable[[Tensor[Any]], Tensor[Any]], x: Any, dtype: str) -> np.ndarray[Any, Any]:
    found = grad(f)(pt.asarray(x, dtype=dtype, device=DEVICE))
    assert found.dtype is pt.DTYPES[dtype]
    return found.numpy().astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0])
def test_many_ties_share_the_slope_of_an_extreme(name: str, dtype: str, axis: int | None) -> None:
    got = gradient(lambda x: getattr(x, name)(axis=axis).sum() * 64.0, np.zeros((MANY, 1)), dtype)
    np.testing.assert_allclose(got, np.full((MANY, 1), 64 / MANY), rtol=2**-8)


@pytest.mark.parametrize("update", ["max", "min"])
def test_many_ties_share_the_slope_of_a_scattered_extreme(update: str) -> None:
    indices = pt.asarray(np.zeros(MANY, np.int64), device=DEVICE)

    def spread(values: Tensor[Any]) -> Tensor[Any]:
        return values.zeros((1,)).scatter(indices, values, axis=0, update=update).sum() * 64.0

    got = gradient(spread, np.zeros(MANY), "float16")
    np.testing.assert_allclose(got, np.full(MANY, 64 / (MANY + 1)), rtol=2**-10)


def scaled(name: str) -> Callable[[Tensor[Any]], Tensor[Any]]:
    return lambda x: getattr(x, name)() * 1024.0


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_slopes_of_moments_over_many_elements(dtype: str) -> None:
    x = RNG.standard_normal(MANY).astype(dtype) * 10
    wide = x.astype(np.float64)
    gaps, size = wide - wide.mean(), wide.std()
    rtol = 2**-9 if dtype == "float16" else 2**-20
    atol = 2**-24 if dtype == "float16" else 1e-8
    wanted = {"mean": np.full(MANY, 1 / MANY), "std": gaps / size / MANY, "var": gaps * 2 / MANY}
    for name, want in wanted.items():
        got = gradient(scaled(name), x, dtype)
        np.testing.assert_allclose(got, want * 1024, rtol=rtol, atol=atol, err_msg=name)


def test_slopes_of_a_batch_norm_over_many_elements() -> None:
    x = (RNG.standard_normal((MANY, 1)) + 10).astype(np.float16)
    one = pt.ones(1, dtype="float16", device=DEVICE)
    mean, variance = one * 8, one * 16

    def weighted(weight: Tensor[Any]) -> Tensor[Any]:
        held = pt.asarray(x, device=DEVICE)
        return pt.batch_norm(held, weight, one, mean=mean, var=variance).sum()

    got = gradient(weighted, [1.0], "float16")
    np.testing.assert_allclose(got, [(x.astype(np.float64) - 8).sum() / 4], rtol=2**-8)


@pytest.mark.parametrize("offset", [1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("name", ["std", "var", "var_mean"])
def test_slopes_of_moments_of_rows_far_from_0(name: str, offset: float) -> None:
    x = (RNG.standard_normal((3, 1000)) + offset).astype(np.float32)
    wide = x.astype(np.float64)
    gaps = wide - wide.mean(axis=1, keepdims=True)
    size = wide.std(axis=1, keepdims=True)
    want = gaps / size / 1000 if name == "std" else gaps * 2 / 1000

    def moment(x: Tensor[Any]) -> Tensor[Any]:
        found = getattr(pt, name)(x, axis=1)
        return (found[0] if isinstance(found, tuple) else found).sum()

    got = gradient(moment, x, "float32")
    assert np.abs(got - want).max() <= 2**-20 * np.abs(want).max()
