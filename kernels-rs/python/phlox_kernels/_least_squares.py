"""``lstsq`` by reflections: a kernel leaves a triangle that has the same singular values."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from phlox_kernels import _native
from phlox_kernels._lapack import values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]
    Entry = Callable[..., Any]


def by_triangle(reference: Entry, read: Callable[[Any], Array]) -> Entry:
    """Return the entry of ``lstsq``, of which ``reference`` does what has not full rank."""

    def run(x1: Any, x2: Any, rtol: Any) -> Any:
        (*front, m, n), (*other, _, _) = x1.shape, x2.shape
        if m < n or not m * n or front != other:
            return reference(x1, x2, rtol)
        r, rest = _native._reflected(x1, x2)
        triangle = read(r)
        if not isfinite(triangle.sum()):
            return reference(x1, x2, rtol)
        values = values_of(triangle)
        own = m * np.finfo(triangle.dtype).eps if rtol is None else read(rtol)[..., None]
        part = np.asarray(own, triangle.dtype)
        diagonal = np.diagonal(triangle, axis1=-2, axis2=-1)
        if (values > part * values[..., :1]).all() and diagonal.all():
            solution = _native.solve_triangular(r, rest, True, False)
        else:
            bound = _uploaded(np.broadcast_to(part, (*front, 1))[..., 0])
            solution, _ = reference(r, rest, bound)
        return _native.cast(solution, x1.dtype), _native.cast(_uploaded(values), x1.dtype)

    return run


def _uploaded(array: Array) -> Any:
    dense = np.ascontiguousarray(array)
    return _native.RawTensor.from_buffer(dense, array.shape, array.dtype.name)
