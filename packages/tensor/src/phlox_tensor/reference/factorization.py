"""Factorisations and solutions of systems, by LAPACK through NumPy; narrow floats as float32.

NumPy widens float32 to float64. A backend that has LAPACK's float32 gives it as ``library``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, Final

import numpy as np

from .._errors.classes import ArgumentError
from ._precision import is_float, widen

Array = np.ndarray[Any, Any]

# Below these sizes a call of LAPACK costs less than another split of a triangle, or panel.
_TRIANGLE: Final = 64
_PANEL: Final = 32
# Padé approximant of degree 13 and the norm up to which it is exact: Higham, 2005, table 2.3.
_PADE: Final = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
    129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
    40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM: Final = 5.371920351148152
# Up to this condition an inverse in float64 keeps half of the digits.
_CONDITION: Final = 1e8


def _lapack(op: str, what: str, hint: str | None = None) -> Callable[[Any], Any]:
    """Widen narrow floats for LAPACK, round what it gives, and say what it refuses.

    LAPACK never sees a matrix that is not finite, at which some of its iterations do not end.
    """

    def wrapper(function: Any) -> Any:
        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            dtype = args[0].dtype
            wide = [widen(a) if isinstance(a, np.ndarray) and is_float(a) else a for a in args]
            finite = np.asarray(np.isfinite(wide[0]).all(axis=(-2, -1)))
            if not finite.all():
                one = np.eye(*wide[0].shape[-2:], dtype=wide[0].dtype)
                wide[0] = np.where(finite[..., None, None], wide[0], one)
            try:
                out = function(*wide, **options)
            except np.linalg.LinAlgError as error:
                said = str(error).lower()
                got = None if what.endswith(said) else said
                raise ArgumentError(op, what, got=got, hint=hint) from None
            parts = out if isinstance(out, tuple) else (np.asarray(out),)
            if not finite.all():
                parts = tuple([_unknown(part, finite) for part in parts])
            rounded = tuple([part.astype(dtype, copy=False) for part in parts])
            return rounded if isinstance(out, tuple) else rounded[0]

        return run

    return wrapper


def _unknown(part: Array, finite: Array) -> Array:
    """Nan for the matrices that are not finite; the batch of a solution may be larger."""
    behind = max(part.ndim - finite.ndim, 0)
    known = finite.reshape(finite.shape + (1,) * behind)
    return np.where(known, part, np.nan)


_SINGULAR: Final = "a matrix is singular"
_ENDLESS: Final = "the iteration does not converge"


def _symmetric(x: Array) -> Array:
    out = x + np.swapaxes(x, -1, -2)
    out *= 0.5
    return out


@_lapack("cholesky", "a matrix is not positive definite", "px.linalg.eigh(x)")
def cholesky(x: Array, upper: bool) -> Array:
    lower = np.linalg.cholesky(_symmetric(x))
    return np.swapaxes(lower, -1, -2) if upper else lower


@_lapack("cofactor", _ENDLESS)
def cofactor(x: Array) -> Array:
    """``det(x)·x⁻ᵀ``; by singular values where a matrix has next to no inverse."""
    x = x.astype(np.float64)
    factor = np.asarray(np.linalg.det(x))
    one = np.eye(x.shape[-1])
    usable = np.isfinite(factor) & (np.abs(factor) > np.finfo(np.float64).tiny)
    kept = np.where(usable[..., None, None], x, one)
    inverse = np.linalg.inv(kept)
    size = [np.abs(part).sum(axis=-2).max(axis=-1, initial=0) for part in (kept, inverse)]
    good = usable & (size[0] * size[1] < _CONDITION)
    out: Array = factor[..., None, None] * np.swapaxes(inverse, -1, -2)
    if not good.all():
        out[~good] = _by_singular_values(x[~good])
    return out


def _by_singular_values(x: Array) -> Array:
    """``det(u)·det(v)·u·diag(Π of the others)·vᵀ``: one of the values may be 0."""
    u, s, vh = np.linalg.svd(x)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return sign[..., None, None] * ((u * others[..., None, :]) @ vh)


@_lapack("det", _SINGULAR)
def det(x: Array) -> Array:
    return np.linalg.det(x)


@_lapack("eigh", _ENDLESS)
def eigh(x: Array, library: Any = np.linalg) -> tuple[Array, Array]:
    values, vectors = library.eigh(_symmetric(x))
    return values, vectors


@_lapack("eigvalsh", _ENDLESS)
def eigvalsh(x: Array, library: Any = np.linalg) -> Any:
    return library.eigvalsh(_symmetric(x))


@_lapack("inv", _SINGULAR, "px.linalg.pinv(x)")
def inv(x: Array) -> Array:
    return np.linalg.inv(x)


@_lapack("lstsq", _ENDLESS)
def lstsq(
    x1: Array, x2: Array, rtol: Array | None, library: Any = np.linalg
) -> tuple[Array, Array]:
    """By singular values, so that no condition counts twice."""
    (*front, m, n), k = x1.shape, x2.shape[-1]
    if not x1.size:
        batch = np.broadcast_shapes(tuple(front), x2.shape[:-2])
        return np.zeros((*batch, n, k), x1.dtype), np.zeros((*front, min(m, n)), x1.dtype)
    u, s, vh, inverse = _inverted(x1, rtol, library)
    return np.swapaxes(vh, -1, -2) @ (inverse * (np.swapaxes(u, -1, -2) @ x2)), s


@_lapack("lu", _SINGULAR)
def lu(x: Array) -> tuple[Array, Array, Array]:
    """Gaussian elimination by panels, with the largest element of a column as its pivot."""
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    a = x.reshape((prod(batch), m, n)).copy()
    lanes, order = np.arange(len(a)), np.tile(np.arange(m), (len(a), 1))
    for start in range(0, k, _PANEL):
        end = min(start + _PANEL, k)
        for j in range(start, end):
            pivot = j + np.argmax(np.abs(a[:, j:, j]), axis=1)
            for each in (a, order):
                each[lanes, j], each[lanes, pivot] = each[lanes, pivot], each[lanes, j]
            head = a[:, j, j, None]
            a[:, j + 1 :, j] /= np.where(head == 0, 1, head)
            rest = a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : end]
            a[:, j + 1 :, j + 1 : end] -= rest
        if end < n:
            unit = np.tril(a[:, start:end, start:end], -1) + np.eye(end - start, dtype=a.dtype)
            a[:, start:end, end:] = np.linalg.solve(unit, a[:, start:end, end:])
            a[:, end:, end:] -= a[:, end:, start:end] @ a[:, start:end, end:]
    lower = np.tril(a[:, :, :k], -1) + np.eye(m, k, dtype=a.dtype)
    moved = np.swapaxes(np.eye(m, dtype=a.dtype)[order], -1, -2)
    parts = (moved, lower, np.triu(a[:, :k]))
    return tuple(part.reshape((*batch, *part.shape[1:])) for part in parts)  # type: ignore[return-value]


def matrix_exp(x: Array, library: Any = np.linalg) -> Array:
    """Scaling and squaring: Higham, 2005, algorithm 2.3."""
    if not x.size:
        return x.copy()
    a = x.astype(np.float64).reshape((prod(x.shape[:-2]), *x.shape[-2:]))
    with np.errstate(over="ignore", invalid="ignore"):  # a large matrix has a large result
        return _scaled_and_squared(a, library).reshape(x.shape).astype(x.dtype)


def _scaled_and_squared(a: Array, library: Any) -> Array:
    size = np.abs(a).sum(axis=-2).max(axis=-1)
    finite = np.isfinite(size)
    a = np.where(finite[:, None, None], a, 0.0)
    far = finite & (size > _PADE_NORM)
    halvings = np.where(far, np.ceil(np.log2(np.where(far, size, 1.0) / _PADE_NORM)), 0).astype(int)
    out = _approximant(a / 2.0 ** halvings[:, None, None], library)
    for done in range(halvings.max()):
        left = halvings > done
        out[left] = out[left] @ out[left]
    out[~finite] = np.nan
    return out


def _approximant(a: Array, library: Any) -> Array:
    b, one = _PADE, np.eye(a.shape[-1])
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2
    u, v = a @ (odd + b[1] * one), even + b[0] * one
    return library.solve(v - u, v + u)


@_lapack("pinv", _ENDLESS)
def pinv(x: Array, rtol: Array | None, library: Any = np.linalg) -> Array:
    m, n = x.shape[-2:]
    if not x.size:
        return np.zeros((*x.shape[:-2], n, m), x.dtype)
    u, _, vh, inverse = _inverted(x, rtol, library)
    return np.swapaxes(vh, -1, -2) @ (inverse * np.swapaxes(u, -1, -2))


def _inverted(x: Array, rtol: Array | None, library: Any) -> tuple[Array, Array, Array, Array]:
    """``svd``, and the inverses of singular values as a column; 0 of those that count as 0."""
    part = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol[..., None]
    u, s, vh = library.svd(x, full_matrices=False)
    large = s > part * s.max(axis=-1, keepdims=True)
    return u, s, vh, np.where(large, 1 / np.where(large, s, 1), 0)[..., None]


@_lapack("qr", _ENDLESS)
def qr(x: Array, mode: Any) -> tuple[Array, Array]:
    q, r = np.linalg.qr(x, mode=mode)
    return q, r


@_lapack("slogdet", _SINGULAR)
def slogdet(x: Array) -> tuple[Array, Array]:
    sign, size = np.linalg.slogdet(x)
    return np.asarray(sign), np.asarray(size)


@_lapack("solve", _SINGULAR, "px.linalg.lstsq(x1, x2)")
def solve(x1: Array, x2: Array) -> Array:
    return np.linalg.solve(*_matched(x1, x2))


def _matched(x1: Array, x2: Array) -> tuple[Array, Array]:
    """Matrices on both sides: NumPy 1 and 2 read a stack of vectors differently."""
    rank = max(x1.ndim, x2.ndim)
    a, b = (x.reshape((1,) * (rank - x.ndim) + x.shape) for x in (x1, x2))
    return a, b


def solve_triangular(x1: Array, x2: Array, upper: bool, unit_diagonal: bool) -> Array:
    """Of x1 nothing is looked at but the triangle, and its diagonal where that is not 1."""
    half = np.triu(x1) if upper else np.tril(x1)
    if unit_diagonal:
        half = np.where(np.eye(x1.shape[-1], dtype=bool), half.dtype.type(1), half)
    return _by_triangle(half, x2, upper)


@_lapack("solve_triangular", _SINGULAR)
def _by_triangle(half: Array, x2: Array, upper: bool) -> Array:
    a, b = _matched(half, x2)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _substituted(a, np.broadcast_to(b, (*batch, *b.shape[-2:])), upper)


def _substituted(a: Array, b: Array, upper: bool) -> Array:
    """Half of the unknowns, then the other half: all but small triangles is products."""
    n = a.shape[-1]
    if n <= _TRIANGLE:
        return np.linalg.solve(a, b)
    m = n // 2
    first, second = (slice(m, n), slice(0, m)) if upper else (slice(0, m), slice(m, n))
    x = _substituted(a[..., first, first], b[..., first, :], upper)
    rest = b[..., second, :] - a[..., second, first] @ x
    y = _substituted(a[..., second, second], rest, upper)
    return np.concatenate([y, x] if upper else [x, y], axis=-2)


@_lapack("svd", _ENDLESS)
def svd(x: Array, full_matrices: bool, library: Any = np.linalg) -> tuple[Array, Array, Array]:
    u, s, vh = library.svd(x, full_matrices=full_matrices)
    return u, s, vh


@_lapack("svdvals", _ENDLESS)
def svdvals(x: Array, library: Any = np.linalg) -> Any:
    return library.svd(x, compute_uv=False)
