"""Diagonals of matrices, and products other than matmul."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import matrices as ref
from ..shapes import matrices as shapes
from . import movement
from ._einsum import einsum as _einsum
from ._families import contraction, view
from ._families import movement as moving


@contraction.formula(
    "x1: Num, x2: Num; axis: int = -1 -> Num",
    numpy=ref.cross,
    shape=shapes.cross,
    prepare=shapes.prepare_cross,
    ulp=4,
    atol=16,
    cases=(case((3,), (3,)), case((2, 3), (3,)), case((3, 1), (3, 2), axis=0)),
    refuses=(refusal(ShapeError, (2, 2), (2, 2)),),
    method=False,
    example="pt.cross(pt.asarray([1.0, 0.0, 0.0]), pt.asarray([0.0, 1.0, 0.0]))",
    doc="Vector perpendicular to two of size 3 along an axis; the other axes broadcast.",
)
def cross(x1: Tensor[Any], x2: Tensor[Any], axis: int) -> Tensor[Any]:
    wide = [x.to_full_precision() for x in (x1, x2)]
    a, b = (x.roll(-1, axis=axis) for x in wide)
    c, d = (x.roll(-2, axis=axis) for x in wide)
    return (a * d - c * b).astype(x1.dtype)


@moving.formula(
    "x: Any; offset: int = 0 -> Any",
    numpy=np.diag,
    shape=shapes.diag,
    linear=True,
    cases=(
        case((3,)),
        case((2,), offset=1),
        case((2,), offset=-2),
        case((2, 3)),
        case((3, 2), offset=-1),
        case((0,)),
    ),
    example="pt.diag(pt.asarray([1.0, 2.0]))",
    refuses=(refusal(ShapeError, (2, 2, 2)),),
    doc="Matrix with a vector on a diagonal and zeros beside it; or the diagonal of a matrix.",
)
def diag(x: Tensor[Any], offset: int) -> Tensor[Any]:
    if x.ndim == 2:
        return x.diagonal(offset)
    n = x.shape[0] + abs(offset)
    start = offset if offset >= 0 else -offset * n
    flat: Tensor[Any] = x.zeros((n * n,))
    if x.size:
        flat = movement.slice_scatter(flat, x, (start,), x.shape, (n + 1,))
    return flat.reshape((n, n))


@view.formula(
    "x: Any; offset: int = 0 -> Any",
    numpy=lambda x, offset: np.diagonal(x, offset, -2, -1),
    shape=shapes.diagonal,
    linear=True,
    cases=(
        case((3, 3)),
        case((2, 3, 4), offset=1),
        case((2, 4, 3), offset=-2),
        case((2, 2), offset=5),
    ),
    example="pt.diagonal(pt.asarray([[1, 2], [3, 4]]))",
    refuses=(refusal(ShapeError, (2,)),),
    doc="Elements of each matrix in the last two axes whose column is its row plus ``offset``.",
)
def diagonal(x: Tensor[Any], offset: int) -> Tensor[Any]:
    *batch, rows, columns = x.shape
    start, count = shapes.run(rows, columns, offset)
    if not count:
        return x.zeros((*batch, 0))
    flat = x.reshape((*batch, rows * columns))
    end = start + (count - 1) * (columns + 1) + 1
    return flat[..., start : end : columns + 1]


einsum = contraction(
    "einsum",
    "*tensors: Num; equation: str -> Num",
    expand=_einsum,
    numpy=ref.einsum,
    shape=shapes.einsum,
    unpromised={"tensors": "products come in any order, and infinities in them cancel"},
    ulp=16,
    atol=64,
    cases=(
        case([(2, 3), (3, 4)], equation="ij,jk->ik"),
        case([(2, 3), (3, 2), (2, 2)], equation="ij,jk,kl"),
        case([(2, 3, 4), (2, 4, 5)], equation="bij,bjk->bik"),
        case([(3, 3)], equation="ii->i"),
        case([(2, 3, 4)], equation="...ij->...ji"),
        case([(2, 3, 4), (4,)], equation="...i,i->..."),
        case([(3,), (4,)], equation="i,j->ji"),
        case([(2, 3), (2, 3)], equation="ij,ij->"),
        case([(2, 3), (2, 3)], equation="ij,ij->i"),
        case([(2, 1), (1, 3)], equation="ij,ij->ij"),
        case([(2, 2, 3), (3,)], equation="iij,j->i"),
        case([(0, 3), (3, 2)], equation="ij,jk->ik"),
    ),
    refuses=(
        refusal(ShapeError, [(2, 3), (4, 2)], equation="ij,jk->ik"),
        refusal(ShapeError, [(2, 3)], equation="ijk->i"),
        refusal(ArgumentError, [(2,)], equation="i->j"),
    ),
    method=False,
    function=False,
    example="pt.einsum('ij,jk->ik', pt.asarray([[1.0, 2.0]]), pt.asarray([[3.0], [4.0]]))",
    doc="Sum of products over the labels that the result does not have. Pairs are multiplied "
    "smallest first, each as a product of matrices.",
)


@contraction.formula(
    "x1: Num, x2: Num -> Num",
    numpy=ref.kron,
    shape=shapes.kron,
    multilinear=True,
    ulp=1,
    cases=(case((2, 3), (3, 2)), case((2,), (2, 2)), case((), (2,)), case((0,), (2,))),
    method=False,
    example="pt.kron(pt.asarray([1, 10]), pt.asarray([1, 2]))",
    doc="Kronecker product: x2 times each element of x1, side by side.",
)
def kron(x1: Tensor[Any], x2: Tensor[Any]) -> Tensor[Any]:
    count = max(x1.ndim, x2.ndim)
    a, b = ((1,) * (count - x.ndim) + x.shape for x in (x1, x2))
    left = x1.reshape(tuple(size for n in a for size in (n, 1)))
    right = x2.reshape(tuple(size for n in b for size in (1, n)))
    return (left * right).reshape(tuple(n * m for n, m in zip(a, b, strict=True)))
