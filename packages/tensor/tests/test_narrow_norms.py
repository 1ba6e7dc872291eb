"""Norms and deviations of float16 square in float32: their squares leave float16, they do not."""

from __future__ import annotations

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import Numpy, linalg

VALUES = np.array([[300.0, -290.0, 500.0], [1e-4, 2e-4, -3e-4]], np.float16)
WIDE = VALUES.astype(np.float64)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_norms_and_deviations_of_float16_are_those_of_wider_types_rounded(axis: int | None) -> None:
    x = pt.asarray(VALUES, device=Numpy())
    axes = (0, 1) if axis is None else axis
    for got, want in (
        (x.vector_norm(axis=axis), np.sqrt((WIDE**2).sum(axis=axes))),
        (x.std(axis=axis), WIDE.std(axis=axes)),
    ):
        assert got.dtype is pt.float16
        assert np.allclose(got.numpy(), want, rtol=2.0**-10)


def test_norms_of_matrices_in_float16_are_finite() -> None:
    found = linalg.matrix_norm(pt.asarray(VALUES, device=Numpy()))
    assert float(found) == pytest.approx(np.linalg.norm(WIDE), rel=2.0**-10)
