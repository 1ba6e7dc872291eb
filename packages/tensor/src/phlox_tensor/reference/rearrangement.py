"""Images in another order, by loops and by what NumPy has."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ..shapes._window import window_sizes
from ._precision import widen
from .indexing import checked

Array = np.ndarray[Any, Any]

# What NumPy calls the modes.
_MODES = {"circular": "wrap", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}


def pad_border(x: Array, padding: Any, mode: str) -> Array:
    return np.pad(x, padding, mode=_MODES[mode])  # type: ignore[call-overload]


def append_at(x: Array, values: Array, place: Array, axis: int) -> Array:
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    rest = np.where(places == place, values, np.zeros((), x.dtype))
    return np.where(places < place, x, rest)


def channel_shuffle(x: Array, groups: int) -> Array:
    order = np.arange(x.shape[1]).reshape(groups, -1).T.reshape(-1)
    return x[:, order]


def _columns(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """For each place of the window its number, and a slice of the padded image."""
    out = window_sizes("fold", size, kernel, stride, padding, dilation)
    for number, (i, j) in enumerate(product(range(kernel[0]), range(kernel[1]))):
        y, x = i * dilation[0], j * dilation[1]
        rows = slice(y, y + (out[0] - 1) * stride[0] + 1, stride[0])
        yield number, (..., rows, slice(x, x + (out[1] - 1) * stride[1] + 1, stride[1]))


def unfold(x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Array:
    wide = np.pad(x, ((0, 0), (0, 0), *padding))
    places = _columns(x.shape[2:], kernel, stride, padding, dilation)
    columns = np.stack([wide[cut] for _, cut in places], axis=2)
    n, channels, count, *out = columns.shape
    return columns.reshape(n, channels * count, prod(out))


def fold(x: Array, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Array:
    n, lines = x.shape[0], kernel[0] * kernel[1]
    out = window_sizes("fold", size, kernel, stride, padding, dilation)
    parts = widen(x).reshape(n, x.shape[1] // lines, lines, *out)
    (top, bottom), (left, right) = padding
    whole = np.zeros((n, parts.shape[1], size[0] + top + bottom, size[1] + left + right))
    for number, cut in _columns(size, kernel, stride, padding, dilation):
        whole[cut] += parts[:, :, number]
    return whole[:, :, top : top + size[0], left : left + size[1]].astype(x.dtype)


def max_unpool(x: Array, indices: Array, size: Any) -> Array:
    lead, count = x.shape[:2], prod(x.shape[2:])
    out = np.zeros((*lead, int(np.prod(size))), x.dtype)
    places = checked("max_unpool", indices, out.shape[-1])
    np.put_along_axis(out, places.reshape(*lead, count), x.reshape(*lead, count), axis=-1)
    return out.reshape(*lead, *size)


def pixel_shuffle(x: Array, factor: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c // factor**2, h * factor, w * factor), x.dtype)
    for i, j in product(range(factor), repeat=2):
        out[..., i::factor, j::factor] = x[..., i * factor + j :: factor**2, :, :]
    return out


def pixel_unshuffle(x: Array, factor: int) -> Array:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c * factor**2, h // factor, w // factor), x.dtype)
    for i, j in product(range(factor), repeat=2):
        out[..., i * factor + j :: factor**2, :, :] = x[..., i::factor, j::factor]
    return out


def cartesian_prod(tensors: tuple[Array, ...]) -> Array:
    lines = np.meshgrid(*tensors, indexing="ij")
    return np.stack([line.reshape(-1) for line in lines], axis=1)
