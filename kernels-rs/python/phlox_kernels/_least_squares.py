"""``lstsq`` by reflections: a kernel leaves a triangle that has the same singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phlox_kernels import _native
from phlox_kernels._lapack import uploaded, values_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Array = np.ndarray[Any, Any]
    Entry = Callable[..., Any]


def by_triangle(reference: Entry, read: Callable[[Any], Array]) -> Entry:
    """Return the entry of ``lstsq``; ``reference`` solves what lacks full rank."""

    def run(x1: Any, x2: Any, rtol: Any) -> Any:
        (*front, m, n), (*other, _, _) = x1.shape, x2.shape
        if m < n or not m * n or front != other:
            return reference(x1, x2, rtol)
        r, rest = _native._reflected(x1, x2)
        triangle = read(r)
        finite = np.isfinite(triangle).all((-2, -1), keepdims=True)
        try:
            values = values_of(np.where(finite, triangle, 0))
        except np.linalg.LinAlgError:
            return reference(x1, x2, rtol)
        own = m * np.finfo(triangle.dtype).eps if rtol is None else read(rtol)[..., None]
        large = values > np.asarray(own, triangle.dtype) * values[..., :1]
        diagonal = np.diagonal(triangle, axis1=-2, axis2=-1)
        full = (large & (diagonal != 0)).all(-1, keepdims=True)
        if not full.any():
            return reference(x1, x2, rtol)
        if not full.all():
            # What the kernel refuses to divide by.
            r = uploaded(np.where(full[..., None], triangle, np.eye(n, dtype=triangle.dtype)))
        solution = _native.solve_triangular(r, rest, True, False)
        found = (_native.cast(solution, x1.dtype), _native.cast(uploaded(values), x1.dtype))
        if full.all():
            return found
        chosen = (uploaded(full[..., None]), uploaded(full))
        return tuple(map(_native.where, chosen, found, reference(x1, x2, rtol)))

    return run
