"""A value does not depend on the way to it: epilogues, axes, numbers of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from phlox_kernels import Cpu, _native
from phlox_tensor import as_dtype

SIZES = [(3, 5, 7), (64, 96, 130), (1, 300, 33), (17, 8, 32), (200, 64, 1)]  # m, k, n
RANDOM = np.random.default_rng(5)


def normal(*shape: int, dtype: str = "float32", scale: float = 1.0) -> Any:
    kind = as_dtype(dtype)
    return Cpu().upload((scale * RANDOM.standard_normal(shape)).astype(kind.numpy), kind)


def raw(x: Any) -> bytes:
    return bytes(_native.contiguous(x))


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = _native._num_threads()
    yield
    _native._set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(3, 5, 7), (64, 96, 130), (1, 300, 33), (17, 8, 32), (200, 64, 1)]
)
def test_gelu_at_the_end_of_a_product_is_gelu(shape: tuple[int, int, int], dtype: str) -> None:
    m, k, n = shape
    x, weight = normal(m, k, dtype=dtype, scale=2.0), normal(n, k, dtype=dtype)
    weight = _native.permute_dims(weight, (1, 0))
    sums = _native.fused_linear(x, weight, None, None, "none", 1.0)
    fused = _native.fused_linear(x, weight, None, None, "gelu", 1.0)
    assert raw(fused) == raw(_native.gelu(sums))


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_is_the_same_along_any_axis(op: str, dtype: str) -> None:
    # A sum of two or three numbers is the same in any order that keeps the largest, which is 1;
    # longer rows are added in another order along other axes.
    x = normal(500, 2, dtype=dtype, scale=30.0)
    last = getattr(_native, op)(x, 1)
    columns = _native.contiguous(_native.permute_dims(x, (1, 0)))
    first = _native.permute_dims(getattr(_native, op)(columns, 0), (1, 0))
    assert raw(first) == raw(last)


def test_the_gradient_of_log_softmax_is_the_same_along_any_axis() -> None:
    y = _native.log_softmax(normal(500, 2, scale=30.0), 1)
    g = normal(500, 2)
    last = _native.log_softmax_backward(g, y, 1)
    turned = [_native.contiguous(_native.permute_dims(each, (1, 0))) for each in (g, y)]
    first = _native.permute_dims(_native.log_softmax_backward(*turned, 0), (1, 0))
    assert raw(first) == raw(last)


def test_many_threads_give_the_same_bits() -> None:
    sides, one = ((1, 1), (1, 1)), (1, 1)
    image, deep = normal(2, 3, 40, 40), normal(2, 64, 28, 28)
    query = normal(1, 2, 300, 32)
    few, own, many = normal(8, 3, 3, 3), normal(64, 1, 3, 3), normal(64, 64, 3, 3)
    calls: dict[str, Callable[[], Any]] = {
        "direct": lambda: _native.conv2d(image, few, None, one, sides, one, 1),
        "depthwise": lambda: _native.conv2d(deep, own, None, one, sides, one, 64),
        "winograd": lambda: _native.conv2d(deep, many, None, one, sides, one, 1),
        "attention": lambda: _native.attention(query, query, query, None, None, 0.2, None, True),
    }
    seen: dict[str, set[bytes]] = {name: set() for name in calls}
    for count in (1, 2, 3, 40):
        _native._set_num_threads(count)
        for name, call in calls.items():
            seen[name].add(raw(call()))
    assert {name: len(each) for name, each in seen.items()} == dict.fromkeys(calls, 1)
