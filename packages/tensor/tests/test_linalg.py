"""Linear algebra beside NumPy: single matrices, large ones, what is refused, Einstein's sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, ShapeError, linalg
from phlox_tensor.ops import _einsum

RANDOM = np.random.default_rng(0)
ns: Any = pt


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.standard_normal(shape)


def close(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 5, 150])
def test_factors_make_the_matrix(n: int) -> None:
    a = normal(n, n)
    x = pt.asarray(a)
    parts = linalg.lu(x)
    close(parts.P @ parts.L @ parts.U, a)
    assert np.abs(parts.L.numpy()).max() <= 1.0
    np.testing.assert_array_equal(np.triu(parts.L.numpy(), 1), 0)
    np.testing.assert_array_equal(np.tril(parts.U.numpy(), -1), 0)
    lower = linalg.cholesky(x @ x.mT + pt.eye(n, dtype="float64"))
    close(lower @ lower.mT, a @ a.T + np.eye(n))
    close(linalg.inv(x) @ x, np.eye(n), 1e-8)
    for upper in (False, True):
        half = np.triu(a) + 4 * np.eye(n) * n if upper else np.tril(a) + 4 * np.eye(n) * n
        b = normal(n, 3)
        found = linalg.solve_triangular(
            pt.asarray(a + 4 * np.eye(n) * n), pt.asarray(b), upper=upper
        )
        close(found, np.linalg.solve(half, b))


@pytest.mark.parametrize("shape", [(40, 7), (7, 40), (33, 33), (2, 70, 35)])
def test_eliminations_of_matrices_that_are_not_square(shape: tuple[int, ...]) -> None:
    a = normal(*shape)
    p, lower, upper = linalg.lu(pt.asarray(a))
    close(p @ lower @ upper, a)


def test_a_matrix_of_rank_one_is_eliminated() -> None:
    a = np.outer(normal(4), normal(4))
    p, lower, upper = linalg.lu(pt.asarray(a))
    close(p @ lower @ upper, a)
    close(p.mT @ p, np.eye(4))


def test_exponentials_beside_series_and_known_values() -> None:
    for scale in (1e-3, 1.0, 30.0):
        a = normal(3, 3)
        symmetric = (a + a.T) * scale
        values, vectors = np.linalg.eigh(symmetric)
        want = vectors @ np.diag(np.exp(values)) @ vectors.T
        got = linalg.matrix_exp(pt.asarray(symmetric)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12 * np.abs(want).max())
    turn = linalg.matrix_exp(pt.asarray([[0.0, -np.pi], [np.pi, 0.0]], dtype="float64"))
    close(turn, -np.eye(2), 1e-14)


def test_determinants_of_singular_matrices() -> None:
    x = pt.asarray([[1.0, 2.0], [2.0, 4.0]], dtype="float64")
    assert linalg.det(x).item() == 0.0
    close(pt.ops.cofactor(x), [[4.0, -2.0], [-2.0, 1.0]])
    close(pt.ops.cofactor(pt.zeros((1, 1), dtype="float64")), [[1.0]])


def test_the_nearest_solutions() -> None:
    a, b = normal(6, 3), normal(6, 2)
    got = linalg.lstsq(pt.asarray(a), pt.asarray(b))
    want = np.linalg.lstsq(a, b, rcond=None)
    close(got.solution, want[0])
    close(got.residuals, want[1])
    assert got.rank.item() == want[2]
    close(got.singular_values, want[3])
    line = linalg.lstsq(pt.asarray(a[:2]), pt.asarray(b[:2, 0]))
    close(line.solution, np.linalg.lstsq(a[:2], b[:2, 0], rcond=None)[0])
    assert line.residuals.shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: linalg.inv(pt.ones((2, 3))), ShapeError, "not square"),
        (lambda: linalg.det(pt.ones(3)), ShapeError, "not square"),
        (lambda: linalg.inv(pt.ones((2, 2))), ArgumentError, "pinv"),
        (lambda: linalg.cholesky(pt.zeros((2, 2))), ArgumentError, "not positive definite"),
        (lambda: linalg.solve(pt.eye(2), pt.ones((3, 1))), ShapeError, "rows differ"),
        (lambda: linalg.qr(pt.eye(2), mode="full"), ArgumentError, "complete or reduced"),
        (lambda: linalg.matrix_power(pt.ones((2, 3)), 2), ShapeError, "not square"),
        (lambda: linalg.pinv(pt.ones((2, 2)), rtol=pt.ones(3)), ShapeError, "rtol"),
        (lambda: pt.einsum("ij,jk", pt.ones((2, 2))), ArgumentError, "operands and terms"),
        (lambda: pt.einsum("ij", pt.ones(2)), ShapeError, "labels and axes"),
        (lambda: pt.einsum("ij,jk", pt.ones((2, 3)), pt.ones((2, 3))), ShapeError, "sizes of one"),
        (lambda: pt.einsum("ii", pt.ones((1, 5))), ShapeError, "unequal axes"),
        (lambda: pt.einsum("iji->j", pt.ones((5, 2, 1))), ShapeError, "unequal axes"),
        (lambda: pt.einsum("i->j", pt.ones(2)), ArgumentError, "not among"),
        (lambda: pt.einsum("i1", pt.ones(2)), ArgumentError, "not an equation"),
        (lambda: ns.cholesky(pt.eye(2)), AttributeError, "pt.linalg.cholesky"),
        (lambda: pt.diag(pt.ones((2, 2, 2))), ShapeError, "diagonal"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("ij,jk,kl,lm->im", [(2, 9), (9, 3), (3, 8), (8, 2)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("...,i->...i", [(2, 3), (4,)]),
        ("i...->...", [(3, 2, 2)]),
        ("iij->ij", [(3, 3, 2)]),
        ("ijij->", [(2, 3, 2, 3)]),
        ("i,i,i->i", [(3,), (3,), (3,)]),
        ("ij,k->", [(2, 3), (4,)]),
        ("ij,ij->ji", [(1, 3), (2, 1)]),
        ("ijk,ilm,njm,nlk,abc->", [(2, 3, 4), (2, 5, 6), (7, 3, 6), (7, 5, 4), (2, 2, 2)]),
        (",i", [(), (3,)]),
        (" aB -> Ba ", [(2, 3)]),
    ],
)
def test_einsum_beside_numpy(equation: str, shapes: list[tuple[int, ...]]) -> None:
    given = [normal(*shape) for shape in shapes]
    want = np.einsum(equation, *given)
    close(pt.einsum(equation, *map(pt.asarray, given)), want)


def test_an_equation_is_planned_once_for_operands_of_the_same_shapes() -> None:
    x = pt.ones((3, 11))
    _einsum.einsum((x, x), "ab,cb->ac")
    planned = _einsum._plan.cache_info()
    _einsum.einsum((x + 1.0, x), "ab,cb->ac")
    again = _einsum._plan.cache_info()
    assert (again.misses, again.hits) == (planned.misses, planned.hits + 1)


def test_integers_keep_their_type_in_einsum() -> None:
    x = pt.asarray([[1, 2], [3, 4]], dtype="int8")
    out = pt.einsum("ij,jk->ik", x, x)
    assert (out.dtype.name, out.tolist()) == ("int8", [[7, 10], [15, 22]])
    assert pt.einsum("ij->", x).dtype.name == "int8"


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_rank_of_narrow_floats_is_by_their_own_epsilon(dtype: str) -> None:
    line = normal(20)
    x = pt.asarray(np.outer(line, line), dtype=dtype)
    found = linalg.lstsq(x, pt.ones(20, dtype=dtype))
    assert found.rank.item() == 1
    assert float(found.solution.abs().max()) < 1.0
    assert float(linalg.pinv(x).abs().max()) < 1.0


@pytest.mark.parametrize("rtol", [-1.0, float("nan")])
def test_a_part_of_the_largest_singular_value_is_not_negative(rtol: float) -> None:
    for call in (linalg.pinv, linalg.matrix_rank):
        with pytest.raises(ArgumentError, match="rtol >= 0"):
            call(pt.eye(2), rtol=rtol)


def test_exponentials_of_large_numbers_warn_nobody() -> None:
    found = linalg.matrix_exp(pt.asarray([[1e3, 0.0], [0.0, -1e3]], dtype="float64"))
    assert found.tolist() == [[np.inf, 0.0], [0.0, 0.0]]
    assert linalg.matrix_exp(pt.asarray([[1e30, 0.0], [0.0, -1e30]])).shape == (2, 2)


def test_cofactors_of_all_conditions() -> None:
    a = normal(3, 4, 4)
    a[1, 3] = a[1, 2]
    a[2, 3] = a[2, 2] + 1e-12
    minors = np.delete(np.delete(a, 1, axis=1), 2, axis=2)
    close(pt.ops.cofactor(pt.asarray(a))[:, 1, 2], -np.linalg.det(minors), 1e-9)
    large = normal(64, 64)  # whose determinant float32 does not hold
    assert pt.ops.cofactor(pt.asarray(large * 0.2, dtype="float32")).isfinite().all()
