"""nan among elements that are put in order: bfloat16 of ml_dtypes has no place for it."""

from __future__ import annotations

import math

import pytest

import phlox_tensor as pt
from phlox_tensor import Numpy


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("invert", [False, True])
def test_a_nan_hides_no_element_that_is_looked_for(dtype: str, invert: bool) -> None:
    device = Numpy()
    x = pt.asarray([1.0, math.nan, 2.0], dtype=dtype, device=device)
    among = pt.asarray([1.0, math.nan, 0.0] * 10, dtype=dtype, device=device)
    found = pt.isin(x, among, invert=invert)
    assert found.shape == (3,)
    assert found.dtype is pt.bool_
    assert found.tolist() == [not invert, invert, invert]
