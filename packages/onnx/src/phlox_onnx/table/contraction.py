"""Products of matrices, attention and what is like it."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Row, row
from .attention import ROWS as ATTENTION

T = Tensor[Any]


def matmul(A: T, B: T) -> T:
    return A @ B


def _times(whole: T, number: float) -> T:
    """Whole numbers times a float, cut off; those beyond 2**53 only as they are."""
    return whole if number == 1 else (whole.astype(px.float64) * number).astype(whole.dtype)


def gemm(
    A: T,
    B: T,
    C: T | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> T:
    if A.ndim != 2 or B.ndim != 2:
        raise OnnxError(
            "Gemm", "no matrices", got=f"{A.shape} @ {B.shape}", expected="two axes each"
        )
    a = A.mT if transA else A
    b = B.mT if transB else B
    if A.dtype.kind == "Int":
        out = _times(a @ b, alpha)
        return out if C is None else out + _times(C, beta)
    if alpha == beta == 1 and C is not None and C.shape == (b.shape[1],):
        return px.linear(a, b, C)
    out = a @ b
    out = out if alpha == 1 else out * alpha
    if C is None or beta == 0:
        return out
    return out + (C if beta == 1 else C * beta)


def matmul_integer(A: T, B: T, a_zero_point: T | None = None, b_zero_point: T | None = None) -> T:
    """Exact in int32; zero points may differ by row of A and by column of B.

    The product is one of bytes: ``(A - a) @ (B - b) = A @ B - a (ΣB - k b) - b ΣA``.
    """
    if B.ndim == 1:
        return matmul_integer(A, B.expand_dims(axis=1), a_zero_point, b_zero_point)[..., 0]
    if A.ndim == 1:
        return matmul_integer(A.expand_dims(axis=0), B, a_zero_point, b_zero_point)[..., 0, :]
    out = px.matmul_integer(A, B)
    b_zero = None if b_zero_point is None else b_zero_point.astype(px.int32)
    if a_zero_point is not None:
        zero = a_zero_point.astype(px.int32)
        zero = zero.expand_dims(axis=-1) if zero.ndim == 1 and zero.size > 1 else zero
        sums = B.sum(axis=-2, keepdims=True, dtype=px.int32)
        out = out - zero * (sums if b_zero is None else sums - b_zero * A.shape[-1])
    if b_zero is not None:
        out = out - A.sum(axis=-1, keepdims=True, dtype=px.int32) * b_zero
    return out


def einsum(*Inputs: T, equation: str) -> T:
    return px.einsum(equation, *Inputs)


def det(X: T) -> T:
    """By elimination with the largest pivot of each column, since LAPACK has none for a GPU."""
    n = X.shape[-1]
    x = X.reshape((prod(X.shape[:-2]), n, n))
    sign = px.full((x.shape[0],), 1.0, dtype=X.dtype, device=X.device)
    line = px.asarray(np.arange(n), dtype=X.device.default_int, device=X.device)
    for k in range(n):
        pivot = (x[:, k:, k].abs().argmax(axis=1) + k).astype(line.dtype).reshape((-1, 1))
        swapped = (line == pivot).where(k, (line == k).where(pivot, line))
        sign = (pivot.reshape((-1,)) == k).where(sign, -sign)
        order = swapped.expand_dims(axis=2).broadcast_to(x.shape)
        x = x.take_along_axis(order, axis=1)
        head = x[:, k, k].reshape((-1, 1, 1))
        safe = (head == 0).where(1.0, head)
        factor = x[:, :, k : k + 1] / safe
        below = (line > k).reshape((1, n, 1))
        x = below.where(x - factor * x[:, k : k + 1, :], x)
    for k in range(n):
        sign = sign * x[:, k, k]
    return sign.reshape(X.shape[:-2])


def linear(x: T, weight: T, bias: T | None = None) -> T:
    return px.linear(x, weight, bias)


def scaled_attention(
    query: T, key: T, value: T, bias: T | None = None, *, scale: float | None = None
) -> T:
    return px.attention(query, key, value, bias=bias, scale=scale)


# What formulas are recognised as.
OWN_ROWS: Final[dict[str, Row]] = {
    "Attention": row(1, scaled_attention),
    "Linear": row(1, linear, trained="weight bias"),
}

ROWS: Final[dict[str, Row]] = {
    "Det": row(22, det, scalar=True),
    "Einsum": row(28, einsum, scalar=True),
    "Gemm": row(13, gemm, trained="A B C", bias="input", transposed_by="transB"),
    "MatMul": row(13, matmul, trained="A B", bias="sum"),
    "MatMulInteger": row(10, matmul_integer),
    **ATTENTION,
}
