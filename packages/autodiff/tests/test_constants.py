"""What is a constant backwards is one forwards too, and what moves does so in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor

DEVICE: Final = Numpy(float="float64")
Function = Callable[[Tensor[Any]], Tensor[Any]]


def by_block(x: Tensor[Any]) -> Tensor[Any]:
    with ad.no_grad():
        total = (x * x).sum()
    return x * total


def by_decorator(x: Tensor[Any]) -> Tensor[Any]:
    return x * ad.no_grad(lambda x: (x * x).sum())(x)


def by_detach(x: Tensor[Any]) -> Tensor[Any]:
    return x * (x * x).sum().detach()


def by_function(x: Tensor[Any]) -> Tensor[Any]:
    return x * ad.stop_gradient((x * x).sum())


@ad.custom_jvp
def _square(x: Tensor[Any]) -> Any:
    return x * x, lambda t: t * x * 2.0


def by_custom_derivative_in_a_block(x: Tensor[Any]) -> Tensor[Any]:
    with ad.no_grad():
        total = _square(x).sum()
    return x * total


def by_expansion_in_a_block(x: Tensor[Any]) -> Tensor[Any]:
    with ad.no_grad():
        total = pt.vector_norm(x) ** 2
    return x * total


CONSTANT: Final[list[Function]] = [
    by_block,
    by_decorator,
    by_detach,
    by_function,
    by_custom_derivative_in_a_block,
    by_expansion_in_a_block,
]


@pytest.mark.parametrize("function", CONSTANT, ids=lambda f: f.__name__)
def test_a_constant_is_one_in_both_directions(function: Function) -> None:
    x = pt.asarray([1.0, 2.0, 3.0], device=DEVICE)
    expected = 14.0 * np.eye(3)
    for mode in ("rows", "columns"):
        np.testing.assert_allclose(ad.jacobian(function, mode=mode)(x).numpy(), expected)
    np.testing.assert_allclose(ad.jvp(function, (x,), (x.zeros() + 1,))[1].numpy(), 14.0)
    second = ad.hvp(lambda x: function(x).sum(), (x,), (x,))[0]
    np.testing.assert_allclose(second.numpy(), 0.0, atol=1e-9)
    np.testing.assert_allclose(ad.hessian(lambda x: function(x).sum())(x).numpy(), 0.0, atol=1e-9)


def test_a_transform_inside_of_no_grad_still_moves() -> None:
    x = pt.asarray([1.0, 2.0], device=DEVICE)
    with ad.no_grad():
        assert ad.jvp(lambda x: x**3, (x,), (x,))[1].tolist() == [3.0, 24.0]
        assert ad.jacobian(_square, mode="columns")(x).tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_floats_move_forwards() -> None:
    value, moved = ad.jvp(lambda x: x * x, (3.0,), (2.0,))
    assert (float(value), float(moved)) == (9.0, 12.0)
    assert float(ad.hvp(lambda x: x**3, (3.0,), (1.0,))[0]) == 18.0
    both = ad.jvp(lambda p: p["a"] * p["b"], ({"a": 3.0, "b": 4.0},), ({"a": 1.0, "b": None},))
    assert float(both[1]) == 4.0
    point = pt.asarray(3.0, device=DEVICE)
    assert ad.jvp(lambda x: x * x, (point,), (1,))[1].tolist() == 6.0
    assert ad.gradcheck(lambda x: x * x, (3.0,))


@pytest.mark.parametrize(
    ("primal", "tangent", "error", "text"),
    [
        (3, 1.0, pt.GradientError, r"cannot move: got one for int.*\nhint: 3\.0"),
        ("a", 1.0, pt.GradientError, "cannot move: got one for str"),
        (pt.asarray([1]), pt.asarray([1]), pt.GradientError, r"cannot move.*\nhint: None as its"),
        (pt.ones(2), 1.0, pt.ShapeError, r"does not fit: got \(\) of"),
        (pt.ones(2), "a", pt.GradientError, r"no tensor: got str.*\nhint: px\.asarray"),
        (pt.ones(2), np.ones(2), pt.GradientError, "no tensor: got ndarray"),
    ],
)
def test_a_tangent_that_would_be_lost_is_refused(
    primal: Any, tangent: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ad.jvp(lambda x: x * 2.0, (primal,), (tangent,))
