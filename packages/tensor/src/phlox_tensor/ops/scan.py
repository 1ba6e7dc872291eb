"""Running totals along an axis."""

from __future__ import annotations

from ..reference import scan as ref
from ._families import scan

cumsum = scan(
    "cumsum",
    "x: Num; axis: Axis = -1 -> Num",
    numpy=ref.cumsum,
    linear=True,
    ulp=16,
    atol=64,
    doc="Running sum along an axis.",
)
