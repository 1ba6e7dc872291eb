"""Products of matrices and vectors."""

from __future__ import annotations

from math import prod

import numpy as np

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import IndexSample, case, refusal
from .._values.dtype import bool_, float32, int16, int32
from .._values.tensor import Tensor
from ..reference import contraction as ref
from ..shapes import contraction as shapes
from ._families import contraction, view

matmul = contraction(
    "matmul",
    "x1: Num, x2: Num -> Num",
    numpy=ref.matmul,
    shape=shapes.matmul,
    multilinear=True,
    work=shapes.matmul_work,
    ulp=8,
    atol=16,
    cases=(
        case((3, 4), (4, 5)),
        case((4,), (4,)),
        case((2, 3, 4), (4,)),
        case((4,), (2, 4, 3)),
        case((2, 1, 3, 4), (5, 4, 2)),
        case((3, 0), (0, 2)),
        case((17, 33), (33, 9)),
    ),
    refuses=(
        refusal(ShapeError, (2, 3), (2, 3)),
        refusal(ShapeError, (2, 2, 3), (3, 3, 2)),
    ),
    example="pt.matmul(pt.asarray([[1.0, 2.0]]), pt.asarray([[3.0], [4.0]]))",
    doc="Product of matrices, over batches that broadcast; a vector is a row on the left and a "
    "column on the right. Narrow floats accumulate in float32.",
)


matmul_integer = contraction(
    "matmul_integer",
    # Two kinds, so that the sides keep their types: activations of uint8, weights of int8.
    "x1: Int, x2: Whole; dtype: DType = 'int32' -> Int",
    expand=lambda x1, x2, dtype: x1.astype(dtype) @ x2.astype(dtype),
    numpy=ref.matmul_integer,
    shape=shapes.matmul_integer,
    work=shapes.matmul_work,
    cases=(
        case((3, 4), IndexSample((4, 5), 9), dtype=int32),
        case((4,), IndexSample((2, 4, 3), 9), dtype=int32),
        case((2, 3, 4), IndexSample((4,), 9), dtype=int32),
        case((0, 3), IndexSample((3, 2), 9), dtype=int32),
        case((19, 33), IndexSample((33, 40), 9), dtype=int32),
        case((9, 10), IndexSample((10, 8), -9), dtype=int16),
    ),
    refuses=(refusal(ArgumentError, (2, 3), IndexSample((3, 2), 9), dtype=bool_),),
    method=False,
    example="pt.matmul_integer(pt.asarray([[100, 100]], dtype='int8'), "
    "pt.asarray([[100], [27]], dtype='int8'))",
    doc="Product of integer matrices with sums in ``dtype``, over batches that broadcast, as "
    "``x1.astype(dtype) @ x2.astype(dtype)``: bytes need no copy in a wider type. Sums wrap. After "
    "MatMulInteger of ONNX.",
)


@contraction.formula(
    "x: Float, weight: Float, bias: Float?, residual: Float?; activation: str = 'none', "
    "scale: float = 1.0 -> Float",
    numpy=ref.fused_linear,
    shape=shapes.fused_linear,
    work=shapes.linear_work,
    ulp=16,
    atol=32,
    cases=(
        case((3, 4), (4, 5), (5,), (3, 5)),
        case((2, 3, 4), (4, 2), None, (2, 3, 2), activation="relu"),
        case((4,), (4, 3), (3,), None, activation="gelu"),
        case((17, 33), (33, 40), (40,), (17, 40), activation="gelu", scale=0.25),
        case((5, 7), (7, 3), None, None, scale=-2.0),
        case((3, 0), (0, 2), (2,), (3, 2), activation="relu"),
    ),
    refuses=(refusal(ShapeError, (2, 3), (2, 4), None, None),),
    method=False,
    example=(
        "pt.fused_linear(pt.asarray([[1.0, 2.0]]), pt.asarray([[1.0], [-1.0]]), "
        "pt.asarray([0.5]), activation='relu')"
    ),
    doc="``activation(scale·(x @ weight) + bias + residual)`` with weight of shape (in, out), bias "
    "(out,) and a residual of the shape of the result; activation is none, relu or gelu. The "
    "product of narrow floats is rounded once, at the end.",
)
def fused_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    residual: Tensor | None,
    activation: str,
    scale: float,
) -> Tensor:
    wide = x.dtype if x.dtype.itemsize >= float32.itemsize else float32
    out = x.astype(wide) @ weight.astype(wide)
    if scale != 1:
        out = out * scale
    for addend in (bias, residual):
        if addend is not None:
            out = out + addend.astype(wide)
    if activation == "relu":
        out = out.relu()
    elif activation == "gelu":
        out = out.gelu()
    return out.astype(x.dtype)


@contraction.formula(
    "x: Float, weight: Float, bias: Float? -> Float",
    numpy=ref.linear,
    shape=shapes.linear,
    work=shapes.linear_work,
    ulp=8,
    atol=16,
    cases=(case((3, 4), (4, 5), (5,)), case((2, 3, 4), (4, 2), None), case((4,), (4, 3), (3,))),
    refuses=(
        refusal(ShapeError, (2, 3), (2, 4), None),
        refusal(ShapeError, (2, 3), (2, 3), (3,)),
    ),
    method=False,
    example=("pt.linear(pt.asarray([[1.0, 2.0]]), pt.asarray([[1.0], [-1.0]]), pt.asarray([0.5]))"),
    doc="``x @ weight + bias`` with weight of shape (in, out).",
)
def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out = x @ weight
    return out if bias is None else out + bias


outer = contraction(
    "outer",
    "x1: Num, x2: Num -> Num",
    numpy=np.outer,
    expand=lambda x1, x2: x1.reshape(x1.size, 1) * x2,
    shape=shapes.outer,
    multilinear=True,
    ulp=1,
    cases=(case((3,), (4,)), case((0,), (2,))),
    refuses=(refusal(ShapeError, (2, 2), (2,)),),
    example="pt.outer(pt.asarray([1.0, 2.0]), pt.asarray([3.0, 4.0]))",
    doc="All products of two vectors: (n,) and (m,) give (n, m).",
)
prepacked = view(
    "prepacked",
    "weight: Float -> Float",
    expand=lambda weight: weight,
    numpy=lambda weight: weight,
    shape=shapes.prepacked,
    linear=True,
    cases=(case((3, 4)), case((70, 90)), case((0, 2))),
    refuses=(refusal(ShapeError, (2,)), refusal(ShapeError, (2, 3, 4))),
    example="pt.ones((2, 3)) @ pt.prepacked(pt.ones((3, 2)))",
    method=False,
    doc="The matrix itself, to be multiplied often as the right side of ``@`` and ``linear``. On "
    "``Cpu`` it is packed now, not at its second use, and what is packed stays beside its data as "
    "long as any tensor shows them: products with it and with its columns read that; what other "
    "parts become is kept from their first use. It takes as many bytes again, which count as in "
    "use, and are not bound by ``PHLOX_PACKED_BYTES``. A matrix that is used transposed is packed "
    "so: ``prepacked(w.mT)``. A weight that was stepped is another tensor. Other devices read a "
    "matrix as it lies: there nothing is done. No value changes.",
)


@contraction.formula(
    "x1: Num, x2: Num; axes: Contracted = 2 -> Num",
    numpy=ref.tensordot,
    shape=shapes.tensordot,
    prepare=shapes.prepare_tensordot,
    ulp=8,
    atol=16,
    cases=(
        case((2, 3, 4), (3, 4, 5)),
        case((2, 3), (4, 5), axes=0),
        case((2, 3, 4), (5, 4, 2), axes=((0, 2), (2, 1))),
        case((3,), (3,), axes=1),
    ),
    refuses=(refusal(ShapeError, (2, 3), (2, 3), axes=1),),
    example="pt.tensordot(pt.asarray([[1.0, 2.0]]), pt.asarray([[3.0], [4.0]]), axes=1)",
    doc="Sum of products over the last ``axes`` of x1 and the first of x2, or over lists of axes.",
)
def tensordot(x1: Tensor, x2: Tensor, axes: tuple[tuple[int, ...], tuple[int, ...]]) -> Tensor:
    left, right = axes
    rows = tuple(i for i in range(x1.ndim) if i not in left)
    columns = tuple(i for i in range(x2.ndim) if i not in right)
    inner = prod(x1.shape[i] for i in left)
    a = x1.permute_dims(rows + left).reshape(prod(x1.shape[i] for i in rows), inner)
    b = x2.permute_dims(right + columns).reshape(inner, prod(x2.shape[i] for i in columns))
    shape = (*(x1.shape[i] for i in rows), *(x2.shape[i] for i in columns))
    return (a @ b).reshape(shape)


@contraction.formula(
    "x1: Num, x2: Num; axis: int = -1 -> Num",
    numpy=ref.vecdot,
    shape=shapes.vecdot,
    prepare=shapes.prepare_vecdot,
    ulp=8,
    atol=16,
    cases=(case((2, 3), (3,)), case((3, 2), (3, 2), axis=0), case((4,), (4,))),
    refuses=(refusal(ShapeError, (3,), (4,)),),
    example="pt.vecdot(pt.asarray([1.0, 2.0]), pt.asarray([3.0, 4.0]))",
    doc="Sum of products along an axis; the tensors broadcast.",
)
def vecdot(x1: Tensor, x2: Tensor, axis: int) -> Tensor:
    products = x1.to_full_precision() * x2.to_full_precision()
    return products.sum(axis=axis, dtype=products.dtype).astype(x1.dtype)
