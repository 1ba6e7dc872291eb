"""Reductions: sums, products, extremes and moments along axes."""

from __future__ import annotations

from functools import reduce
from math import inf
from math import prod as prod_of
from operator import add
from typing import Any

import numpy as np

from .._call.row_blocks import parts_of
from .._device.backend import Backend
from .._errors.classes import KindError, ShapeError
from .._op.declaration import Attributes, Shape, Specs
from .._op.records import case, refusal
from .._values.dtype import as_dtype, bool_
from .._values.tensor import Tensor
from ..reference import reduction as ref
from ..shapes import reduction as shapes
from ._cases import in_types
from ._expansion import widely
from ._families import reduction
from ._moments import centered, ranged
from ._norms import p_norm

_AXES = "axis: Axes = None, keepdims: bool = False"


def sum_dtype(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Sum bool and narrow integers in the default integer type, or the unsigned one of its size."""
    *others, dtype = attributes
    own, wide = specs[0].dtype, backend.default_int
    if dtype is None:
        narrow = own.kind == "Bool" or (own.kind == "Int" and own.itemsize < wide.itemsize)
        unsigned = own.kind == "Int" and not own.signed
        dtype = own if not narrow else as_dtype(f"uint{8 * wide.itemsize}") if unsigned else wide
    if dtype.kind == "Bool":
        raise KindError("dtype", "a sum is no truth value", got=dtype, expected="Float or Int")
    return *others, dtype


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Sum over the axes along which ``shape`` was broadcast to the shape of x."""
    extra = x.ndim - len(shape)
    axes = [*range(extra)]
    axes += [extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1]
    out = x.sum(axis=axes) if axes else x
    return out if out.shape == shape else out.reshape(shape)


all_ = reduction(
    "all",
    f"x: Any; {_AXES} -> Bool",
    expand=lambda x, axis, keepdims: ~(~x).any(axis=axis, keepdims=keepdims),
    numpy=ref.truth(np.all),
    truths=True,
    doc="Whether all elements along the axes are True, or not 0; True for none.",
)
any_ = reduction(
    "any",
    f"x: Any; {_AXES} -> Bool",
    expand=lambda x, axis, keepdims: x.sum(axis=axis, keepdims=keepdims) != 0,
    numpy=ref.truth(np.any),
    truths=True,
    doc="Whether any element along the axes is True, or not 0; False for none.",
)
argmax = reduction(
    "argmax",
    "x: Num; axis: Axis? = None, keepdims: bool = False -> Int",
    numpy=ref.arg(np.argmax),
    shape=shapes.ordering_reduction,
    refuses=(refusal(ShapeError, (0,)),),
    doc="Index of the first largest element, of the flattened tensor without an axis; nan wins.",
)


def _turned(x: Tensor[Any]) -> Tensor[Any]:
    """The elements in the opposite order; the complement of integers does not overflow."""
    return ~x if x.dtype.kind == "Int" else -x


argmin = reduction(
    "argmin",
    "x: Num; axis: Axis? = None, keepdims: bool = False -> Int",
    expand=lambda x, axis, keepdims: _turned(x).argmax(axis=axis, keepdims=keepdims),
    numpy=ref.arg(np.argmin),
    shape=shapes.ordering_reduction,
    refuses=(refusal(ShapeError, (0,)),),
    doc="Index of the first smallest element, of the flattened tensor without an axis; nan wins.",
)


@reduction.formula(
    f"x: Any; {_AXES} -> Int",
    numpy=ref.count_nonzero,
    method=False,
    doc="How many elements along the axes are True, or not 0.",
)
def count_nonzero(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    parts = (x,) if x.dtype is bool_ else parts_of(x, axis)
    return reduce(add, [p.astype(bool_).sum(axis=axis, keepdims=keepdims) for p in parts])


@reduction.formula(
    f"x: Float; {_AXES} -> Float",
    numpy=ref.logsumexp,
    ulp=8,
    atol=8,
    doc="``ln Σ eˣ`` along the axes; does not overflow half way, -inf where all are -inf and for "
    "none.",
)
def logsumexp(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    if 0 in [x.shape[i] for i in axis]:
        return x.sum(axis=axis, keepdims=keepdims) - inf
    top = x.max(axis=axis, keepdims=True).detach()
    top = top.isfinite().where(top, 0.0)
    out = (x - top).exp().sum(axis=axis, keepdims=True).log() + top
    return out if keepdims else out.squeeze(axis)


max_ = reduction(
    "max",
    f"x: Num; {_AXES} -> Num",
    folds=True,
    numpy=ref.extreme(np.max),
    shape=shapes.ordering_reduction,
    signed_zeros=False,
    refuses=(refusal(ShapeError, (0,)),),
    doc="Largest element along the axes; nan wins. An empty axis is an error.",
)


@reduction.formula(
    f"x: Float; {_AXES} -> Float",
    folds=True,
    numpy=ref.mean,
    linear=True,
    ulp=4,
    atol=4,
    doc="Arithmetic mean along the axes; nan for none.",
)
def mean(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    count = prod_of(x.shape[i] for i in axis)
    return (x.to_full_precision().sum(axis=axis, keepdims=keepdims) / count).astype(x.dtype)


min_ = reduction(
    "min",
    f"x: Num; {_AXES} -> Num",
    folds=True,
    expand=lambda x, axis, keepdims: _turned(_turned(x).max(axis=axis, keepdims=keepdims)),
    numpy=ref.extreme(np.min),
    shape=shapes.ordering_reduction,
    signed_zeros=False,
    refuses=(refusal(ShapeError, (0,)),),
    doc="Smallest element along the axes; nan wins. An empty axis is an error.",
)
prod = reduction(
    "prod",
    f"x: Num; {_AXES}, dtype: DType? = None -> Num",
    folds=True,
    numpy=ref.product,
    prepare=sum_dtype,
    domain=(0.5, 1.5),
    ulp=70,  # as that of cumulative_prod
    cases=(
        case((5,)),
        case((3, 4), axis=0),
        case((2, 3, 4), axis=(0, 2), keepdims=True),
        case((), axis=None),
        case((3, 0, 2), axis=(0, 1)),
        case((65, 4), axis=0, keepdims=True),
        case((4, 65), axis=1),
        *in_types(),
    ),
    doc="Product of the elements along the axes; 1 for none. They are multiplied in ``dtype`` or a "
    "wider type. Without ``dtype``, narrow integers are multiplied in the default integer type, "
    "unsigned ones in the unsigned type of its size.",
)


@reduction.formula(
    "x: Float; axis: Axes = None, correction: float = 0.0, keepdims: bool = False -> Float",
    numpy=ref.std,
    ulp=16,
    atol=8,
    doc="Standard deviation along the axes, divided by ``n - correction``.",
)
@widely
def std(x: Tensor, axis: tuple[int, ...], correction: float, keepdims: bool) -> Tensor:
    part, power = ranged(x, axis)
    root = part.var(axis=axis, correction=correction, keepdims=keepdims).sqrt()
    return root / (power if keepdims else power.squeeze(axis))


sum_ = reduction(
    "sum",
    f"x: Any; {_AXES}, dtype: DType? = None -> Num",
    folds=True,
    numpy=ref.total,
    linear=True,
    prepare=sum_dtype,
    ulp=8,
    atol=64,
    refuses=(refusal(ShapeError, (2, 3), axis=(0, 0)),),
    doc="Sum of the elements along the axes; 0 for none. They are added in ``dtype`` or a wider "
    "type. Without ``dtype``, bool and narrow integers are added in the default integer type, "
    "unsigned ones in the unsigned type of its size. Narrow floats are added in float32.",
)


@reduction.formula(
    "x: Float; axis: Axes = None, correction: float = 0.0, keepdims: bool = False -> Float",
    numpy=ref.var,
    ulp=16,
    atol=8,
    doc="Variance along the axes: mean squared distance from the mean, divided by "
    "``n - correction``.",
)
@widely
def var(x: Tensor, axis: tuple[int, ...], correction: float, keepdims: bool) -> Tensor:
    count = prod_of(x.shape[i] for i in axis)
    _, gaps = centered(x, axis)
    squares = gaps.square().sum(axis=axis, keepdims=keepdims)
    return squares / float(max(count - correction, 0))


@reduction.formula(
    f"x: Float; *, {_AXES} -> Float",
    numpy=ref.vector_norm,
    ulp=16,
    doc="Euclidean length along the axes: ``√Σ x²``.",
)
@widely
def vector_norm(x: Tensor, axis: tuple[int, ...], keepdims: bool) -> Tensor:
    return p_norm(x.abs(), axis, 2.0, keepdims=keepdims)
