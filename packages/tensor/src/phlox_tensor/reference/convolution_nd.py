"""Convolutions of any number of axes, by one product for each place of the window."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from ..shapes._window import sizes
from ._precision import widen

Array = np.ndarray[Any, Any]


def _under(start: Any, stride: Any, size: Any) -> tuple[slice, ...]:
    """What one place of the window reads."""
    spans = zip(start, stride, size, strict=True)
    return (slice(None), slice(None), *(slice(i, i + (n - 1) * s + 1, s) for i, s, n in spans))


def _places(kernel: Any, dilation: Any) -> Any:
    for place in product(*map(range, kernel)):
        yield place, [i * d for i, d in zip(place, dilation, strict=True)]


def conv(
    x: Array, weight: Array, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    size = sizes("conv", x.shape[2:], weight.shape[2:], stride, padding, dilation)
    wide, kernels = np.pad(widen(x), ((0, 0), (0, 0), *padding)), widen(weight)
    n, out = x.shape[0], weight.shape[0]
    y = np.zeros((n, groups, out // groups, *size), wide.dtype)
    for place, start in _places(weight.shape[2:], dilation):
        view = wide[_under(start, stride, size)]
        view = view.reshape(n, groups, x.shape[1] // groups, *size)
        part = kernels[(slice(None), slice(None), *place)].reshape(groups, out // groups, -1)
        y += np.einsum("ngc...,goc->ngo...", view, part)
    y = y.reshape(n, out, *size)
    if bias is not None:
        y = y + widen(bias).reshape(-1, *[1] * len(size))
    return y.astype(x.dtype)


def conv_transpose(
    x: Array,
    weight: Array,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
) -> Array:
    wide, kernels = widen(x), widen(weight)
    n, channels, *size = x.shape
    kernel, out = weight.shape[2:], weight.shape[1]
    spans = zip(size, kernel, stride, output_padding, dilation, strict=True)
    whole = [(m - 1) * s + d * (k - 1) + 1 + extra for m, k, s, extra, d in spans]
    y = np.zeros((n, groups * out, *whole), wide.dtype)
    grouped = wide.reshape(n, groups, channels // groups, *size)
    for place, start in _places(kernel, dilation):
        part = kernels[(slice(None), slice(None), *place)].reshape(groups, -1, out)
        added = np.einsum("ngc...,gco->ngo...", grouped, part).reshape(n, groups * out, *size)
        y[_under(start, stride, size)] += added
    cut = [slice(low, m - high) for (low, high), m in zip(padding, whole, strict=True)]
    y = y[(slice(None), slice(None), *cut)]
    if bias is not None:
        y = y + widen(bias).reshape(-1, *[1] * len(size))
    return y.astype(x.dtype)
