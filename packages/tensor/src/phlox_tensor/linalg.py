"""Linear algebra: the array API standard's extension, and functions that others have as well.

Matrices stand in the last two axes, batches in front of them. Factorisations are those of LAPACK:
``Cpu()`` and ``Numpy()`` run NumPy's or their own, others refuse them with a hint, and with
them what is made of them: ``lstsq``, ``matrix_rank``, ``matrix_norm`` by singular values, powers
below 0. Products, ``cross``, ``trace`` and the other norms run everywhere. Derivatives are of any
order, except for vectors that complete a basis: full ``svd`` and complete ``qr`` of other than
square matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from . import ops
from ._data.creation import eye
from ._data.spectrum import check_floats
from ._elsewhere.spellings import unknown_member
from ._errors.called import as_called
from ._errors.classes import ArgumentError, ShapeError
from ._functions.factors import (
    EighResult,
    LstsqResult,
    LuResult,
    QrResult,
    SlogdetResult,
    SvdResult,
)
from ._functions.functions import matmul, matrix_transpose, outer, tensordot, vecdot
from ._op.attributes import NORMALIZERS
from ._values.dtype import DTypeLike, finfo
from ._values.kinds import AnyKind, Int, NumKind
from ._values.tensor import Tensor
from .ops import matrices
from .ops._norms import p_norm

__all__ = [
    "EighResult",
    "LstsqResult",
    "LuResult",
    "QrResult",
    "SlogdetResult",
    "SvdResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

Order = int | float | Literal["fro", "nuc"] | None


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular factor L of ``x = L·Lᵀ``, or U of ``x = Uᵀ·U``.

    Both triangles of x are read: what is factored is ``(x + xᵀ)/2``.

    Raises:
        ArgumentError: when a matrix is not positive definite.

    Example:
        >>> cholesky(asarray([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    return ops.cholesky(x, upper)


def cross(x1: Tensor[NumKind], x2: Tensor[NumKind], /, *, axis: int = -1) -> Tensor[NumKind]:
    """Return what is perpendicular to two vectors of size 3 along an axis; the others broadcast.

    Example:
        >>> cross(asarray([1.0, 0.0, 0.0]), asarray([0.0, 1.0, 0.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    return matrices.cross(x1, x2, axis)


def det(x: Tensor, /) -> Tensor:
    """Return the determinant of each matrix.

    Example:
        >>> det(asarray([[2.0, 0.0], [0.0, 3.0]])).item()
        6.0
    """
    return ops.det(x)


def diagonal(x: Tensor[AnyKind], /, *, offset: int = 0) -> Tensor[AnyKind]:
    """Return the elements whose column is their row plus ``offset``.

    Example:
        >>> diagonal(asarray([[1, 2], [3, 4]])).tolist()
        [1, 4]
    """
    return x.diagonal(offset)


def eigh(x: Tensor, /) -> EighResult:
    """Return eigenvalues and eigenvectors of symmetric matrices.

    Both triangles of x are read: the matrix is ``(x + xᵀ)/2``. Signs of vectors are those of
    LAPACK. The derivative of the vectors is undefined, nan, where eigenvalues are equal.

    Example:
        >>> eigh(asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues.tolist()
        [1.0, 2.0]
    """
    return EighResult(*ops.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return eigenvalues of symmetric matrices in ascending order, as ``eigh`` reads them.

    Example:
        >>> eigvalsh(asarray([[2.0, 0.0], [0.0, 1.0]])).tolist()
        [1.0, 2.0]
    """
    return ops.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Return the inverse of each matrix.

    Raises:
        ArgumentError: when one is singular.

    Example:
        >>> inv(asarray([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return ops.inv(x)


@as_called
def lstsq(x1: Tensor, x2: Tensor, /, *, rtol: Tensor | float | None = None) -> LstsqResult:
    """Return what comes nearest to x2 when x1 is multiplied with it, the smallest of several.

    Args:
        x1: (…, m, n).
        x2: (…, m, k); a vector of m for one column.
        rtol: singular values up to this part of the largest count as 0.

    Raises:
        ShapeError: when the rows of x1 and x2 differ.

    Example:
        >>> lstsq(asarray([[1.0], [1.0]]), asarray([1.0, 3.0])).solution.round().tolist()
        [2.0]
    """
    columns = x2[:, None] if x2.ndim == 1 else x2
    if x1.ndim < 2 or columns.ndim < 2 or x1.shape[-2] != columns.shape[-2]:
        got, expected = f"{x1.shape} and {x2.shape}", "(…, m, n) and (…, m, k) or (m,)"
        raise ShapeError("lstsq", "rows differ", got=got, expected=expected)
    found, values = ops.lstsq(x1, columns, _part(x1, rtol))
    left = (columns - x1 @ found).square().sum(axis=-2)
    if x2.ndim == 1:
        found, left = found[..., 0], left[..., 0]
    return LstsqResult(found, left, _rank(x1, values.detach(), rtol), values)


def lu(x: Tensor, /) -> LuResult:
    """Return ``x = P·L·U`` by elimination with the largest element of a column as its pivot.

    Example:
        >>> lu(asarray([[0.0, 2.0], [1.0, 3.0]])).U.tolist()
        [[1.0, 3.0], [0.0, 2.0]]
    """
    return LuResult(*ops.lu(x))


def matrix_exp(x: Tensor, /) -> Tensor:
    """Return ``Σ xⁿ/n!`` of square matrices, by scaling and squaring. Higham, 2005.

    Example:
        >>> matrix_exp(asarray([[0.0, 1.0], [0.0, 0.0]])).tolist()
        [[1.0, 1.0], [0.0, 1.0]]
    """
    return ops.matrix_exp(x)


@as_called
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Order = "fro") -> Tensor:
    """Return a norm of each matrix.

    Args:
        x: (…, m, n).
        keepdims: leave two axes of size 1.
        ord: ``"fro"``, of all elements; ``"nuc"``, the sum of singular values; 2 and -2, the
            largest and smallest of these; 1 and -1, of the sums of columns; inf and -inf, of rows.

    Raises:
        ArgumentError: for another order.
        KindError: for whole numbers.

    Example:
        >>> matrix_norm(asarray([[3.0, 0.0], [0.0, 4.0]])).item()
        5.0
    """
    check_floats("matrix_norm", x)
    if x.ndim < 2:
        raise ShapeError("matrix_norm", "not a matrix", got=x.shape, expected="(…, n, m)")
    if ord == "fro":
        return x.vector_norm(axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        out = values.sum(axis=-1) if ord == "nuc" else _end(values, -1, largest=ord == 2)
        return out[..., None, None] if keepdims else out
    if ord not in (1, -1, inf, -inf):
        expected = "'fro', 'nuc', 1, -1, 2, -2, inf or -inf"
        raise ArgumentError("matrix_norm", "unknown order", got=repr(ord), expected=expected)
    first = -2 if ord in (1, -1) else -1
    sums = x.abs().sum(axis=first, keepdims=True)
    out = _end(sums, -3 - first, largest=ord in (1, inf), keepdims=True)
    return out if keepdims else out[..., 0, 0]


def _end(x: Tensor, axis: int, *, largest: bool, keepdims: bool = False) -> Tensor:
    """The largest or smallest along an axis; 0 of none, as is the norm of an empty matrix."""
    if not x.shape[axis]:
        return x.sum(axis=axis, keepdims=keepdims)
    return (x.max if largest else x.min)(axis=axis, keepdims=keepdims)


@as_called
def matrix_power(x: Tensor[NumKind], n: int, /) -> Tensor[NumKind]:
    """Return the product of ``n`` times each square matrix; of its inverse for a negative n.

    Example:
        >>> matrix_power(asarray([[1.0, 1.0], [0.0, 1.0]]), 3).tolist()
        [[1.0, 3.0], [0.0, 1.0]]
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError("matrix_power", "not square", got=x.shape, expected="(…, n, n)")
    power: Any = ops.inv(x) if n < 0 else x
    rest, out = abs(n), None
    while rest:
        if rest & 1:
            out = power if out is None else out @ power
        rest >>= 1
        if rest:
            power = power @ power
    if out is None:
        one: Any = eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return one.broadcast_to(x.shape)
    return out


@as_called
def matrix_rank(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor[Int]:
    """Return how many singular values are larger than ``rtol`` of the largest one.

    By default ``rtol`` is the larger size times the epsilon of the type.

    Example:
        >>> matrix_rank(asarray([[1.0, 2.0], [2.0, 4.0]])).item()
        1
    """
    return _rank(x, svdvals(x.detach()), rtol)


def _rank(x: Tensor, values: Tensor, rtol: Tensor | float | None) -> Tensor[Int]:
    """How many of the singular values of x are not 0."""
    part = _part(x, rtol)
    bound = part[..., None] if isinstance(part, Tensor) else part
    large: Tensor[Int] = (values > values[..., :1] * bound).astype(x.device.default_int)
    return large.sum(axis=-1)


def _part(x: Tensor, rtol: Tensor | float | None) -> Tensor | float:
    if isinstance(rtol, Tensor):
        return rtol.astype(x.dtype)
    if rtol is not None and not rtol >= 0:
        raise ArgumentError("pinv", "no part of a number", got=f"rtol={rtol}", expected="rtol >= 0")
    return max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol


@as_called
def pinv(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """Return the pseudoinverse of each matrix, by singular values.

    Args:
        x: (…, m, n).
        rtol: singular values up to this part of the largest count as 0; by default the larger size
            times the epsilon of the type. A tensor has one for each matrix.

    Raises:
        ArgumentError: for a number below 0 or nan as ``rtol``.

    Example:
        >>> pinv(asarray([[2.0, 0.0], [0.0, 0.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.0]]
    """
    if x.ndim < 2:
        raise ShapeError("pinv", "not a matrix", got=x.shape, expected="(…, m, n)")
    return ops.pinv(x, _part(x, rtol))


def qr(x: Tensor, /, *, mode: str = "reduced") -> QrResult:
    """Return orthonormal columns Q and an upper triangle R with ``x = Q·R``.

    Signs are those of LAPACK.

    Args:
        x: (…, m, n).
        mode: ``"reduced"`` for as many columns as the smaller size, ``"complete"`` for m.

    Example:
        >>> qr(asarray([[3.0, 1.0], [4.0, 2.0]])).R.shape
        (2, 2)
    """
    return QrResult(*ops.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Return the sign of the determinant, and the logarithm of its absolute value.

    Example:
        >>> slogdet(asarray([[-1.0, 0.0], [0.0, 1.0]])).sign.item()
        -1.0
    """
    return SlogdetResult(*ops.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return what gives x2 when x1 is multiplied with it.

    Args:
        x1: (…, n, n).
        x2: (…, n, k); a vector of n for one column. Batches broadcast.

    Raises:
        ArgumentError: when a matrix is singular.

    Example:
        >>> solve(asarray([[2.0, 0.0], [0.0, 4.0]]), asarray([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """
    out: Tensor = ops.solve(x1, _columns("solve", x1, x2))
    return out[..., 0] if x2.ndim == 1 else out


def _columns(op: str, x1: Tensor, x2: Tensor) -> Tensor:
    """The right side as a matrix; an error shows a vector as it was given."""
    if getattr(x2, "ndim", 0) != 1:
        return x2
    if getattr(x1, "ndim", 0) > 1 and x1.shape[-1] != x2.shape[0]:
        got, expected = f"{x1.shape} and {x2.shape}", f"(…, n, n) and (n,), n = {x1.shape[-1]}"
        raise ShapeError(op, "rows differ", got=got, expected=expected)
    return x2[:, None]


def solve_triangular(
    x1: Tensor, x2: Tensor, /, *, upper: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """Return what gives x2 when a triangle of x1 is multiplied with it.

    Args:
        x1: (…, n, n), of which the other triangle is not read.
        x2: (…, n, k); a vector of n for one column. Batches broadcast.
        upper: whether the triangle is the one above the diagonal.
        unit_diagonal: take the diagonal for ones, whatever it holds.

    Raises:
        ArgumentError: when the diagonal has a 0.

    Example:
        >>> solve_triangular(asarray([[2.0, 9.0], [1.0, 1.0]]), asarray([2.0, 2.0])).tolist()
        [1.0, 1.0]
    """
    columns = _columns("solve_triangular", x1, x2)
    out: Tensor = ops.solve_triangular(x1, columns, upper, unit_diagonal)
    return out[..., 0] if x2.ndim == 1 else out


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SvdResult:
    """Return ``x = U·diag(S)·Vh`` with orthonormal columns of U and rows of Vh.

    Signs of vectors are those of LAPACK. Their derivative is undefined, nan, where singular values
    are equal, and an error for the vectors that complete a basis.

    Args:
        x: (…, m, n).
        full_matrices: complete U to (…, m, m) and Vh to (…, n, n).

    Example:
        >>> svd(asarray([[0.0, 2.0], [1.0, 0.0]])).S.tolist()
        [2.0, 1.0]
    """
    return SvdResult(*ops.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Return singular values in descending order.

    Example:
        >>> svdvals(asarray([[0.0, 2.0], [1.0, 0.0]])).tolist()
        [2.0, 1.0]
    """
    return ops.svdvals(x)


@as_called
def trace(
    x: Tensor[NumKind], /, *, offset: int = 0, dtype: DTypeLike | None = None
) -> Tensor[NumKind]:
    """Return the sum of a diagonal of each matrix, in the type that ``sum`` gives.

    Example:
        >>> trace(asarray([[1, 2], [3, 4]])).item()
        5
    """
    return x.diagonal(offset).sum(axis=-1, dtype=dtype)


@as_called
def vector_norm(
    x: Tensor,
    /,
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ord: float = 2,
) -> Tensor:
    """Return ``(Σ|x|ᵒʳᵈ)^(1/ord)`` along the axes, of all elements by default.

    Args:
        x: the elements.
        axis: one axis or several.
        keepdims: leave axes of size 1.
        ord: 2 for the length; 0 counts what is not 0; inf and -inf are the largest and smallest.

    Example:
        >>> vector_norm(asarray([3.0, 4.0])).item(), vector_norm(asarray([3.0, 4.0]), ord=1).item()
        (5.0, 7.0)
    """
    check_floats("vector_norm", x)
    ord = NORMALIZERS["float"](ord, "ord", "vector_norm", x.ndim)
    if ord == 2:
        return x.vector_norm(axis=axis, keepdims=keepdims)
    if ord in (inf, -inf):
        size = x.abs()
        return (size.max if ord == inf else size.min)(axis=axis, keepdims=keepdims)
    axes = NORMALIZERS["Axes"](axis, "axis", "vector_norm", x.ndim)
    return p_norm(x.to_full_precision().abs(), axes, ord, keepdims=keepdims).astype(x.dtype)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what to type for a name that is not here."""
        raise unknown_member(name, __name__, __all__)
