"""Tensors from nothing."""

from __future__ import annotations

import numpy as np

from .._errors.classes import UnknownArgumentError
from .._op.records import case, refusal
from ._families import creation

arange = creation(
    "arange",
    "; start: Scalar, step: Scalar, count: int, dtype: DType -> Num",
    numpy=lambda start, step, count, dtype: (
        np.asarray(start, np.float64 if dtype.kind == "Float" else np.int64)
        + np.arange(count) * np.asarray(step, np.float64 if dtype.kind == "Float" else np.int64)
    ).astype(dtype.numpy),
    ulp=2,
    atol=4,
    cases=(
        case(start=0, step=1, count=5),
        case(start=7, step=-2, count=4),
        case(start=0, step=1, count=0),
    ),
    refuses=(
        refusal(
            UnknownArgumentError,
        ),
    ),
    method=False,
    example="pt.arange(2, 8, 3)",
    doc="``start + i·step`` for i below ``count``, 1-d; ``pt.arange`` is the usual spelling.",
)
full = creation(
    "full",
    "; shape: Shape, value: Scalar, dtype: DType -> Any",
    numpy=lambda shape, value, dtype: np.full(shape, value, dtype.numpy),
    cases=(case(shape=(2, 3), value=1), case(shape=(), value=0), case(shape=(0, 2), value=1)),
    method=False,
    example="pt.full((2, 2), 0.5)",
    doc="A tensor of one value; ``pt.full``, ``pt.zeros`` and ``pt.ones`` are the usual spellings.",
)
