"""Statistics of what lies far from 0, or whose squares leave the range of the type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu
from phlox_tensor import Numpy, as_dtype

RANDOM = np.random.default_rng(11)
BACKENDS = [Cpu(), Numpy()]


def up(backend: Any, values: Any, dtype: str = "float32") -> Any:
    return backend.upload(np.asarray(values).astype(as_dtype(dtype).numpy), as_dtype(dtype))


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("shape", [(400, 3), (2, 3, 20, 20)])
def test_gradients_of_batch_norm_do_not_depend_on_where_the_mean_lies(
    shape: tuple[int, ...], offset: float, backend: Any
) -> None:
    x = (RANDOM.standard_normal(shape) + offset).astype(np.float32).astype(np.float64)
    g = RANDOM.standard_normal(shape).astype(np.float32).astype(np.float64)
    axes = (0, *range(2, len(shape)))
    ones = np.ones(3)
    gaps = x - x.mean(axes, keepdims=True)
    scale = 1 / np.sqrt((gaps**2).mean(axes, keepdims=True) + 1e-5)
    normal = gaps * scale
    inner = g - g.mean(axes, keepdims=True)
    dx = scale * (inner - normal * (g * normal).mean(axes, keepdims=True))
    raw_x, raw_g, weight, bias = (up(backend, v) for v in (x, g, ones, 0 * ones))
    _, mean, var = backend.entry("batch_norm_train")(raw_x, weight, bias, 1e-5)
    found = backend.entry("batch_norm_backward")(raw_g, raw_x, weight, mean, var, 1e-5)
    got_x, got_weight, got_bias = (np.asarray(part, np.float64) for part in found)
    np.testing.assert_allclose(got_x, dx, atol=4e-6)
    np.testing.assert_allclose(got_weight, (g * normal).sum(axes), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(got_bias, g.sum(axes), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "row", [[1e27, 0, 0, 0], [3e27, 0, 0, 0], [1e-23, -1e-23], [3e38, 3e38], [2e-30, 1e-30, 0]]
)
@pytest.mark.parametrize("op", ["std", "var"])
@pytest.mark.parametrize("columns", [False, True])
def test_spreads_whose_squares_leave_the_range_are_right(
    op: str, row: list[float], columns: bool
) -> None:
    x = np.asarray(row, np.float32)
    x = np.stack([x, x]).T if columns else x[None]
    want = getattr(np, op)(x.astype(np.float64), axis=0 if columns else 1)
    entry: Any = Cpu().entry(op)
    got = np.asarray(entry(up(Cpu(), x), (0 if columns else 1,), 0.0, False))
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-6)


def test_a_row_led_by_one_large_element_is_normalized() -> None:
    x = np.asarray([[3e27, 0, 0, 0], [1, 2, 3, 4]], np.float32)
    wide = x.astype(np.float64)
    gaps = wide - wide.mean(1, keepdims=True)
    want = gaps / np.sqrt((gaps**2).mean(1, keepdims=True) + 1e-5)
    entry: Any = Cpu().entry("layer_norm")
    got = np.asarray(entry(up(Cpu(), x), None, None, 1e-5))
    np.testing.assert_allclose(got, want, rtol=1e-5)
