"""Running totals along an axis."""

from __future__ import annotations

from ..reference import scan as ref
from ._families import scan
from .reduction import sum_dtype

cumsum = scan(
    "cumsum",
    "x: Num; axis: Axis = -1, dtype: DType? = None -> Num",
    numpy=ref.cumsum,
    linear=True,
    prepare=sum_dtype,
    ulp=16,
    atol=64,
    doc="Running sum along an axis, in the same types as ``sum``.",
)
