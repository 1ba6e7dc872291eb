"""Shape rules of pools of lines and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._window import sizes, windowed

Sides = tuple[tuple[int, int], ...]


def _within(kernel: Shape, padding: Sides) -> None:
    for sides, k in zip(padding, kernel, strict=True):
        if max(sides) > k // 2:
            raise ArgumentError(
                "pool", "padding too large", got=sides, expected=f"at most {k // 2}"
            )


def prepare_pool(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The stride is the kernel where none is given."""
    del specs, backend
    kernel, stride, padding, *rest = attributes
    _within(kernel, padding)
    return (kernel, kernel if stride is None else stride, padding, *rest)


def prepare_lp_pool(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The same, of pools with a power, which is at least 1."""
    del specs, backend
    kernel, p, stride, padding, *rest = attributes
    _within(kernel, padding)
    if not p >= 1:
        raise ArgumentError("lp_pool", "not a norm", got=p, expected="p >= 1")
    return kernel, p, kernel if stride is None else stride, padding, *rest


def max_pool(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size), once for each result."""
    kernel, stride, padding, dilation, ceil_mode = attributes
    windowed(op, specs[0], len(kernel))
    shape = specs[0].shape
    size = sizes(op.name, shape[2:], kernel, stride, padding, dilation, ceil_mode)
    return [(*shape[:2], *size)] * len(op.signature.results)


def avg_pool(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    kernel, stride, padding, ceil_mode, _ = attributes
    return max_pool(op, specs, (kernel, stride, padding, (1,) * len(kernel), ceil_mode))


def lp_pool(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    kernel, _, stride, padding, ceil_mode, dilation = attributes
    return max_pool(op, specs, (kernel, stride, padding, dilation, ceil_mode))


def adaptive(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size)."""
    (size,) = attributes
    windowed(op, specs[0], len(size))
    shape = specs[0].shape
    if 0 in shape[2:]:
        raise ShapeError(op.name, "nothing to pool", got=shape, expected="sizes >= 1")
    return [(*shape[:2], *size)]


def adaptive_with_indices(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, C, *size), of values and of places."""
    return adaptive(op, specs, attributes) * 2


def regions(n: int, count: int) -> tuple[Any, Any]:
    """First element of each of ``count`` regions of n elements, and the one after its last."""
    i = np.arange(count)
    return i * n // count, -(-(i + 1) * n // count)
