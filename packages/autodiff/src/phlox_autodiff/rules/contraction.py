"""Derivatives of products."""

from __future__ import annotations

from math import prod
from typing import Final

from phlox_tensor import Tensor
from phlox_tensor.ops.reduction import sum_to

from .._rule import Rule, none
from .._unchecked import summed, transposed

Shape = tuple[int, ...]


def _rows(x: Tensor) -> Tensor:
    """All leading axes as one: (…, n) to (m, n)."""
    shape = x.shape
    return x if len(shape) == 2 else x.reshape((prod(shape[:-1]), shape[-1]))


def _columns_of(g: Tensor, x1: Shape, x2: Shape) -> Tensor:
    """The cotangent of a product, with the axes back that vectors did not have."""
    if len(x2) == 1:
        g = g.expand_dims(-1)
    return g.expand_dims(-2) if len(x1) == 1 else g


def _matmul_x1(g: Tensor, x2: Tensor, x1_shape: Shape) -> Tensor:
    """``g @ x2ᵀ``, summed over the batches along which x1 was broadcast."""
    wide = _columns_of(g, x1_shape, x2.shape)
    out = wide @ (x2.expand_dims(0) if x2.ndim == 1 else x2.mT)
    line = (1, *x1_shape) if len(x1_shape) == 1 else x1_shape
    return sum_to(out, line).reshape(x1_shape)


def _matmul_x2(g: Tensor, x1: Tensor, x2_shape: Shape) -> Tensor:
    """``x1ᵀ @ g``, summed over the batches along which x2 was broadcast."""
    wide = _columns_of(g, x1.shape, x2_shape)
    if len(x2_shape) <= 2 < x1.ndim:
        # One product over all batches adds them up as it goes.
        return (_rows(x1).mT @ _rows(wide)).reshape(x2_shape)
    out = (x1.expand_dims(-1) if x1.ndim == 1 else x1.mT) @ wide
    line = (*x2_shape, 1) if len(x2_shape) == 1 else x2_shape
    return sum_to(out, line).reshape(x2_shape)


def _linear_weight(g: Tensor, x: Tensor) -> Tensor:
    if len(g.shape) != 2:
        x, g = _rows(x), _rows(g)
    return transposed(x) @ g


def linear_bias(g: Tensor) -> Tensor:
    """The cotangent of a bias: that of the result, summed over all axes in front."""
    rank = len(g.shape)
    if rank == 2:
        return summed(g, (0,))
    return g if rank == 1 else summed(g, tuple(range(rank - 1)))


RULES: Final[dict[str, Rule]] = {
    "linear": (lambda g, weight: g @ transposed(weight), _linear_weight, linear_bias),
    "matmul": (_matmul_x1, _matmul_x2),
    "matmul_integer": none("the operands are not Float"),
    "prepacked": lambda g: g,
}
