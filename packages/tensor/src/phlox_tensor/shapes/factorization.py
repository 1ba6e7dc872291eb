"""Shape rules of factorisations: matrices in the last two axes, batches in front."""

from __future__ import annotations

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes

_MODES = ("complete", "reduced")


def _matrix(op: Op, shape: Shape) -> Shape:
    if len(shape) < 2:
        raise ShapeError(op.name, "not a matrix", got=shape, expected="(…, n, m)")
    return shape


def _square(op: Op, shape: Shape) -> Shape:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(op.name, "not square", got=shape, expected="(…, n, n)")
    return shape


def same(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """As the square matrices."""
    del attributes
    return [_square(op, specs[0].shape)]


def number(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A number for each square matrix."""
    del attributes
    return [_square(op, specs[0].shape)[:-2]]


def numbers(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Two of them."""
    return number(op, specs, attributes) * 2


def values(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n) of (…, n, n)."""
    del attributes
    return [_square(op, specs[0].shape)[:-1]]


def values_and_vectors(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n) and (…, n, n)."""
    return [*values(op, specs, attributes), specs[0].shape]


def lstsq(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n, k) and (…, min(m, n)) of (…, m, n) and (…, m, k); the batches broadcast."""
    x1, x2, rtol = specs
    inverse = pinv(op, [x1, rtol], attributes)[0]
    b = _matrix(op, x2.shape)
    if inverse[-1] != b[-2]:
        got, expected = f"{x1.shape} and {b}", "(…, m, n) and (…, m, k)"
        raise ShapeError(op.name, "rows differ", got=got, expected=expected)
    front = broadcast_shapes((inverse[:-2], b[:-2]), op.name)
    return [(*front, inverse[-2], b[-1]), *svdvals(op, specs, attributes)]


def lu(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, m, m), (…, m, k) and (…, k, n) of (…, m, n), where k is the smaller."""
    del attributes
    *batch, m, n = _matrix(op, specs[0].shape)
    k = min(m, n)
    return [(*batch, m, m), (*batch, m, k), (*batch, k, n)]


def pinv(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n, m) of (…, m, n)."""
    del attributes
    shape = _matrix(op, specs[0].shape)
    batch, (m, n) = shape[:-2], shape[-2:]
    if specs[1] is not None and broadcast_shapes((specs[1].shape, batch), op.name) != batch:
        raise ShapeError(op.name, "rtol is not one for each matrix", got=specs[1].shape)
    return [(*batch, n, m)]


def qr(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, m, k) and (…, k, n) of (…, m, n), where k is the smaller, or m."""
    (mode,) = attributes
    if mode not in _MODES:
        expected = " or ".join(_MODES)
        raise ArgumentError(op.name, "unknown mode", got=mode, expected=expected)
    *batch, m, n = _matrix(op, specs[0].shape)
    k = min(m, n) if mode == "reduced" else m
    return [(*batch, m, k), (*batch, k, n)]


def solve(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, n, k) of (…, n, n) and (…, n, k); the batches broadcast."""
    del attributes
    a, b = _square(op, specs[0].shape), _matrix(op, specs[1].shape)
    if a[-1] != b[-2]:
        raise ShapeError(
            op.name,
            "rows differ",
            got=f"{a} and {b}",
            expected="(…, n, n) and (…, n, k)",
            hint="x2[..., None] for one column",
        )
    return [(*broadcast_shapes((a[:-2], b[:-2]), op.name), *b[-2:])]


def svd(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, m, k), (…, k) and (…, k, n) of (…, m, n), where k is the smaller; or all columns."""
    (full_matrices,) = attributes
    *batch, m, n = _matrix(op, specs[0].shape)
    k = min(m, n)
    if full_matrices:
        return [(*batch, m, m), (*batch, k), (*batch, n, n)]
    return [(*batch, m, k), (*batch, k), (*batch, k, n)]


def svdvals(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, k) of (…, m, n), where k is the smaller."""
    del attributes
    *batch, m, n = _matrix(op, specs[0].shape)
    return [(*batch, min(m, n))]
