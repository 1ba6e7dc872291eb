"""Derivatives of factorisations, written in ops, so that they have derivatives too.

Giles, 2008, collects the classic ones; further sources stand at the functions.
"""

from __future__ import annotations

from typing import Final

from phlox_tensor import (
    ArgumentError,
    Bool,
    GradientError,
    Tensor,
    arange,
    concat,
    eye,
    finfo,
    ops,
    tril,
    triu,
)
from phlox_tensor.ops.reduction import sum_to

from .._rule import Rule

Shape = tuple[int, ...]
# Up to so many rows traces keep the second derivatives of det to 1e-3 in float32, at condition 1e6;
# with 8 rows and condition 1e4 they lose all digits.
_MOST_TRACES: Final = 4


def _ones(x: Tensor) -> Tensor[Bool]:
    """The diagonal of square matrices, marked."""
    return eye(x.shape[-1], dtype=x.dtype, device=x.device) != 0


def _symmetric(x: Tensor) -> Tensor:
    return (x + x.mT) / 2


def _right(x: Tensor, upper: Tensor) -> Tensor:
    """``x @ upper⁻ᵀ``."""
    out: Tensor = ops.solve_triangular(upper, x.mT, True, False)
    return out.mT


def _cholesky(g: Tensor, y: Tensor, upper: bool) -> Tensor:
    """Murray, 2016, equation 10."""
    lower, g = (y.mT, g.mT) if upper else (y, g)
    inner = tril(lower.mT @ tril(g))
    inner = _ones(inner).where(inner / 2, inner)
    left = ops.solve_triangular(lower.mT, inner, True, False)
    return _symmetric(_right(left, lower.mT))


def _cofactor(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The derivative of ``det(x)·x⁻ᵀ``; by singular values where x has next to no inverse."""
    n = x.shape[-1]
    if n <= _MOST_TRACES:
        return _by_traces(g, x)
    s = ops.svdvals(x).detach()
    regular = (s[..., -1:] > s[..., :1] * finfo(x.dtype).eps ** 0.5)[..., None]
    own = _ones(x)
    # What is not chosen stands for a matrix whose derivatives are finite.
    inverse: Tensor = ops.inv(regular.where(x, own.astype(x.dtype))).mT
    by_inverse = (g * y).sum(axis=(-2, -1), keepdims=True) * inverse - y @ g.mT @ inverse
    apart = own.where(arange(1, n + 1, device=x.device).astype(x.dtype), 0.0)
    return regular.where(by_inverse, _by_singular_values(g, regular.where(apart, x)))


def _by_traces(g: Tensor, x: Tensor) -> Tensor:
    """The derivative of ``det(x)·x⁻ᵀ`` as a polynomial, so that all derivatives are exact.

    By the recurrence of Faddeev and LeVerrier for the adjugate; the derivative is symmetric, so
    that of a cotangent is that along it. Its rounding grows with each step.
    """
    n = x.shape[-1]
    own = _ones(x)

    def diagonal(of: Tensor, k: int) -> Tensor:
        trace = own.where(of, 0.0).sum(axis=(-2, -1), keepdims=True)
        return own.where(trace / -k, 0.0)

    m, moved = own.astype(x.dtype), g * 0.0
    for k in range(1, n):
        product, change = x @ m, g @ m + x @ moved
        m, moved = product + diagonal(product, k), change + diagonal(change, k)
    return moved.mT if n % 2 else -moved.mT


def _by_singular_values(g: Tensor, x: Tensor) -> Tensor:
    """The derivative of ``det(x)·x⁻ᵀ`` from products of all singular values but two.

    About a diagonal matrix s, the second-order terms of ``det(s + e)`` are
    ``Π of all s but those of i and j · (e_ii e_jj - e_ij e_ji)``.
    """
    u, s, vh = ops.svd(x, False)
    own = _ones(x)
    left_out = own[..., :, None, :] | own[..., None, :, :]
    pairs = own.where(0.0, left_out.where(1.0, s[..., None, None, :]).prod(axis=-1))
    turned = u.mT @ g @ vh.mT
    inner = pairs @ own.where(turned, 0.0).sum(axis=-1, keepdims=True)
    sign = (ops.det(u) * ops.det(vh)).detach()[..., None, None]
    return sign * (u @ own.where(inner, -pairs * turned.mT) @ vh)


def _eigh(
    g_values: Tensor | None, g_vectors: Tensor | None, values: Tensor, vectors: Tensor
) -> Tensor:
    """Undefined, nan, where a cotangent of vectors meets equal eigenvalues."""
    own = _ones(vectors)
    inner: Tensor = vectors.zeros()
    if g_vectors is not None:
        gaps = own.where(1.0, values[..., None, :] - values[..., :, None])
        inner = own.where(0.0, (vectors.mT @ g_vectors) / gaps)
    if g_values is not None:
        inner = own.where(g_values[..., None, :], inner)
    return _symmetric(vectors @ inner @ vectors.mT)


def _eigvalsh(g: Tensor, x: Tensor) -> Tensor:
    vectors = ops.eigh(x)[1]
    return (vectors * g[..., None, :]) @ vectors.mT


def _lstsq_x1(
    g_solution: Tensor | None,
    g_values: Tensor | None,
    x1: Tensor,
    x2: Tensor,
    rtol: Tensor | None,
    solution: Tensor,
    x1_shape: Shape,
) -> Tensor | None:
    """As ``_pinv``, times x2, where the rank stays."""
    values = None if g_values is None else _svdvals(g_values, x1)
    if g_solution is None:
        return values
    inverse = ops.pinv(x1, rtol)
    turned = inverse.mT @ g_solution
    left = x2 - x1 @ solution
    rest = g_solution - inverse @ (x1 @ g_solution)
    out = left @ (inverse @ turned).mT - turned @ solution.mT
    out = sum_to(out + inverse.mT @ solution @ rest.mT, x1_shape)
    return out if values is None else out + values


def _lstsq_x2(
    g_solution: Tensor | None, x1: Tensor, rtol: Tensor | None, x2_shape: Shape
) -> Tensor | None:
    if g_solution is None:
        return None
    return sum_to(ops.pinv(x1, rtol).mT @ g_solution, x2_shape)


def _lu(
    g_lower: Tensor | None,
    g_upper: Tensor | None,
    permutation: Tensor,
    lower: Tensor,
    upper: Tensor,
) -> Tensor:
    """The part of the smaller square by its triangles, what is beside it by solving."""
    k = upper.shape[-2]
    one = lower.zeros() if g_lower is None else g_lower
    two = upper.zeros() if g_upper is None else g_upper
    square, below = lower[..., :k, :], lower[..., k:, :]
    first, beside = upper[..., :k], upper[..., k:]
    inner = tril(square.mT @ one[..., :k, :] - two[..., k:] @ beside.mT, k=-1)
    inner = inner + triu(two[..., :k] @ first.mT - below.mT @ one[..., k:, :])
    wide = concat([_right(inner, first), two[..., k:]], axis=-1)
    out = ops.solve_triangular(square.mT, wide, True, True)
    if below.shape[-2]:
        out = concat([out, _right(one[..., k:, :], first)], axis=-2)
    return permutation @ out


def _matrix_exp(g: Tensor, x: Tensor) -> Tensor:
    """The corner of the exponential of a block matrix: Mathias, 1996, theorem 2.1."""
    n = x.shape[-1]
    turned = x.mT
    above = concat([turned, g], axis=-1)
    below = concat([turned.zeros(), turned], axis=-1)
    out: Tensor = ops.matrix_exp(concat([above, below], axis=-2))
    return out[..., :n, n:]


def _pinv(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Golub and Pereyra, 1973, equation 4.12, where the rank stays."""
    turned = g.mT
    rows = turned @ y @ y.mT
    columns = y.mT @ y @ turned
    rest = rows - x @ (y @ rows) + columns - (columns @ y) @ x
    return rest - y.mT @ g @ y.mT


def _qr(g_q: Tensor | None, g_r: Tensor | None, q: Tensor, r: Tensor, mode: str) -> Tensor:
    """Walter, Lehmann and Lamour, 2012; columns beyond the rows of x follow from q."""
    m, k, n = q.shape[-2], q.shape[-1], r.shape[-1]
    if mode != "reduced" and m > n:
        raise GradientError(
            "qr",
            "the columns that complete q have no derivative",
            got=f"mode 'complete' of a matrix of {m} rows and {n} columns",
            hint='px.linalg.qr(x, mode="reduced")',
        )
    one = q.zeros() if g_q is None else g_q
    two = r.zeros() if g_r is None else g_r
    rest = two[..., k:]
    if n > k:
        one = one + q @ r[..., k:] @ rest.mT
    first = r[..., :k]
    inner = triu(two[..., :k] @ first.mT - q.mT @ one)
    inner = _ones(inner).where(inner, inner + inner.mT)
    square = _right(one + q @ inner, first)
    return concat([square, q @ rest], axis=-1) if n > k else square


def _slogdet(g_size: Tensor | None, x: Tensor) -> Tensor | None:
    if g_size is None:
        return None
    try:
        inverse: Tensor = ops.inv(x)
    except ArgumentError:
        what, expected = "the derivative needs an inverse", "matrices that have one"
        raise GradientError("slogdet", what, got="a singular one", expected=expected) from None
    return g_size[..., None, None] * inverse.mT


def _solve_x1(g: Tensor, x1: Tensor, y: Tensor, x1_shape: Shape) -> Tensor:
    return sum_to(-(ops.solve(x1.mT, g) @ y.mT), x1_shape)


def _triangular_x1(
    g: Tensor, x1: Tensor, y: Tensor, x1_shape: Shape, upper: bool, unit_diagonal: bool
) -> Tensor:
    full = -(ops.solve_triangular(x1.mT, g, not upper, unit_diagonal) @ y.mT)
    inside = int(unit_diagonal)
    return sum_to(triu(full, k=inside) if upper else tril(full, k=-inside), x1_shape)


def _triangular_x2(
    g: Tensor, x1: Tensor, x2_shape: Shape, upper: bool, unit_diagonal: bool
) -> Tensor:
    return sum_to(ops.solve_triangular(x1.mT, g, not upper, unit_diagonal), x2_shape)


def _svd(
    g_u: Tensor | None,
    g_s: Tensor | None,
    g_vh: Tensor | None,
    u: Tensor,
    s: Tensor,
    vh: Tensor,
    full_matrices: bool,
) -> Tensor:
    """Townsend, 2016; undefined, nan, where a cotangent of vectors meets equal singular values."""
    k, m, n = s.shape[-1], u.shape[-2], vh.shape[-1]
    if full_matrices and m != n:
        if g_u is not None or g_vh is not None:
            raise GradientError(
                "svd",
                "the vectors that complete a basis have no derivative",
                got=f"full_matrices of a matrix of {m} rows and {n} columns",
                hint="px.linalg.svd(x, full_matrices=False)",
            )
        u, vh = u[..., :k], vh[..., :k, :]
    v, own = vh.mT, _ones(u[..., :k, :k])
    gaps = own.where(1.0, s.square()[..., None, :] - s.square()[..., :, None])
    inner = gaps.zeros() if g_s is None else own.where(g_s[..., None, :], 0.0)
    outside: list[Tensor] = []
    if g_u is not None:
        turned = u.mT @ g_u
        inner = inner + (turned - turned.mT) / gaps * s[..., None, :]
        if m > k:
            outside.append((g_u - u @ turned) / s[..., None, :] @ vh)
    if g_vh is not None:
        g_v = g_vh.mT
        turned = v.mT @ g_v
        inner = inner + (turned - turned.mT) / gaps * s[..., :, None]
        if n > k:
            outside.append(u @ ((g_v - v @ turned) / s[..., None, :]).mT)
    return sum(outside, start=u @ inner @ vh)


def _svdvals(g: Tensor, x: Tensor) -> Tensor:
    u, _, vh = ops.svd(x, False)
    return (u * g[..., None, :]) @ vh


RULES: Final[dict[str, Rule]] = {
    "cholesky": _cholesky,
    "cofactor": _cofactor,
    "det": lambda g, x: g[..., None, None] * ops.cofactor(x),
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "inv": lambda g, y: -(y.mT @ g @ y.mT),
    "lstsq": (_lstsq_x1, _lstsq_x2, lambda values, rtol_shape: values.zeros(rtol_shape)),  # a bound
    "lu": _lu,
    "matrix_exp": _matrix_exp,
    "pinv": (_pinv, lambda g, rtol_shape: g.zeros(rtol_shape)),  # a bound
    "qr": _qr,
    "slogdet": _slogdet,
    "solve": (_solve_x1, lambda g, x1, x2_shape: sum_to(ops.solve(x1.mT, g), x2_shape)),
    "solve_triangular": (_triangular_x1, _triangular_x2),
    "svd": _svd,
    "svdvals": _svdvals,
}
