"""Transposed convolution beside a scatter, written out, and numbers of PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_tensor import ArgumentError, ShapeError

Array = np.ndarray[Any, Any]
TWO = st.tuples(st.integers(1, 3), st.integers(1, 3))


def scattered(
    x: Array, w: Array, b: Array, stride: Any, padding: Any, extra: Any, dilation: Any, groups: int
) -> Array:
    """Every element of x adds its kernel, element by element."""
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, e, d in zip(
            x.shape[2:], w.shape[2:], stride, padding, extra, dilation, strict=True
        )
    ]
    inside, outside = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], outside * groups, *sizes)) + b[:, None, None]
    for n, c, i, j in np.ndindex(x.shape):
        for o, k, m in np.ndindex(w.shape[1:]):
            row = i * stride[0] + k * dilation[0] - padding[0]
            col = j * stride[1] + m * dilation[1] - padding[1]
            if 0 <= row < sizes[0] and 0 <= col < sizes[1]:
                y[n, c // inside * outside + o, row, col] += x[n, c, i, j] * w[c, o, k, m]
    return y


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 2), TWO, TWO, TWO, TWO, TWO, TWO, st.data())
def test_every_element_adds_its_kernel(
    groups: int,
    channels: Any,
    image: Any,
    kernel: Any,
    stride: Any,
    dilation: Any,
    pad: Any,
    data: Any,
) -> None:
    extra = tuple(
        data.draw(st.integers(0, max(s, d) - 1)) for s, d in zip(stride, dilation, strict=True)
    )
    padding = tuple(
        min(p, (d * (k - 1) + 1) // 2) for p, d, k in zip(pad, dilation, kernel, strict=True)
    )
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (2, channels[0] * groups, *image)).astype(np.float64)
    w = rng.integers(-4, 5, (channels[0] * groups, channels[1], *kernel)).astype(np.float64)
    b = rng.integers(-4, 5, channels[1] * groups).astype(np.float64)
    images, weight, bias = (pt.asarray(array) for array in (x, w, b))
    y = pt.conv_transpose2d(
        images,
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=extra,
        dilation=dilation,
        groups=groups,
    )
    want = scattered(x, w, b, stride, padding, extra, dilation, groups)
    assert y.shape == want.shape
    assert np.array_equal(y.numpy(), want)


def test_numbers_of_pytorch() -> None:
    x = pt.arange(1.0, 5.0).reshape((1, 1, 2, 2))
    w = pt.arange(1.0, 10.0).reshape((1, 1, 3, 3))
    y = pt.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)
    # torch.nn.functional.conv_transpose2d of PyTorch 2.15, same arguments
    want = [[5, 14, 10, 12], [14, 36, 24, 30], [15, 34, 20, 24], [24, 55, 32, 36]]
    assert y.numpy().tolist() == [[want]]


def test_it_is_the_adjoint_of_the_convolution() -> None:
    rng = np.random.default_rng(1)
    for stride, padding in product((1, 2), (0, 1)):
        x = pt.asarray(rng.standard_normal((2, 4, 6, 6)))
        w = pt.asarray(rng.standard_normal((5, 4, 2, 2)))
        y = pt.conv2d(x, w, stride=stride, padding=padding)
        g = pt.asarray(rng.standard_normal(y.shape))
        back = pt.conv_transpose2d(g, w, stride=stride, padding=padding)
        assert back.shape == x.shape
        assert np.isclose((y * g).sum().item(), (back * x).sum().item())


def test_sizes_are_checked() -> None:
    x, w = pt.zeros((1, 2, 3, 3)), pt.zeros((2, 3, 2, 2))
    with pytest.raises(ArgumentError, match="output_padding too large"):
        pt.conv_transpose2d(x, w, stride=2, output_padding=2)
    with pytest.raises(ArgumentError, match="output_padding is malformed"):
        pt.conv_transpose2d(x, w, output_padding=-1)
    with pytest.raises(ShapeError, match="channels do not fit"):
        pt.conv_transpose2d(x, pt.zeros((3, 2, 2, 2)))
    with pytest.raises(ShapeError, match="bias does not fit"):
        pt.conv_transpose2d(x, w, pt.zeros((2,)))
    with pytest.raises(ShapeError, match="padding larger than the result"):
        pt.conv_transpose2d(x, w, padding=3)
