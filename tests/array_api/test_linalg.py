"""The extension linalg of the array API standard 2025.12, beside NumPy, over drawn matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import phlox_tensor as pt
from tests.array_api.drawn import FLOATS, NUMERIC, Array, arrays, hold, often, same

xp: Any = pt
BATCHES = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
SIDES = st.integers(0, 4)
# Those that the standard names, but for eig and eigvals, whose results are complex.
NAMES = (
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
)  # fmt: skip


def near(got: Any, want: Any, *, factor: float = 1.0) -> None:
    """Shape, type and values agree, as far as factorisations round."""
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.name == want.dtype.name
    tolerance = factor * 1e3 * float(np.finfo(want.dtype).eps)
    scale = 1 + float(np.max(np.abs(want), initial=0))
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=tolerance * scale)


@st.composite
def matrices(draw: Callable[[Any], Any], *, square: bool = False) -> Array:
    rows = draw(SIDES)
    columns = rows if square else draw(SIDES)
    dtype = draw(st.sampled_from(FLOATS))
    found: Array = draw(arrays(dtype, (*draw(BATCHES), rows, columns), -4, 4))
    return found


def solid(array: Array, *, symmetric: bool = False) -> Array:
    """A square matrix made well conditioned: its diagonal outweighs the rest."""
    x = array + np.swapaxes(array, -1, -2) if symmetric else array
    return x + np.eye(x.shape[-1], dtype=x.dtype) * 40


def test_the_functions_of_the_extension_are_there() -> None:
    assert all(callable(getattr(xp.linalg, name)) for name in NAMES)
    for name in ("matmul", "matrix_transpose", "tensordot", "vecdot"):
        assert getattr(xp.linalg, name) is getattr(xp, name)


@often
@pytest.mark.parametrize("name", ["det", "inv", "slogdet"])
def test_square_matrices(name: str, examples: int) -> None:
    def check(array: Array) -> None:
        given = solid(array)
        got, want = getattr(xp.linalg, name)(xp.asarray(given)), getattr(np.linalg, name)(given)
        for one, other in zip(
            *((got, want) if name == "slogdet" else ([got], [want])), strict=True
        ):
            near(one, other)

    hold(examples, check, array=matrices(square=True))
    assert xp.linalg.slogdet(xp.eye(2))._fields == ("sign", "logabsdet")
    assert xp.linalg.det(xp.zeros((2, 2))).item() == 0.0
    assert xp.linalg.slogdet(xp.zeros((2, 2))).logabsdet.item() == -np.inf


@often
def test_factors_of_definite_matrices(examples: int) -> None:
    def check(array: Array, upper: bool) -> None:
        given = solid(array, symmetric=True)
        got = xp.linalg.cholesky(xp.asarray(given), upper=upper)
        want = np.linalg.cholesky(given)
        near(got, np.swapaxes(want, -1, -2) if upper else want)

    hold(examples, check, array=matrices(square=True), upper=st.booleans())
    with pytest.raises(ValueError, match="not positive definite"):
        xp.linalg.cholesky(-xp.eye(2))


@often
def test_eigenvalues_of_symmetric_matrices(examples: int) -> None:
    def check(array: Array) -> None:
        given = array + np.swapaxes(array, -1, -2)
        values, vectors = found = xp.linalg.eigh(xp.asarray(given))
        assert found._fields == ("eigenvalues", "eigenvectors")
        want = np.linalg.eigvalsh(given)
        near(values, want)
        near(xp.linalg.eigvalsh(xp.asarray(given)), want)
        near(vectors @ (values[..., None] * vectors.mT), given)
        near(
            vectors.mT @ vectors,
            np.broadcast_to(np.eye(given.shape[-1], dtype=given.dtype), given.shape),
        )

    hold(examples, check, array=matrices(square=True))


@often
@pytest.mark.parametrize("mode", ["complete", "reduced"])
def test_orthonormal_columns_and_triangles(mode: str, examples: int) -> None:
    def check(array: Array) -> None:
        q, r = found = xp.linalg.qr(xp.asarray(array), mode=mode)
        assert found._fields == ("Q", "R")
        m, n = array.shape[-2:]
        k = m if mode == "complete" else min(m, n)
        assert r.shape == (*array.shape[:-2], k, n)
        near(q @ r, array)
        near(q.mT @ q, np.broadcast_to(np.eye(k, dtype=array.dtype), (*array.shape[:-2], k, k)))
        assert not np.tril(r.numpy(), -1).any()

    hold(examples, check, array=matrices())


@often
@pytest.mark.parametrize("full", [False, True])
def test_singular_values_and_vectors(full: bool, examples: int) -> None:
    def check(array: Array) -> None:
        u, s, vh = found = xp.linalg.svd(xp.asarray(array), full_matrices=full)
        assert found._fields == ("U", "S", "Vh")
        want = np.linalg.svd(array, compute_uv=False)
        near(s, want)
        near(xp.linalg.svdvals(xp.asarray(array)), want)
        k = s.shape[-1]
        near(u[..., :k] @ (s[..., None] * vh[..., :k, :]), array)
        for basis in (u.mT @ u, vh @ vh.mT):
            one = np.eye(basis.shape[-1], dtype=array.dtype)
            near(basis, np.broadcast_to(one, basis.shape))
        assert (u.shape[-1], vh.shape[-2]) == (array.shape[-2:] if full else (k, k))

    hold(examples, check, array=matrices())


@often
def test_pseudoinverses_and_ranks(examples: int) -> None:
    def check(array: Array, rtol: Any) -> None:
        x = xp.asarray(array)
        size = max(array.shape[-2:], default=0)
        part = size * np.finfo(array.dtype).eps if rtol is None else rtol
        values = np.linalg.svd(array, compute_uv=False)
        top = values.max(axis=-1, keepdims=True, initial=0)
        if np.any(np.abs(values - part * top) < 1e-3 * top):
            return  # rounding decides which values count
        rank = (values > part * top).sum(axis=-1)
        got = xp.linalg.matrix_rank(x, rtol=rtol)
        assert got.dtype is xp.int64
        np.testing.assert_array_equal(got.numpy(), rank)
        near(xp.linalg.pinv(x, rtol=rtol), np.linalg.pinv(array, rcond=part), factor=1e3)

    hold(examples, check, array=matrices(), rtol=st.sampled_from([None, 0.1, 0.3]))
    each = xp.asarray([0.0, 0.6])
    x = xp.asarray([[[1.0, 0.0], [0.0, 0.5]]] * 2)
    assert xp.linalg.matrix_rank(x, rtol=each).tolist() == [2, 1]
    assert xp.linalg.pinv(x, rtol=each).tolist() == [[[1, 0], [0, 2]], [[1, 0], [0, 0]]]


@often
def test_solutions_of_systems(examples: int) -> None:
    def check(array: Array, data: st.DataObject) -> None:
        given, n = solid(array), array.shape[-1]
        columns = data.draw(st.sampled_from([(n,), (n, 2), (2, 1, n, 3)]))
        if len(columns) > 2 and array.ndim > 3:
            columns = (n, 1)
        b = data.draw(arrays(given.dtype.name, columns))
        x = np.linalg.solve(given, b[:, None] if b.ndim == 1 else b)
        want = x[..., 0] if b.ndim == 1 else x
        near(xp.linalg.solve(xp.asarray(given), xp.asarray(b)), want)

    hold(examples, check, array=matrices(square=True), data=st.data())
    with pytest.raises(ValueError, match="singular"):
        xp.linalg.solve(xp.zeros((2, 2)), xp.ones(2))


@often
def test_norms(examples: int) -> None:
    orders = [0, 1, 2, 3, -1, -2, 0.5, np.inf, -np.inf]

    def check_vectors(data: st.DataObject, order: Any, keepdims: bool) -> None:
        shape = hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
        array = data.draw(arrays(data.draw(st.sampled_from(FLOATS)), shape))
        axis = data.draw(st.none() | st.integers(-array.ndim, array.ndim - 1))
        if order in (-1, -2):  # powers of 0
            array = array + np.copysign(1, array)
        kept = {"axis": axis, "keepdims": keepdims, "ord": order}
        near(xp.linalg.vector_norm(xp.asarray(array), **kept), np.linalg.vector_norm(array, **kept))

    hold(
        examples,
        check_vectors,
        data=st.data(),
        order=st.sampled_from(orders),
        keepdims=st.booleans(),
    )

    def check_matrices(array: Array, order: Any, keepdims: bool) -> None:
        if 0 in array.shape[-2:]:
            return  # NumPy has no norm of these
        kept = {"keepdims": keepdims, "ord": order}
        near(xp.linalg.matrix_norm(xp.asarray(array), **kept), np.linalg.matrix_norm(array, **kept))

    several = st.sampled_from(["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
    hold(examples, check_matrices, array=matrices(), order=several, keepdims=st.booleans())
    with pytest.raises(ValueError, match="unknown order"):
        xp.linalg.matrix_norm(xp.eye(2), ord=3)


def drawn_integers(data: st.DataObject, shape: Any) -> Array:
    found: Array = data.draw(arrays(data.draw(st.sampled_from(NUMERIC)), shape, -3, 3))
    return found


@often
def test_diagonals_traces_and_powers(examples: int) -> None:
    def check(data: st.DataObject, offset: int, n: int) -> None:
        array = drawn_integers(data, (*data.draw(BATCHES), data.draw(SIDES), data.draw(SIDES)))
        x = xp.asarray(array)
        same(xp.linalg.diagonal(x, offset=offset), np.diagonal(array, offset, -2, -1))
        want = np.trace(array, offset, -2, -1)
        if array.dtype.kind == "u":
            want = want.astype(np.uint64)
        same(xp.linalg.trace(x, offset=offset), want)
        assert xp.linalg.trace(x, dtype=xp.float64).dtype is xp.float64
        side = min(array.shape[-2:])
        square = array[..., :side, :side]
        same(xp.linalg.matrix_power(xp.asarray(square), n), np.linalg.matrix_power(square, n))

    hold(examples, check, data=st.data(), offset=st.integers(-5, 5), n=st.integers(0, 4))
    same(xp.linalg.matrix_power(xp.asarray([[2.0]]), -2), np.array([[0.25]], np.float32))


@often
def test_products_of_vectors(examples: int) -> None:
    def check(data: st.DataObject) -> None:
        a, b = (drawn_integers(data, (data.draw(SIDES),)) for _ in range(2))
        b = b.astype(a.dtype)
        same(xp.linalg.outer(xp.asarray(a), xp.asarray(b)), np.outer(a, b))
        c, d = drawn_integers(data, (2, 1, 3)), drawn_integers(data, (4, 3))
        d = d.astype(c.dtype)
        if c.dtype.kind == "u":
            return  # NumPy subtracts in another order, and wraps
        same(xp.linalg.cross(xp.asarray(c), xp.asarray(d)), np.cross(c, d))
        c, d = np.moveaxis(c, -1, 0), np.moveaxis(np.broadcast_to(d[:1], c.shape), -1, 0)
        same(xp.linalg.cross(xp.asarray(c), xp.asarray(d), axis=0), np.cross(c, d, axis=0))

    hold(examples, check, data=st.data())
    with pytest.raises(ValueError, match="size 3"):
        xp.linalg.cross(xp.ones(2), xp.ones(2))
