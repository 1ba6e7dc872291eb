"""Diagonals and products, by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen

Array = np.ndarray[Any, Any]


def cross(x1: Array, x2: Array, axis: int) -> Array:
    a, b = widen(x1), widen(x2)
    turns = [np.roll(x, -n, axis=axis) for n in (1, 2) for x in (a, b)]
    return (turns[0] * turns[3] - turns[2] * turns[1]).astype(x1.dtype)


def einsum(tensors: tuple[Array, ...], equation: str) -> Array:
    wide = [widen(x) for x in tensors]
    return np.asarray(np.einsum(equation, *wide)).astype(tensors[0].dtype)


def kron(x1: Array, x2: Array) -> Array:
    return np.kron(widen(x1), widen(x2)).astype(x1.dtype)
