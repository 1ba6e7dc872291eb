"""Derivatives at the places where a formula alone would go wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from math import inf, log, nan
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Tensor

LN2 = log(2.0)


def gradient(function: Callable[..., Tensor[Any]], *values: Any) -> list[Any]:
    """Gradients of the sum of a function, as lists."""
    xs = [pt.asarray(np.asarray(v, np.float64)) for v in values]
    everything = tuple(range(len(xs)))
    return [g.tolist() for g in ad.grad(lambda *a: function(*a).sum(), everything)(*xs)]


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lambda x: x.abs(), [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
        (lambda x: x.relu(), [-2.0, 0.0, 3.0], [0.0, 0.0, 1.0]),
        (lambda x: x.leaky_relu(), [-2.0, 0.0, 3.0], [0.01, 0.01, 1.0]),
        (lambda x: x.elu(), [-800.0, 0.0, 800.0], [0.0, 1.0, 1.0]),
        (lambda x: x.clip(0.0, 1.0), [-1.0, 0.0, 0.5, 1.0, 2.0], [0.0, 0.0, 1.0, 0.0, 0.0]),
        (lambda x: x.clip(min=0.0), [-1.0, 2.0], [0.0, 1.0]),
        (lambda x: x.clip(max=0.0), [-1.0, 2.0], [1.0, 0.0]),
        (lambda x: x.sqrt(), [0.0, 4.0], [inf, 0.25]),
        (lambda x: x.log(), [0.0, 4.0], [inf, 0.25]),
        (lambda x: x**2, [0.0, -3.0], [0.0, -6.0]),
        (lambda x: x**3.0, [0.0, -3.0], [0.0, 27.0]),
        (lambda x: x**1, [0.0, -3.0], [1.0, 1.0]),
        (lambda x: x**0, [0.0, -3.0], [0.0, 0.0]),
        (lambda x: x**0.5, [0.0, 4.0], [inf, 0.25]),
        (lambda x: 0.0**x, [1.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
        (lambda x: x.maximum(0.0), [-1.0, 0.0, 1.0], [0.0, 0.5, 1.0]),
        (lambda x: x.minimum(0.0), [-1.0, 0.0, 1.0], [1.0, 0.5, 0.0]),
        (lambda x: x.max(), [1.0, 3.0, 3.0], [0.0, 0.5, 0.5]),
        (lambda x: x.min(), [1.0, 1.0, 3.0, 1.0], [1 / 3, 1 / 3, 0.0, 1 / 3]),
        (lambda x: x.prod(), [2.0, 3.0, 4.0], [12.0, 8.0, 6.0]),
        (lambda x: x.prod(), [2.0, 0.0, 4.0], [0.0, 8.0, 0.0]),
        (lambda x: x.prod(), [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]),
        (lambda x: x.std(), [2.0, 2.0], [0.0, 0.0]),
        (lambda x: x.sigmoid(), [-800.0, 800.0], [0.0, 0.0]),
        (lambda x: x.softplus(), [-800.0, 0.0, 800.0], [0.0, 0.5, 1.0]),
        (lambda x: x.gelu(), [-40.0, 40.0], [0.0, 1.0]),
        (lambda x: x.logsumexp(), [-inf, 0.0], [0.0, 1.0]),
        (lambda x: x.logsumexp(), [-inf, -inf], [0.0, 0.0]),
        (lambda x: x.softmax()[0], [-inf, -inf], [0.0, 0.0]),
        (lambda x: pt.where(x > 0, x.sqrt(), 0.0), [4.0], [0.25]),
        (lambda x: x.sum(axis=()), [1.0, 2.0], [1.0, 1.0]),
        (lambda x: x.mean(), 5.0, 1.0),
        (lambda x: x[::-2], [1.0, 2.0, 3.0], [1.0, 0.0, 1.0]),
        (lambda x: x[[0, 0, -1]], [1.0, 2.0, 3.0], [2.0, 0.0, 1.0]),
        (lambda x: x[x > 1], [1.0, 2.0, 3.0], [0.0, 1.0, 1.0]),
        (lambda x: x.at[1].set(7.0), [1.0, 2.0, 3.0], [1.0, 0.0, 1.0]),
        (lambda x: x.at[1].add(7.0), [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
        (lambda x: x.at[[1]].multiply(7.0), [1.0, 2.0, 3.0], [1.0, 7.0, 1.0]),
        (lambda x: x.floor(), [1.5, 2.5], [0.0, 0.0]),
    ],
)
def test_one_operand(function: Any, x: Any, expected: Any) -> None:
    (found,) = gradient(function, x)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "x1", "x2", "expected"),
    [
        (lambda a, b: a**b, [0.0, 0.0, 2.0], [0.0, 2.0, 0.0], [[0.0, 0.0, 0.0], [0.0, 0.0, LN2]]),
        (lambda a, b: a**b, [-2.0], [2.0], [[-4.0], [nan]]),
        (lambda a, b: a.maximum(b), [1.0, 2.0], [1.0, 1.0], [[0.5, 1.0], [0.5, 0.0]]),
        (lambda a, b: a.minimum(b), [1.0, 2.0], [1.0, 1.0], [[0.5, 0.0], [0.5, 1.0]]),
        (lambda a, b: a.hypot(b), [0.0, 3.0], [0.0, 4.0], [[0.0, 0.6], [0.0, 0.8]]),
        (lambda a, b: a.atan2(b), [0.0], [-1.0], [[-1.0], [0.0]]),
        (lambda a, b: a.logaddexp(b), [inf, -inf], [inf, 0.0], [[0.5, 0.0], [0.5, 1.0]]),
        (lambda a, b: a % b, [-5.0], [3.0], [[1.0], [2.0]]),
        (lambda a, b: a.fmod(b), [-5.0], [3.0], [[1.0], [1.0]]),
        (lambda a, b: a / b, [1.0], [0.0], [[inf], [-inf]]),
        (lambda a, b: a @ b, [1.0, 2.0], [3.0, 4.0], [[3.0, 4.0], [1.0, 2.0]]),
        (lambda a, b: a + b, [[1.0], [2.0]], [1.0, 2.0, 3.0], [[[3.0], [3.0]], [2.0, 2.0, 2.0]]),
        (lambda a, b: a * b, 3.0, [1.0, 2.0], [3.0, [3.0, 3.0]]),
        (lambda a, b: pt.where(a > b, a, b), [1.0], [2.0], [[0.0], [1.0]]),
    ],
)
def test_two_operands(function: Any, x1: Any, x2: Any, expected: Any) -> None:
    for found, wanted in zip(gradient(function, x1, x2), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


def scattered(update: str, indices: list[int]) -> Callable[..., Tensor[Any]]:
    """A weighted sum over the result, so that every place of it has another cotangent."""
    places = pt.asarray(indices)

    def function(x: Tensor[Any], values: Tensor[Any]) -> Tensor[Any]:
        return x.scatter(places, values, axis=0, update=update) * pt.asarray([1.0, 10.0, 100.0])

    return function


@pytest.mark.parametrize(
    ("update", "indices", "x", "values", "expected"),
    [
        ("set", [2, 0, 2], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [[0, 10, 0], [0, 1, 100]]),
        ("add", [2, -1, 0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [[1, 10, 100], [100, 100, 1]]),
        ("mul", [1, 1, 0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [[6, 200, 100], [100, 80, 1]]),
        ("mul", [1, 1, 0], [1.0, 2.0, 3.0], [0.0, 5.0, 6.0], [[6, 0, 100], [100, 0, 1]]),
        ("mul", [1, 1, 1], [1.0, 2.0, 3.0], [0.0, 0.0, 6.0], [[1, 0, 100], [0, 0, 0]]),
        ("max", [0, 0, 2], [1.0, 2.0, 3.0], [1.0, 1.0, 2.0], [[1 / 3, 10, 100], [1 / 3, 1 / 3, 0]]),
        ("min", [0, 1, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 9.0], [[0.5, 0, 100], [0.5, 10, 0]]),
    ],
)
def test_scatter_with_repeats(
    update: str, indices: list[int], x: Any, values: Any, expected: Any
) -> None:
    found = gradient(scattered(update, indices), x, values)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-15)


def test_a_choice_before_the_function_keeps_its_gradient_finite() -> None:
    x = pt.asarray([-1.0, 0.0, 4.0])

    def chosen_after(x: Any) -> Any:
        return (x > 0).where(x.sqrt(), 0.0).sum()

    def chosen_before(x: Any) -> Any:
        safe = (x > 0).where(x, 1.0)
        return (x > 0).where(safe.sqrt(), 0.0).sum()

    assert np.isnan(ad.grad(chosen_after)(x).numpy()).tolist() == [True, True, False]
    assert ad.grad(chosen_before)(x).tolist() == [0.0, 0.0, 0.25]
    assert ad.jvp(chosen_before, (x,), (pt.ones_like(x),))[1].item() == 0.25


def test_second_derivatives_of_a_product_with_zeros() -> None:
    x = pt.asarray([0.0, 2.0, 0.0, 3.0])
    expected = np.zeros((4, 4))
    expected[0, 2] = expected[2, 0] = 6.0
    np.testing.assert_array_equal(ad.hessian(lambda x: x.prod())(x).numpy(), expected)


def test_third_derivatives_of_a_product_with_zeros() -> None:
    ad.gradcheck(lambda x: x.prod(), (pt.asarray([0.0, 2.0, 0.0, 3.0, 0.5]),), order=3)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 2.5])
def test_higher_derivatives_of_powers(exponent: float) -> None:
    ad.gradcheck(lambda x: x**exponent, (pt.asarray([0.5, 1.5]),), order=3)


def test_a_tie_in_logaddexp_has_its_second_derivative() -> None:
    x = pt.asarray([1.0])
    ad.gradcheck(lambda a, b: a.logaddexp(b), (x, x), order=2)


def test_casting_takes_the_gradient_back() -> None:
    x = pt.asarray([1.5, 2.5]).astype(pt.float32)
    found = ad.grad(lambda x: (x.astype(pt.float64) * 3).sum())(x)
    assert found.dtype is pt.float32
    assert found.tolist() == [3.0, 3.0]


def test_casting_to_integers_ends_the_gradient() -> None:
    x = pt.asarray([1.5, 2.5], device=ad.Autodiff(pt.Numpy())).require_grad()
    assert not x.astype(pt.int32).requires_grad
    assert not (x > 2).astype(pt.float32).requires_grad
    assert not x.sum(dtype=pt.int64).requires_grad


def test_a_sum_in_a_wider_type_gives_a_narrow_gradient() -> None:
    x = pt.asarray([1.5, 2.5]).astype(pt.float32)
    found = ad.grad(lambda x: x.sum(dtype=pt.float64))(x)
    assert found.dtype is pt.float32


def test_gradients_are_divided_by_numbers_and_seeds_are_tensors() -> None:
    x = pt.asarray([1.0, 2.0], device=ad.Autodiff("numpy")).require_grad()
    grads = (x * x).sum().backward()
    half = x.grad(grads / 2)
    assert half is not None
    assert half.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"\[/\] gradients are scaled by one number"):
        _ = grads / "2"  # type: ignore[operator]
    with pytest.raises(pt.WrongTypeError, match="the seed is no tensor: got float") as caught:
        x.backward(2.0)  # type: ignore[arg-type]
    assert caught.value.hint == "x.backward(px.full((2,), 2.0))"
    with pytest.raises(pt.WrongTypeError, match="function is not of the type"):
        grads.map("double")  # type: ignore[arg-type]


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
def test_the_second_derivative_of_det_needs_no_inverse(rank: int) -> None:
    n = 4
    random = np.random.default_rng(rank)
    matrix = random.normal(size=(n, rank)) @ random.normal(size=(rank, n))
    minors = np.zeros((n, n, n, n))
    for i, j, k, m in np.ndindex(n, n, n, n):
        if i != k and j != m:
            left = np.delete(np.delete(matrix, (i, k), axis=0), (j, m), axis=1)
            sign = (-1.0) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
            minors[i, j, k, m] = sign * np.linalg.det(left)
    found = ad.hessian(pt.linalg.det)(pt.asarray(matrix))
    np.testing.assert_allclose(found.numpy(), minors, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("condition", [1.0, 1e3, 1e4, 1e6])
def test_the_second_derivative_of_det_of_graded_matrices(n: int, condition: float) -> None:
    random = np.random.default_rng(n)
    turns = [np.linalg.qr(random.normal(size=(n, n)))[0] for _ in range(2)]
    values = np.geomspace(1.0, 1.0 / condition, n) if n else np.ones(0)
    matrix, along = turns[0] * values @ turns[1], random.normal(size=(n, n))
    (found,) = ad.hvp(pt.linalg.det, (pt.asarray(matrix),), (pt.asarray(along),))
    narrow = [pt.asarray(x, dtype=pt.float32) for x in (matrix, along)]
    (rounded,) = ad.hvp(pt.linalg.det, (narrow[0],), (narrow[1],))
    scale = np.abs(found.numpy()).max(initial=0.0)
    np.testing.assert_allclose(rounded.numpy(), found.numpy(), rtol=0, atol=5e-3 * scale)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_the_third_derivative_of_det_is_that_of_the_polynomial(rank: int) -> None:
    random = np.random.default_rng(rank)
    matrix = random.normal(size=(3, rank)) @ random.normal(size=(rank, 3))
    signs = np.zeros((3, 3, 3))
    for order in permutations(range(3)):
        signs[order] = np.linalg.det(np.eye(3)[list(order)])
    found = ad.jacobian(ad.hessian(pt.linalg.det))(pt.asarray(matrix))
    np.testing.assert_allclose(
        found.numpy(), np.einsum("ikm,jln->ijklmn", signs, signs), rtol=1e-9, atol=1e-9
    )


def test_an_argument_that_is_not_used_has_a_derivative_of_zeros() -> None:
    x, y = pt.asarray(np.ones(2)), pt.asarray(np.ones(3))
    for mode in ("columns", "rows"):
        a, b = ad.jacobian(lambda a, b: pt.concat([a] * 3), (0, 1), mode=mode)(x, y)
        assert (a.shape, b.shape) == ((6, 2), (6, 3))
        assert not b.numpy().any()
    value, tangent = ad.jvp(lambda a, b: a * 2, (x, y), (None, y))
    assert (value.tolist(), tangent.tolist()) == ([2.0, 2.0], [0.0, 0.0])


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_slopes_of_logsumexp_are_shares_however_far_the_row_lies(dtype: str) -> None:
    far = {"float16": 2000.0, "float32": 1e6}[dtype]
    x = pt.asarray([far, far, far + 1], dtype=dtype)
    near = pt.asarray([0.0, 0.0, 1.0], dtype=dtype)
    found, want = (ad.grad(lambda v: v.logsumexp())(each) for each in (x, near))
    assert pt.allclose(found, want, rtol=1e-3)
    assert pt.allclose(found.sum(), pt.asarray(1.0, dtype=dtype), rtol=1e-3)
    empty = pt.ones((2, 0), dtype=dtype)
    assert ad.grad(lambda v: v.logsumexp(axis=1).sum())(empty).shape == (2, 0)
