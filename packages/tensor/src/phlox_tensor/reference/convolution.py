"""Convolutions, through views of all windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..shapes._window import window_sizes
from ._precision import widen
from ._windows import Pair, Sides, add_windows, cropped, padded, windows

Array = np.ndarray[Any, Any]


def conv2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, kernels = padded(widen(x), padding, 0), widen(weight)
    out = window_sizes("conv2d", x.shape[2:], weight.shape[2:], stride, padding, dilation)
    views = windows(wide, weight.shape[2:], stride, dilation, out)
    parts = [
        np.tensordot(view, kernel, axes=([1, 4, 5], [1, 2, 3])).transpose(0, 3, 1, 2)
        for view, kernel in zip(
            np.split(views, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    y = np.concatenate(parts, axis=1)
    if bias is not None:
        y = y + widen(bias)[:, None, None]
    return y.astype(x.dtype)


def conv2d_weight_grad(
    g: Array,
    x: Array,
    weight_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, cotangent = padded(widen(x), padding, 0), widen(g)
    views = windows(wide, weight_shape[2:], stride, dilation, g.shape[2:])  # type: ignore[arg-type]
    parts = [
        np.tensordot(part, view, axes=([0, 2, 3], [0, 2, 3]))
        for view, part in zip(
            np.split(views, groups, axis=1), np.split(cotangent, groups, axis=1), strict=True
        )
    ]
    return np.concatenate(parts, axis=0).astype(x.dtype)


def conv2d_input_grad(
    g: Array,
    weight: Array,
    input_shape: tuple[int, ...],
    stride: Pair,
    padding: Sides,
    dilation: Pair,
    groups: int,
) -> Array:
    kernels, cotangent = widen(weight), widen(g)
    whole = padded(np.zeros(input_shape, kernels.dtype), padding, 0)
    parts = [
        np.tensordot(part, kernel, axes=([1], [0]))  # (N, H', W', I, kh, kw)
        for part, kernel in zip(
            np.split(cotangent, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    columns = np.concatenate(parts, axis=3).transpose(0, 3, 1, 2, 4, 5)
    add_windows(whole, columns, stride, dilation)
    return cropped(whole, padding, input_shape).astype(g.dtype)


def conv_transpose2d(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Pair,
    padding: Sides,
    output_padding: Pair,
    dilation: Pair,
    groups: int,
) -> Array:
    wide, kernels = widen(x), widen(weight)
    out = weight.shape[1] * groups
    spans = zip(x.shape[2:], weight.shape[2:], stride, output_padding, dilation, strict=True)
    size = tuple((n - 1) * s + d * (k - 1) + 1 + extra for n, k, s, extra, d in spans)
    full = np.zeros((x.shape[0], out, *size), kernels.dtype)
    parts = [
        np.tensordot(part, kernel, axes=([1], [0]))  # (N, H, W, O / groups, kh, kw)
        for part, kernel in zip(
            np.split(wide, groups, axis=1), np.split(kernels, groups), strict=True
        )
    ]
    columns = np.concatenate(parts, axis=3).transpose(0, 3, 1, 2, 4, 5)
    add_windows(full, columns, stride, dilation)
    (top, bottom), (left, right) = padding
    y = full[:, :, top : size[0] - bottom, left : size[1] - right]
    if bias is not None:
        y = y + widen(bias)[:, None, None]
    return y.astype(x.dtype)
