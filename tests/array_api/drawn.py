"""What the tests of the array API share: drawn arrays, and when results agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

Array = np.ndarray[Any, Any]
FLOATS = ("float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
NUMERIC = FLOATS + INTS
ANY = (*NUMERIC, "bool")
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
often = pytest.mark.parametrize("examples", [6, pytest.param(200, marks=pytest.mark.long)])


def arrays(dtype: str, shape: Any = SHAPES, low: int = -9, high: int = 9) -> Any:
    """Arrays of a type with values in an interval, ties among them."""
    if dtype == "bool":
        return hnp.arrays(dtype, shape)
    if dtype in FLOATS:
        width: Any = 8 * np.dtype(dtype).itemsize
        return hnp.arrays(dtype, shape, elements=st.floats(low, high, width=width))
    low = max(low, 0) if dtype in UNSIGNED else low
    return hnp.arrays(dtype, shape, elements=st.integers(low, high))


def hold(examples: int, check: Callable[..., None], **drawn: Any) -> None:
    """Run a check over drawn arguments."""
    quick = settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    quick(given(**drawn)(check))()


def same(got: Any, want: Any) -> None:
    """Shape, type and values agree; floats but for a few units in the last place."""
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.name == want.dtype.name
    if want.dtype.kind == "f":
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(got.numpy(), want, rtol=32 * eps, atol=64 * eps)
    else:
        np.testing.assert_array_equal(got.numpy(), want)
