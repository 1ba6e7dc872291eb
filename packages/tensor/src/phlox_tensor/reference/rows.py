"""Softmax and normalization over rows or channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen
from .indexing import checked

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


def _moments(wide: Array, axis: tuple[int, ...]) -> tuple[Array, Array]:
    mean = np.mean(wide, axis=axis, keepdims=True)
    return mean, np.mean((wide - mean) ** 2, axis=axis, keepdims=True)


def layer_norm(x: Array, weight: Array | None, bias: Array | None, epsilon: float) -> Array:
    wide = widen(x)
    mean, variance = _moments(wide, (-1,))
    y = (wide - mean) / np.sqrt(variance + wide.dtype.type(epsilon))
    if weight is not None:
        y = y * widen(weight)
    if bias is not None:
        y = y + widen(bias)
    return y.astype(x.dtype)


def layer_norm_backward(
    g: Array, x: Array, weight: Array | None, epsilon: float
) -> tuple[Array, Array, Array]:
    wide, cotangent = widen(x), widen(g)
    mean, variance = _moments(wide, (-1,))
    scale = 1 / np.sqrt(variance + wide.dtype.type(epsilon))
    normal = (wide - mean) * scale
    inner = cotangent if weight is None else cotangent * widen(weight)
    dx = scale * (
        inner
        - np.mean(inner, axis=-1, keepdims=True)
        - normal * np.mean(inner * normal, axis=-1, keepdims=True)
    )
    rows = tuple(range(x.ndim - 1))
    dweight, dbias = np.sum(cotangent * normal, axis=rows), np.sum(cotangent, axis=rows)
    return dx.astype(x.dtype), dweight.astype(x.dtype), dbias.astype(x.dtype)


def rms_norm(x: Array, weight: Array | None, epsilon: float) -> Array:
    wide = widen(x)
    square = np.mean(wide * wide, axis=-1, keepdims=True)
    y = wide / np.sqrt(square + wide.dtype.type(epsilon))
    return (y if weight is None else y * widen(weight)).astype(x.dtype)


def rms_norm_backward(
    g: Array, x: Array, weight: Array | None, epsilon: float
) -> tuple[Array, Array]:
    wide, cotangent = widen(x), widen(g)
    square = np.mean(wide * wide, axis=-1, keepdims=True)
    scale = 1 / np.sqrt(square + wide.dtype.type(epsilon))
    normal = wide * scale
    inner = cotangent if weight is None else cotangent * widen(weight)
    dx = scale * (inner - normal * np.mean(inner * normal, axis=-1, keepdims=True))
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
    return widen(v).reshape(-1, *(1,) * (x.ndim - 2))


def batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, epsilon: float
) -> Array:
    wide = widen(x)
    scale = _channelwise(weight, x) / np.sqrt(_channelwise(var, x) + wide.dtype.type(epsilon))
    return ((wide - _channelwise(mean, x)) * scale + _channelwise(bias, x)).astype(x.dtype)


def batch_norm_train(
    x: Array, weight: Array, bias: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    mean, variance = _moments(widen(x), (0, *range(2, x.ndim)))
    mean, variance = mean.reshape(-1), variance.reshape(-1)
    y = batch_norm(widen(x), weight, bias, mean, variance, epsilon)
    return y.astype(x.dtype), mean.astype(x.dtype), variance.astype(x.dtype)


def batch_norm_backward(
    g: Array, x: Array, weight: Array, mean: Array, var: Array, epsilon: float
) -> tuple[Array, Array, Array]:
    wide, cotangent = widen(x), widen(g)
    axes = (0, *range(2, x.ndim))
    count = wide.dtype.type(x.size // max(x.shape[1], 1))
    scale = 1 / np.sqrt(_channelwise(var, x) + wide.dtype.type(epsilon))
    normal = (wide - _channelwise(mean, x)) * scale
    dbias, dweight = np.sum(cotangent, axis=axes), np.sum(cotangent * normal, axis=axes)
    with np.errstate(divide="ignore", invalid="ignore"):
        dx = (
            _channelwise(weight, x)
            * scale
            * (
                cotangent
                - _channelwise(dbias / count, x)
                - normal * _channelwise(dweight / count, x)
            )
        )
    return dx.astype(x.dtype), dweight.astype(x.dtype), dbias.astype(x.dtype)
