"""LAPACK in float32: ``numpy.linalg`` widens to float64, though its loops of float32 are there.

They are private to NumPy. Where a version has them elsewhere, its public functions do the work.
Systems are solved by the kernel.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from phlox_kernels import _native

_loops: Any = getattr(np.linalg, "_umath_linalg", None)
Array = np.ndarray[Any, Any]

# The ops that run in the element type they are given.
SINGLE: Final = frozenset({"eigh", "eigvalsh", "lstsq", "matrix_exp", "pinv", "svd", "svdvals"})
_TYPES: Final = {
    "eigh_lo": "f->ff",
    "eigvalsh_lo": "f->f",
    "svd": "f->f",
    "svd_f": "f->fff",
    "svd_s": "f->fff",
}


def _run(name: str, what: str, *operands: Array) -> Any:
    """A loop that refused raises the flag of an invalid operation."""
    try:
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="raise"):
            return getattr(_loops, name)(*operands, signature=_TYPES[name])
    except FloatingPointError:
        raise np.linalg.LinAlgError(what) from None


def _svd(x: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    endless = "SVD did not converge"
    if not compute_uv:
        return _run("svd", endless, x)
    return _run("svd_f" if full_matrices else "svd_s", endless, x)


def uploaded(array: Array) -> Any:
    """An array for the kernels."""
    dense = np.ascontiguousarray(array)
    return _native.RawTensor.from_buffer(dense, array.shape, array.dtype.name)


def _solve(x1: Array, x2: Array) -> Array:
    """By the kernel of the op."""
    return np.array(_native.solve(uploaded(x1), uploaded(x2)))  # to write to


_ENDLESS: Final = "Eigenvalues did not converge"

# What the references of these ops take in the place of ``numpy.linalg``, for float32.
LIBRARY: Final[Any] = (
    SimpleNamespace(
        eigh=partial(_run, "eigh_lo", _ENDLESS),
        eigvalsh=partial(_run, "eigvalsh_lo", _ENDLESS),
        solve=_solve,
        svd=_svd,
    )
    if all(hasattr(_loops, name) for name in _TYPES)
    else np.linalg
)


def values_of(x: Array) -> Array:
    """Singular values, in the element type of the matrices."""
    library = LIBRARY if x.dtype == np.float32 else np.linalg
    values: Array = library.svd(x, compute_uv=False)
    return values
