"""Factorisations of matrices and solutions of systems; ``px.linalg`` is the usual spelling."""

from __future__ import annotations

from functools import partial
from typing import Final

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import DefiniteSample, Given, case, refusal
from ..reference import factorization as ref
from ..shapes import factorization as shapes
from ._families import factorization

# Errors grow with the size of a matrix and its condition, which tests keep low.
_ULP, _ATOL = 64, 128
_op: Final = partial(factorization, internal=True, ulp=_ULP, atol=_ATOL)
_SQUARE = (case(DefiniteSample((2, 3, 3))), case(DefiniteSample((1, 1, 1))))
_ANY = (case((2, 3, 2)), case((2, 2, 3)), case((1, 3, 3)), case((2, 0, 3)))

# What is solved row after row knows nothing of the rows behind; by products of whole matrices an
# infinity times 0 is nan in all of its column.
_SPREAD = {"x2": "how far what is not finite spreads along its column"}

cholesky = _op(
    "cholesky",
    "x: Float; upper: bool = False -> Float",
    numpy=ref.cholesky,
    shape=shapes.same,
    cases=(*_SQUARE, case(DefiniteSample((2, 2, 2)), upper=True)),
    refuses=(
        refusal(ShapeError, (2, 3)),
        refusal(ShapeError, (2,)),
        refusal(ArgumentError, Given([[1.0, 2.0], [2.0, 1.0]])),
    ),
    doc="Triangular factor L of ``(x + xᵀ)/2 = L·Lᵀ``, or U of ``Uᵀ·U``.",
)
cofactor = _op(
    "cofactor",
    "x: Float -> Float",
    numpy=ref.cofactor,
    shape=shapes.same,
    atol=8 * _ATOL,
    cases=(*_SQUARE, case((1, 2, 2))),
    doc="Derivative of ``det``: ``det(x)·x⁻ᵀ``, and what that tends to where x is singular.",
)
det = _op(
    "det",
    "x: Float -> Float",
    numpy=ref.det,
    shape=shapes.number,
    atol=8 * _ATOL,
    cases=(*_SQUARE, case((1, 3, 3))),
    refuses=(refusal(ShapeError, (2, 3)),),
    doc="Determinant of each matrix.",
)
eigh = _op(
    "eigh",
    "x: Float -> values: Float, vectors: Float",
    numpy=ref.eigh,
    shape=shapes.values_and_vectors,
    ulp=4 * _ULP,
    atol=4 * _ATOL,
    cases=(*_SQUARE, case((1, 2, 2))),
    refuses=(refusal(ShapeError, (2, 3)),),
    doc="Eigenvalues of ``(x + xᵀ)/2`` in ascending order, and its eigenvectors, a column each; "
    "their signs, and what equal eigenvalues share, are as LAPACK leaves them.",
)
eigvalsh = _op(
    "eigvalsh",
    "x: Float -> Float",
    numpy=ref.eigvalsh,
    shape=shapes.values,
    cases=_SQUARE,
    refuses=(refusal(ShapeError, (2, 3)),),
    doc="Eigenvalues of ``(x + xᵀ)/2`` in ascending order.",
)
inv = _op(
    "inv",
    "x: Float -> Float",
    numpy=ref.inv,
    shape=shapes.same,
    cases=_SQUARE,
    refuses=(
        refusal(ShapeError, (2, 3)),
        refusal(ArgumentError, Given([[1.0, 1.0], [1.0, 1.0]])),
    ),
    doc="Inverse of each matrix; a singular one is an error.",
)
lstsq = _op(
    "lstsq",
    "x1: Float, x2: Float, rtol: Float? -> solution: Float, values: Float",
    numpy=ref.lstsq,
    shape=shapes.lstsq,
    unpromised=_SPREAD,
    atol=8 * _ATOL,
    cases=(
        case((1, 3, 2), (1, 3, 1), None),
        case((1, 2, 3), (1, 2, 2), None),
        case(DefiniteSample((2, 2, 2)), (2, 2, 1), None),
        case(DefiniteSample((2, 2)), (2, 2, 1), None),
        case((1, 3, 0), (1, 3, 1), None),
    ),
    refuses=(
        refusal(ShapeError, (2,), (2, 1), None),
        refusal(ShapeError, (3, 2), (2, 1), None),
    ),
    doc="What comes nearest to x2 (…, m, k) when x1 (…, m, n) is multiplied with it, the smallest "
    "of several; and the singular values of x1, of which those up to ``rtol`` of the largest count "
    "as 0.",
)
lu = _op(
    "lu",
    "x: Float -> permutation: Float, lower: Float, upper: Float",
    numpy=ref.lu,
    shape=shapes.lu,
    cases=_ANY,
    refuses=(refusal(ShapeError, (2,)),),
    doc="``x = permutation·lower·upper``; the diagonal of ``lower`` is 1, the pivot of a "
    "column is its largest element.",
)
matrix_exp = _op(
    "matrix_exp",
    "x: Float -> Float",
    numpy=ref.matrix_exp,
    shape=shapes.same,
    domain=(-1, 1),
    cases=(case((2, 3, 3)), case((1, 1, 1)), case((3, 3))),
    refuses=(refusal(ShapeError, (2, 3)),),
    doc="``Σ xⁿ/n!``, computed in float64 by scaling and squaring. Higham, 2005.",
)
pinv = _op(
    "pinv",
    "x: Float, rtol: Float? -> Float",
    numpy=ref.pinv,
    shape=shapes.pinv,
    atol=8 * _ATOL,
    cases=(case((1, 3, 2), None), case((1, 2, 3), None), case(DefiniteSample((2, 2, 2)), None)),
    refuses=(refusal(ShapeError, (2,), None),),
    doc="Pseudoinverse of each matrix; singular values up to ``rtol`` of the largest count as 0.",
)
qr = _op(
    "qr",
    "x: Float; mode: str = 'reduced' -> q: Float, r: Float",
    numpy=ref.qr,
    shape=shapes.qr,
    ulp=4 * _ULP,
    atol=4 * _ATOL,
    cases=(*_SQUARE, case((1, 3, 2)), case((1, 2, 3)), case((1, 2, 3), mode="complete")),
    refuses=(
        refusal(ShapeError, (3,)),
        refusal(ArgumentError, (2, 2), mode="all"),
    ),
    doc="``x = q·r`` with orthonormal columns and what is above the diagonal; the signs are as "
    "LAPACK leaves them.",
)
slogdet = _op(
    "slogdet",
    "x: Float -> sign: Float, size: Float",
    numpy=ref.slogdet,
    shape=shapes.numbers,
    cases=_SQUARE,
    doc="Sign and logarithm of the absolute value of the determinant.",
)
solve = _op(
    "solve",
    "x1: Float, x2: Float -> Float",
    numpy=ref.solve,
    shape=shapes.solve,
    cases=(
        case(DefiniteSample((2, 3, 3)), (2, 3, 2)),
        case(DefiniteSample((1, 2, 2)), (3, 2, 1)),
        case(DefiniteSample((2, 2, 2)), (2, 3)),
    ),
    refuses=(
        refusal(ShapeError, (2, 2), (3, 1)),
        refusal(ArgumentError, Given([[1.0, 1.0], [1.0, 1.0]]), (2, 1)),
    ),
    doc="What gives x2 (…, n, k) when x1 (…, n, n) is multiplied with it.",
)
solve_triangular = _op(
    "solve_triangular",
    "x1: Float, x2: Float; upper: bool = False, unit_diagonal: bool = False -> Float",
    numpy=ref.solve_triangular,
    shape=shapes.solve,
    unpromised=_SPREAD,
    cases=(
        case(DefiniteSample((2, 3, 3)), (2, 3, 2)),
        case(DefiniteSample((1, 2, 2)), (3, 2, 1), upper=True),
        case(DefiniteSample((2, 2, 2)), (2, 3), unit_diagonal=True),
    ),
    doc="As ``solve``, of the elements of x1 on one side of its diagonal; the others are not read, "
    "nor is a diagonal that is declared to be 1.",
)
svd = _op(
    "svd",
    "x: Float; full_matrices: bool = True -> u: Float, s: Float, vh: Float",
    numpy=ref.svd,
    shape=shapes.svd,
    ulp=4 * _ULP,
    atol=4 * _ATOL,
    cases=(
        case((1, 3, 2), full_matrices=False),
        case((1, 2, 3), full_matrices=False),
        case((2, 2, 2)),
        case((1, 0, 2), full_matrices=False),
    ),
    refuses=(refusal(ShapeError, (2,)),),
    doc="``x = u·diag(s)·vh``, singular values in descending order; the signs of the vectors are "
    "as LAPACK leaves them.",
)
svdvals = _op(
    "svdvals",
    "x: Float -> Float",
    numpy=ref.svdvals,
    shape=shapes.svdvals,
    cases=_ANY,
    doc="Singular values in descending order.",
)
