"""Distances and norms of float16 rows: squares leave the type, what is asked for does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import Numpy

ROWS = np.array([[300.0, -290.0, 500.0], [3.0, 4.0, 0.0]], np.float16)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_distances_of_float16_rows(p: float) -> None:
    x: Any = pt.asarray(ROWS, device=Numpy())
    found = nn.PairwiseDistance(p, 0.0)(x, x * 0)
    assert found.dtype is pt.float16
    want = np.linalg.norm(ROWS.astype(np.float64), p, axis=-1)
    assert np.allclose(found.numpy(), want, rtol=2.0**-10)


def test_float16_rows_are_alike_to_themselves() -> None:
    x: Any = pt.asarray(ROWS, device=Numpy())
    found = nn.CosineSimilarity()(x, x)
    assert found.dtype is pt.float16
    assert np.allclose(found.numpy(), 1.0, rtol=2.0**-10)


def test_responses_of_float16_are_those_of_float32() -> None:
    x: Any = pt.asarray(ROWS.reshape(1, 2, 3, 1), device=Numpy())
    layer = nn.LocalResponseNorm(2)
    found = layer(x)
    assert found.dtype is pt.float16
    want = layer(x.astype("float32")).numpy()
    assert np.allclose(found.numpy(), want, rtol=2.0**-10)
