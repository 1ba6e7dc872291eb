"""Softmax and normalization over rows or channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import wide64, widen
from .indexing import checked
from .reduction import Axes, centered, wide_mean

Array = np.ndarray[Any, Any]


def _shifted_exp(wide: Array, axis: int) -> Array:
    """exp(x - max), where a row of -inf gives zeros."""
    top = np.max(wide, axis=axis, keepdims=True) if wide.shape[axis] else wide
    safe = np.where(np.isneginf(top), 0, top)
    with np.errstate(invalid="ignore"):
        return np.exp(wide - safe)


def softmax(x: Array, axis: int) -> Array:
    if x.size == 0:
        return x.copy()
    e = _shifted_exp(widen(x), axis)
    s = np.sum(e, axis=axis, keepdims=True)
    return (e / np.where(s == 0, 1, s)).astype(x.dtype)


def log_softmax(x: Array, axis: int) -> Array:
    if x.size == 0:
        return x.copy()
    wide = widen(x)
    top = np.max(wide, axis=axis, keepdims=True)
    safe = np.where(np.isneginf(top), 0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.log(np.sum(np.exp(wide - safe), axis=axis, keepdims=True))
        out = wide - safe - np.where(np.isneginf(total), 0, total)
    return out.astype(x.dtype)


def softmax_backward(g: Array, y: Array, axis: int) -> Array:
    wide_g, wide_y = widen(g), widen(y)
    inner = np.sum(wide_g * wide_y, axis=axis, keepdims=True)
    return (wide_y * (wide_g - inner)).astype(g.dtype)


def log_softmax_backward(g: Array, y: Array, axis: int) -> Array:
    wide = widen(g)
    return (wide - np.exp(widen(y)) * np.sum(wide, axis=axis, keepdims=True)).astype(g.dtype)


def _scale(gaps: Array, axis: Axes, epsilon: float) -> Array:
    return 1 / np.sqrt(wide_mean(gaps**2, axis) + epsilon)


def layer_norm(x: Array, weight: Array | None, bias: Array | None, epsilon: float) -> Array:
    last = (x.ndim - 1,)
    _, gaps = centered(x, last)
    y = gaps * _scale(gaps, last, epsilon)
    if weight is not None:
        y = y * wide64(weight)
    if bias is not None:
        y = y + wide64(bias)
    return y.astype(x.dtype)


def layer_norm_backward(
    g: Array, x: Array, weight: Array | None, epsilon: float
) -> tuple[Array, Array, Array]:
    last, cotangent = (x.ndim - 1,), wide64(g)
    _, gaps = centered(x, last)
    scale = _scale(gaps, last, epsilon)
    normal = gaps * scale
    inner = cotangent if weight is None else cotangent * wide64(weight)
    _, distances = centered(inner, last)
    dx = scale * (distances - normal * wide_mean(inner * normal, last))
    rows = tuple(range(x.ndim - 1))
    dweight, dbias = np.sum(cotangent * normal, axis=rows), np.sum(cotangent, axis=rows)
    return dx.astype(x.dtype), dweight.astype(x.dtype), dbias.astype(x.dtype)


def rms_norm(x: Array, weight: Array | None, epsilon: float) -> Array:
    wide = wide64(x)
    y = wide * _scale(wide, (x.ndim - 1,), epsilon)
    return (y if weight is None else y * wide64(weight)).astype(x.dtype)


def rms_norm_backward(
    g: Array, x: Array, weight: Array | None, epsilon: float
) -> tuple[Array, Array]:
    last, wide, cotangent = (x.ndim - 1,), wide64(x), wide64(g)
    scale = _scale(wide, last, epsilon)
    normal = wide * scale
    inner = cotangent if weight is None else cotangent * wide64(weight)
    dx = scale * (inner - normal * wide_mean(inner * normal, last))
    dweight = np.sum(cotangent * normal, axis=tuple(range(x.ndim - 1)))
    return dx.astype(x.dtype), dweight.astype(x.dtype)


def cross_entropy(x: Array, target: Array) -> Array:
    index = checked("cross_entropy", target, x.shape[-1])[..., None]
    log_p = log_softmax(widen(x), -1)
    return -np.take_along_axis(log_p, index, -1)[..., 0].astype(x.dtype)


def cross_entropy_backward(g: Array, x: Array, target: Array) -> Array:
    index = checked("cross_entropy_backward", target, x.shape[-1])[..., None]
    out, share = softmax(widen(x), -1), widen(g)[..., None]
    np.put_along_axis(out, index, np.take_along_axis(out, index, -1) - 1, -1)
    return (out * share).astype(x.dtype)


def _channelwise(v: Array, x: Array) -> Array:
    return wide64(v).reshape(-1, *(1,) * (x.ndim - 2))


def _channel_axes(x: Array) -> Axes:
    return (0, *range(2, x.ndim))


def batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, epsilon: float
) -> Array:
    scale = _channelwise(weight, x) / np.sqrt(_channelwise(var, x) + epsilon)
    gaps = wide64(x) - _channelwise(mean, x)
    return (gaps * scale + _channelwise(bias, x)).astype(x.dtype)


def batch_norm_train(
    x: Array, weight: Array, bias: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    axes = _channel_axes(x)
    mean, gaps = centered(x, axes)
    variance = wide_mean(gaps**2, axes)
    scale = _channelwise(weight, x) / np.sqrt(variance + epsilon)
    y = gaps * scale + _channelwise(bias, x)
    mean, variance = mean.reshape(-1), variance.reshape(-1)
    return y.astype(x.dtype), mean.astype(x.dtype), variance.astype(x.dtype)


def batch_norm_backward(
    g: Array, x: Array, weight: Array, mean: Array, var: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    axes, cotangent = _channel_axes(x), wide64(g)
    scale = 1 / np.sqrt(_channelwise(var, x) + epsilon)
    gaps = wide64(x) - _channelwise(mean, x)
    rest = wide_mean(gaps, axes)  # what rounding took from the mean, unless another was given
    near = np.abs(rest) <= np.abs(_channelwise(mean, x)) / 256
    normal = (gaps - np.where(near, rest, 0)) * scale
    _, inner = centered(cotangent, axes)
    dx = _channelwise(weight, x) * scale * (inner - normal * wide_mean(cotangent * normal, axes))
    dbias, dweight = np.sum(cotangent, axis=axes), np.sum(cotangent * normal, axis=axes)
    return dx.astype(x.dtype), dweight.astype(x.dtype), dbias.astype(x.dtype)
