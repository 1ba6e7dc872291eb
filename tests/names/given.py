"""Inputs on which differences show: not symmetric, with ties, signs, nan, infinities, and more."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_nan, _inf = np.nan, np.inf


def _float(values: Any) -> Any:
    return np.array(values, np.float32)


def _normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X: Final = _float([[1.5, -2.0, 0.25], [3.0, 0.5, 3.0], [-2.0, 2.0, -4.0]])
Y: Final = _float([[0.5, -1.0, 2.0], [0.0, 4.0, 1.0], [1.0, -3.0, 0.5]])
Z: Final = _float([[2.0, 1.0, -1.0], [0.5, 1.0, 2.0], [4.0, -1.0, 0.25]])
GIVEN: Final[dict[str, Any]] = {
    "bias": _normal(4, seed=5),
    "big": _float([10.0, 20.0, -20.0, -40.0, 40.0, 0.1]),
    "box": _normal(1, 2, 5, 5, 5),
    "c": _normal(2, 3, 4),
    "d": _normal(2, 3, 4, seed=1),
    "distinct": _float([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]]),
    "e": _normal(2, 4, 3, seed=2),
    "fold": _normal(1, 8, 4, seed=3),
    "fraction": _float([1.7, -1.7, 0.0, 2.5]),
    "grid": _normal(2, 3, 3, 2, seed=6) * np.float32(0.6),
    "half": np.fft.rfftn(_normal(3, 4, seed=5)).astype(np.complex64),
    "i": np.array([2, 0, 1]),
    "ii": np.array([[2, 0, 1], [0, 0, 2], [1, 2, 0]]),
    "image": _normal(2, 4, 6, 6),
    "k1": _normal(4, 2, 3, seed=2),
    "k2": _normal(4, 2, 3, 3, seed=3),
    "k3": _normal(2, 2, 2, 2, 2, seed=4),
    "key": _normal(1, 2, 4, 4, seed=9),
    "labels": np.array([[1, 2], [1, 1], [2, 1]]),
    "line": _normal(2, 4, 9),
    "long": np.sin(np.arange(64) ** 1.3).astype(np.float32),
    "lower": _float([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.5, -1.0, 1.0]]),
    "m": np.array([2, 2, -2, 3, 1], np.int32),
    "m8": np.array([[3, -2], [1, 4]], np.int8),
    "mask": np.array([[True, False, True], [False, False, True], [True, True, False]]),
    "n": np.array([7, -7, 3, 0, 5], np.int32),
    "n8": np.array([[1, 2], [-3, 4]], np.int8),
    "nans": _float([_nan, _nan]),
    "nine": _float([*range(9)]),
    "odds": _float([0.25, 0.5, 0.125, 0.75, 1.0]),
    "one": _float(3.0),
    "p": np.array([True, True, False, False]),
    "p5": _float([1.0, 0.0, 1.0, 1.0, 0.0]),
    "pieces": np.fft.rfft(_normal(17, 256, seed=6), axis=1).T.astype(np.complex64),
    "pooled": _normal(1, 1, 4, 4),
    "q": np.array([True, False, True, False]),
    "query": _normal(1, 2, 2, 4, seed=8),
    "repeated": _float([1.0, 1.0, 2.0, 2.0, 1.0, 3.0, 3.0]),
    "s": _float([_nan, _inf, -_inf, 0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 1e-8, 100.0]),
    "seen": np.array([[True, False, True, False], [False, True, True, True]]),
    "shares": _float([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]),
    "six": _float([*range(6)]),
    "some": _float([2.0, _nan, 1.0, 4.0, -1.0, 2.0]),
    "sound": _normal(1024),
    "sorted": _float([1.0, 2.0, 3.0]),
    "spd": _float([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "swapped": _float([[0.0, 1.0], [1.0, 0.0]]),
    "t": _float([1.0, 2.0, 3.0, 0.0, _nan, -2.0, 0.5, 2.0, -1.5, _inf, -3.0]),
    "targets": np.array([2, 0, 1]),
    "ten": _float([*range(10)]),
    "theta": _normal(2, 2, 3, seed=7),
    "u": _float([0.25, 0.5, 1e-8, 0.75, 0.125, 1.0]),
    "v": _float([2.0, _nan, 1.0, _inf, -1.0, 2.0]),
    "value": _normal(1, 2, 4, 4, seed=10),
    "w": _float([3.0, 1.0, 2.0, 2.0, 5.0, -1.0]),
    "w2": _float([1.0, 2.0, 7.0, 3.0, -1.0, 2.0]),
    "w3": _float([3.0, 1.0, -2.0]),
    "whole": _float([1.0, 2.0, 3.0, 0.0, -3.0, -2.0, 5.0, 2.0, -1.0, 4.0, -3.0]),
    "x": X,
    "y": Y,
    "z": Z,
    "zero": np.zeros((2, 2), np.float32),
}
