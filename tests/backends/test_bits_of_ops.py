"""Kernels of several ops on a GPU give the bits of the ops, also where real numbers cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Fusion, Wgpu

C = 12582912.0  # 1.5·2^23, by which a float is rounded to a whole number
X = np.array([0.3, 1.7, -2.4, np.inf, np.nan, 5e5, -0.0, 3e38], np.float32)
Y = X[::-1].copy() * np.float32(0.7)
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "rounded": lambda x, y: (x + y * 0.0 + C) - C,
    "itself": lambda x, y: (x - x) + y,
    "products": lambda x, y: x * y - x * y,
    "product and sum": lambda x, y: x * y + x,
    "lost digits": lambda x, y: (x + y) - (y - ((x + y) - x)),
    "differences": lambda x, y: (x - y) - (x - y),
    "negated": lambda x, y: (-x + x) * y,
    "scaled": lambda x, y: (x * C) / C - y,
    "quotient": lambda x, y: x / x + y / y,
    "root": lambda x, y: x.abs().sqrt() * x.abs().sqrt() - y,
    "distributed": lambda x, y: x * y + x * 3.0,
    "folded": lambda x, y: ((x + C) - C).sum(axis=-1, keepdims=True) + y * 0.0,
    "row and elements": lambda x, y: (y - y.max(axis=-1, keepdims=True)) - (x - x),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_kernel_gives_the_bits_of_its_ops(name: str) -> None:
    formula, gpu = FORMULAS[name], Wgpu()
    finite = "fold" in name or "row" in name  # sums of nan say nothing
    x, y = (np.nan_to_num(v, posinf=2.5, nan=7.3) % 1e4 if finite else v for v in (X, Y))
    want = formula(*(px.asarray(v, device=gpu) for v in (x, y))).numpy()
    lazy = formula(*(px.asarray(v, device=Fusion(gpu)) for v in (x, y))).numpy()
    np.testing.assert_array_equal(lazy, want)
    if not finite:  # a kernel holds no folds
        kernel = px.kernel(formula)(*(px.asarray(v, device=gpu) for v in (x, y)))
        np.testing.assert_array_equal(kernel.numpy(), want)
