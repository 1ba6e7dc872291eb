"""Each way to compute a product or a convolution, forced, gives what the definition gives."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import Numpy, as_dtype

TABLES = {op: names for op, names, _ in _native._ways()}
WAYS = [(op, way) for op, names in TABLES.items() for way in names]
# A function, its arguments, its exact result, and how many terms a number of it is summed over.
Problem = tuple[Callable[..., Any], tuple[Any, ...], Any, int]
RANDOM = np.random.default_rng(7)
# m, k, n, and whether the right side lies by columns.
PRODUCTS = [
    (5, 3, 2, True),
    (1, 40, 3, None),
    (40, 30, 3, False),
    (4, 600, 90, True),
    (40, 64, 96, False),
    (90, 50, 70, True),
    (700, 300, 130, True),
]
# Shape of the input, of the weight, stride, padding, dilation, groups.
CONVOLUTIONS = [
    ((2, 8, 16, 16), (12, 8, 1, 1), 1, 0, 1, 1),
    ((2, 16, 32, 32), (32, 16, 3, 3), 1, 1, 1, 1),
    ((1, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1, 1),
    ((2, 6, 12, 12), (6, 1, 3, 3), 1, 1, 1, 6),
    ((1, 24, 4, 4), (16, 24, 4, 4), 1, 0, 1, 1),
    ((1, 256, 6, 6), (256, 256, 3, 3), 1, 0, 1, 1),
    ((2, 3, 15, 14), (4, 3, 3, 2), 2, 1, 1, 1),
    ((1, 4, 9, 11), (6, 2, 3, 3), 1, 2, 2, 2),
]


@pytest.fixture(autouse=True)
def _all_ways() -> Iterator[None]:
    yield
    for op in TABLES:
        _native._force_way(op, None)


def normal(shape: tuple[int, ...], dtype: str) -> Any:
    values = RANDOM.standard_normal(shape) / 4
    return Cpu().upload(values.astype(as_dtype(dtype).numpy), as_dtype(dtype))


def wide(x: Any) -> Any:
    """The values in float64."""
    return np.asarray(_native.cast(x, "float64"))


def check(got: Any, want: Any, dtype: str, terms: int) -> None:
    epsilon = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-8}[dtype]
    scale = max(float(np.abs(want).max(initial=0.0)), 1.0)
    np.testing.assert_allclose(wide(got), want, rtol=0, atol=4 * epsilon * scale * terms**0.5)


@cache
def products(dtype: str) -> list[Problem]:
    """Products and what they are."""
    operands = []
    for m, k, n, by_columns in PRODUCTS:
        x1, x2 = normal((m, k), dtype), normal((n, k) if by_columns else (k, n), dtype)
        if by_columns:
            x2 = _native.permute_dims(x2, (1, 0))
        elif by_columns is None:  # gaps in both directions
            x2 = _native.slice(normal((2 * k, 2 * n), dtype), (0, 0), (k, n), (2, 2))
        operands.append((x1, x2))
    batch = normal((3, 64, 32), dtype), normal((3, 48, 32), dtype)
    operands.append((batch[0], _native.permute_dims(batch[1], (0, 2, 1))))
    return [(_native.matmul, pair, wide(pair[0]) @ wide(pair[1]), 600) for pair in operands]


@cache
def convolutions(dtype: str) -> list[Problem]:
    """Convolutions and their gradients, and what they are."""
    found: list[Problem] = []
    for shape, kernel, stride, padding, dilation, groups in CONVOLUTIONS:
        x, weight, bias = normal(shape, dtype), normal(kernel, dtype), normal(kernel[:1], dtype)
        settings = ((stride,) * 2, ((padding,) * 2,) * 2, (dilation,) * 2, groups)
        g = normal(_native.conv2d(x, weight, bias, *settings).shape, dtype)
        terms, positions = kernel[1] * kernel[2] * kernel[3], g.size // kernel[0]
        calls = (
            ("conv2d", (x, weight, bias), terms),
            ("conv2d_input_grad", (g, weight, shape), terms * kernel[0]),
            ("conv2d_weight_grad", (g, x, kernel), positions),
        )
        for op, given, count in calls:
            exact = [v if isinstance(v, tuple) else wide(v) for v in given]
            reference: Any = Numpy(float="float64").entry(op)
            want = reference(*exact, *settings)
            found.append((getattr(_native, op), (*given, *settings), want, count))
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("op", "way"), WAYS)
def test_a_way_that_is_forced_is_taken_and_right(op: str, way: str, dtype: str) -> None:
    problems = (products if op == "matmul" else convolutions)(dtype)
    _native._force_way(op, way)
    # Of a function only itself is asked; tables inside serve several.
    own = getattr(_native, op, None)
    for function, given, want, terms in problems:
        if own in (None, function):
            check(function(*given), want, dtype, terms)
    (taken,) = (taken for name, _, taken in _native._ways() if name == op)
    assert set(taken) <= {way, TABLES[op][-1]}
    if way == "tiles":
        tiles = dtype == "bfloat16" and "amx_bf16" in _native._simd()
        assert (way in taken) == tiles
    elif dtype == "float32":
        # Without AVX2 there is no code for what is quicker than the last way.
        old = "baseline" in _native._simd() and op in {"correlation", "taps"}
        old = old and platform.machine() in {"x86_64", "AMD64"}
        assert way in taken or old


def test_what_is_no_way_is_refused() -> None:
    with pytest.raises(ValueError, match="no such way"):
        _native._force_way("conv2d", "magic")


@pytest.mark.parametrize("shape", [(0, 2, 5, 5), (1, 0, 5, 5)])
def test_nothing_convolved_is_nothing_or_the_bias(shape: tuple[int, ...]) -> None:
    kernel = (4, shape[1], 3, 3)
    x, weight, bias = (normal(each, "float32") for each in (shape, kernel, (4,)))
    settings = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    y = np.asarray(_native.conv2d(x, weight, bias, *settings))
    assert np.array_equal(y, np.broadcast_to(wide(bias).reshape(4, 1, 1), (shape[0], 4, 3, 3)))
    g = normal((shape[0], 4, 3, 3), "float32")
    assert _native.conv2d_input_grad(g, weight, shape, *settings).shape == shape
    assert not np.asarray(_native.conv2d_weight_grad(g, x, kernel, *settings)).any()
