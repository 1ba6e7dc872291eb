"""Products of matrices, attention and what is like it."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from .._row import Row, since
from .attention import ROWS as ATTENTION

T = Tensor[Any]


def matmul(A: T, B: T) -> T:
    return A @ B


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
    a = A.mT if transA else A
    b = B.mT if transB else B
    if A.dtype.kind == "Int":
        out = ((a @ b).astype(px.float64) * alpha).astype(A.dtype)
        return out if C is None else out + (C.astype(px.float64) * beta).astype(A.dtype)
    if alpha == beta == 1 and C is not None and C.shape == (b.shape[1],):
        return px.linear(a, b, C)
    out = a @ b
    out = out if alpha == 1 else out * alpha
    if C is None or beta == 0:
        return out
    return out + (C if beta == 1 else C * beta)


def matmul_integer(A: T, B: T, a_zero_point: T | None = None, b_zero_point: T | None = None) -> T:
    """Exact in int32; zero points may differ by row of A and by column of B."""
    a, b = A.astype(px.int32), B.astype(px.int32)
    if a_zero_point is not None:
        zero = a_zero_point.astype(px.int32)
        a = a - (zero.expand_dims(axis=-1) if zero.ndim == 1 and zero.size > 1 else zero)
    if b_zero_point is not None:
        b = b - b_zero_point.astype(px.int32)
    return a @ b


def _terms(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; an ellipsis becomes digits from the right."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sources = left.split(",")
    if len(sources) != len(ranks):
        raise OnnxError("Einsum", "operands do not fit", got=equation, expected=len(ranks))
    out, most = [], 0
    for each, rank in zip(sources, ranks, strict=True):
        source = each
        if "..." in source:
            count = rank - (len(source) - 3)
            most = max(most, count)
            source = source.replace("...", "".join(chr(48 + i) for i in reversed(range(count))))
        if len(source) != rank:
            raise OnnxError("Einsum", "operands do not fit", got=equation, expected=f"rank {rank}")
        out.append(source)
    dots = "".join(chr(48 + i) for i in reversed(range(most)))
    if not arrow:
        every = "".join(out)
        right = dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c.isalpha()))
    return out, right.replace("...", dots)


def _diagonal(x: T, letters: str) -> tuple[T, str]:
    """Letters that repeat in one operand are its diagonal."""
    for c in sorted(set(letters)):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            n = x.shape[i]
            line = px.arange(n, device=x.device)
            sizes = [1] * x.ndim
            sizes[i], shape = n, list(x.shape)
            shape[j] = 1
            at = line.reshape(tuple(sizes)).broadcast_to(tuple(shape))
            x = x.take_along_axis(at, axis=j).squeeze(j)
            letters = letters[:j] + letters[j + 1 :]
    return x, letters


def _pair(x: T, a: str, y: T, b: str, kept: set[str]) -> tuple[T, str]:
    """Two operands as one product of matrices: batch, rows, columns."""
    both = [c for c in a if c in b]
    batch = [c for c in both if c in kept]
    inner = [c for c in both if c not in kept]
    size = dict(zip(a, x.shape, strict=True))
    for c, n in zip(b, y.shape, strict=True):
        size[c] = max(size.get(c, 1), n)
    rows, columns = [c for c in a if c not in both], [c for c in b if c not in both]

    def laid(v: T, letters: str, order: list[str], middle: list[str], last: list[str]) -> T:
        v = v.broadcast_to(tuple(size[c] for c in letters))
        v = v.permute_dims(tuple(letters.index(c) for c in order))
        sizes = [size[c] for c in batch]
        return v.reshape((*sizes, prod(size[c] for c in middle), prod(size[c] for c in last)))

    left = laid(x, a, batch + rows + inner, rows, inner)
    right = laid(y, b, batch + inner + columns, inner, columns)
    out = left @ right
    letters = batch + rows + columns
    return out.reshape(tuple(size[c] for c in letters)), "".join(letters)


def einsum(*Inputs: T, equation: str) -> T:
    letters, result = _terms(equation, [x.ndim for x in Inputs])
    parts = [_diagonal(x, source) for x, source in zip(Inputs, letters, strict=True)]
    while True:
        x, a = parts.pop(0)
        wanted = set(result).union(*(b for _, b in parts))
        gone = tuple(i for i, c in enumerate(a) if c not in wanted)
        if gone:
            x, a = x.sum(axis=gone), "".join(c for c in a if c in wanted)
        if not parts:
            break
        y, b = parts.pop(0)
        later = set(result).union(*(c for _, c in parts))
        alone = tuple(i for i, c in enumerate(b) if c not in later and c not in a)
        if alone:
            y, b = y.sum(axis=alone), "".join(c for c in b if c in later or c in a)
        parts.insert(0, _pair(x, a, y, b, later))
    return x.permute_dims(tuple(a.index(c) for c in result))


def det(X: T) -> T:
    """By elimination with the largest pivot of each column."""
    n = X.shape[-1]
    x = X.reshape((-1, n, n))
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


ROWS: Final[dict[str, Row]] = {
    "Det": since(22, det),
    "Einsum": since(28, einsum),
    "Gemm": since(13, gemm, trained="A B C"),
    "MatMul": since(13, matmul, trained="A B"),
    "MatMulInteger": since(10, matmul_integer),
    **ATTENTION,
}
