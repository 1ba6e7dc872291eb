"""Operand checks of the contraction entries, which the short call path of Tensor relies on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox_tensor import Rejected, bool_

from ._array import GpuArray
from ._runtime import GpuDevice


def checked_matmul(function: Callable[..., GpuArray]) -> Callable[..., GpuArray]:
    """The entry of matmul, which raises Rejected for operands that it does not take as they are."""
    good: set[tuple[Any, ...]] = set()

    def run(device: GpuDevice, x1: Any, x2: Any) -> GpuArray:
        if type(x1) is not GpuArray or type(x2) is not GpuArray:
            raise Rejected
        key = (x1.shape, x2.shape, x1.dtype, x2.dtype)
        if key not in good:
            if x1.dtype is not x2.dtype or x1.dtype is bool_ or not _fits(x1.shape, x2.shape):
                raise Rejected
            good.add(key)
        return function(device, x1, x2)

    return run


def checked_linear(function: Callable[..., GpuArray]) -> Callable[..., GpuArray]:
    """The entry of linear, which raises Rejected as that of matmul does."""
    good: set[tuple[Any, ...]] = set()

    def run(device: GpuDevice, x: Any, weight: Any, bias: Any) -> GpuArray:
        given = (x, weight) if bias is None else (x, weight, bias)
        if any(type(operand) is not GpuArray for operand in given):
            raise Rejected
        key = tuple([(operand.shape, operand.dtype) for operand in given])
        if key not in good:
            fits = len(weight.shape) == 2 and x.shape[-1:] == weight.shape[:1]
            fits = fits and (bias is None or bias.shape == weight.shape[1:])
            if not fits or x.dtype.kind != "Float" or len({o.dtype for o in given}) > 1:
                raise Rejected
            good.add(key)
        return function(device, x, weight, bias)

    return run


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """NumPy's rule: the inner lengths are equal, the batches broadcast."""
    if not a or not b or a[-1] != b[-2 if len(b) > 1 else -1]:
        return False
    pairs = zip(reversed(a[:-2]), reversed(b[:-2]), strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)
