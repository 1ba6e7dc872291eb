"""Near the ends of a type: small shares of a softmax, infinite weights, large deviations."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Backend, Cpu, Numpy, Tensor

DEVICES = (Cpu(), Numpy())
SMALL = -87.3  # 1.22e-38; the smallest normal number is 1.18e-38
X = np.array([[0.0, SMALL], [SMALL, 0.0]], np.float32)


def slope(function: Callable[[Tensor[Any]], Tensor[Any]], x: Tensor[Any]) -> Tensor[Any]:
    return px.grad(function)(x.to_device(Autodiff(x.device)))


def loss(x: Tensor[Any]) -> Tensor[Any]:
    return px.cross_entropy(x[:1], px.asarray([0], device=x.device)).sum()


def attended(x: Tensor[Any]) -> Tensor[Any]:
    """The share of the second key, whose value is 1, for queries of 1."""
    keys, values = x[0].reshape(1, 2, 1), px.asarray([[[0.0], [1.0]]], device=x.device)
    return px.attention(x.zeros((1, 1, 1)) + 1, keys, values, scale=1.0)


SHARES: dict[str, Callable[[Tensor[Any]], Tensor[Any]]] = {
    "attention": lambda x: attended(x).reshape(()),
    "exp": lambda x: x.exp()[0, 1],
    "gradient of cross_entropy": lambda x: slope(loss, x)[0, 1],
    "gradient of log_softmax": lambda x: -slope(lambda x: x.log_softmax(axis=1)[0, 0], x)[0, 1],
    "gradient of logsumexp": lambda x: slope(lambda x: x[0].logsumexp(), x)[0, 1],
    "log_softmax": lambda x: x.log_softmax(axis=1).exp()[0, 1],
    "sigmoid": lambda x: x.sigmoid()[0, 1],
    "softmax": lambda x: x.softmax(axis=1)[0, 1],
    "softmax of columns": lambda x: x.softmax(axis=0)[1, 0],
    "softmax of long rows": lambda x: px.concat([x, x.zeros((2, 40)) - 99], 1).softmax(axis=1)[
        0, 1
    ],
    "softmin": lambda x: (-x).softmin(axis=1)[0, 1],
}


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("name", SHARES)
def test_a_share_that_is_a_normal_number_is_no_zero(name: str, device: Backend) -> None:
    got = SHARES[name](px.asarray(X, device=device)).item()
    assert got == pytest.approx(exp(float(np.float32(SMALL))), rel=1e-5, abs=0)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize(("channels", "groups"), [(1, 1), (16, 1), (16, 16)])
def test_an_infinite_weight_times_the_zeros_around_an_image_is_nan(
    channels: int, groups: int, device: Backend
) -> None:
    x = px.ones((2, channels, 8, 8), device=device)
    weight = np.ones((channels, channels // groups, 3, 3), np.float32)
    weight[:, :, 0, 0] = np.inf  # what the first row and column have outside of the image
    y = px.conv2d(x, px.asarray(weight, device=device), padding=1, groups=groups).numpy()
    assert np.isnan(y[:, :, 0]).all()
    assert np.isnan(y[:, :, :, 0]).all()
    assert (y[:, :, 1:, 1:] == np.inf).all()


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [2, 7, 1000])
def test_a_deviation_is_in_range_where_the_variance_is_not(
    size: int, axis: int, device: Backend
) -> None:
    x = np.linspace(-1e20, 1e20, size, dtype=np.float32)
    rows = px.asarray(np.stack([x, x]) if axis else np.stack([x, x], 1), device=device)
    want = x.astype(np.float64).std()
    assert rows.std(axis=axis).tolist() == pytest.approx([want] * 2, rel=1e-6)
    assert (rows.var(axis=axis).numpy() == np.inf).all()


@pytest.mark.parametrize("device", DEVICES, ids=repr)
@pytest.mark.parametrize("value", [1e-20, 63.7, 12345.678, 1e20])
def test_equal_elements_have_no_deviation(value: float, device: Backend) -> None:
    x = px.asarray(np.full((3, 100), value, np.float32), device=device)
    assert (x.std(axis=1).numpy() == 0).all()
    assert (x.T.std(axis=0).numpy() == 0).all()
