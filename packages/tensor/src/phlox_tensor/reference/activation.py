"""Activations that NumPy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._erf import erfc64
from ._precision import wide64

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    wide = wide64(x)
    e = np.exp(-np.abs(wide))
    return np.where(wide >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def gelu(x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore"):
        out = 0.5 * wide * erfc64(-wide / np.sqrt(2.0))
    return np.where(wide == -np.inf, -0.0, out).astype(x.dtype)


def gelu_backward(g: Array, x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore", over="ignore"):
        slope = 0.5 * erfc64(-wide / np.sqrt(2.0))
        bump = wide * np.exp(-0.5 * wide * wide) / np.sqrt(2.0 * np.pi)
    bump = np.where(np.isinf(wide), 0.0, bump)
    return (wide64(g) * (slope + bump)).astype(x.dtype)


def gelu_tanh(x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore", over="ignore"):
        bend = np.tanh(np.sqrt(2.0 / np.pi) * (wide + 0.044715 * wide**3))
        out = 0.5 * wide * (1 + bend)
    return np.where(wide == -np.inf, -0.0, out).astype(x.dtype)


def gelu_tanh_backward(g: Array, x: Array) -> Array:
    near = np.clip(wide64(x), -40.0, 40.0)  # beyond, the slope is 0 or 1
    v = np.sqrt(8.0 / np.pi) * (near + 0.044715 * near**3)
    slope = np.sqrt(8.0 / np.pi) * (1 + 3 * 0.044715 * near**2)
    s = sigmoid(v)
    return (wide64(g) * (s + near * slope * s * sigmoid(-v))).astype(x.dtype)


def softplus(x: Array) -> Array:
    wide = wide64(x)
    return (np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))).astype(x.dtype)


def silu(x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore"):
        out = wide * wide64(sigmoid(wide))
    return np.where(wide == -np.inf, -0.0, out).astype(x.dtype)


def silu_backward(g: Array, x: Array) -> Array:
    wide = wide64(x)
    s = wide64(sigmoid(wide))
    with np.errstate(invalid="ignore"):
        bend = np.where(np.isinf(wide), 0.0, wide * s * (1 - s))
    return (wide64(g) * (s + bend)).astype(x.dtype)


def glu(x: Array, axis: int) -> Array:
    first, second = np.split(wide64(x), 2, axis=axis)
    return (first * wide64(sigmoid(second))).astype(x.dtype)


def mish(x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore"):
        out = wide * np.tanh(wide64(softplus(wide)))
    return np.where(wide == -np.inf, -0.0, out).astype(x.dtype)


def prelu(x: Array, slope: Array) -> Array:
    line = slope.reshape(-1, *[1] * max(x.ndim - 2, 0))
    return np.where(x > 0, x, x * line).astype(x.dtype).reshape(x.shape)


def quiet_softmax(x: Array, axis: int) -> Array:
    wide = wide64(x)
    zeros = np.zeros((*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    more = np.concatenate([wide, zeros], axis=axis)  # a further choice with the logit 0
    e = np.exp(more - more.max(axis=axis, keepdims=True))
    whole = e / e.sum(axis=axis, keepdims=True)
    return np.take(whole, range(x.shape[axis]), axis=axis).astype(x.dtype)


def selu(x: Array) -> Array:
    wide = wide64(x)
    low = 1.6732632423543772 * np.expm1(np.minimum(wide, 0))
    return (1.0507009873554805 * np.where(wide > 0, wide, low)).astype(x.dtype)


def softmin(x: Array, axis: int) -> Array:
    wide = -wide64(x)
    top = wide.max(axis=axis, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(wide - np.where(top == -np.inf, 0.0, top))
    total = e.sum(axis=axis, keepdims=True)
    return (e / np.where(total == 0, 1.0, total)).astype(x.dtype)
