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
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


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
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


def softplus(x: Array) -> Array:
    wide = wide64(x)
    return (np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))).astype(x.dtype)


def silu(x: Array) -> Array:
    wide = wide64(x)
    with np.errstate(invalid="ignore"):
        out = wide * wide64(sigmoid(wide))
    return np.where(wide == -np.inf, 0.0, out).astype(x.dtype)


def silu_backward(g: Array, x: Array) -> Array:
    wide = wide64(x)
    s = wide64(sigmoid(wide))
    with np.errstate(invalid="ignore"):
        bend = np.where(np.isinf(wide), 0.0, wide * s * (1 - s))
    return (wide64(g) * (s + bend)).astype(x.dtype)
