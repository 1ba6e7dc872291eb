"""Functions that transforms cannot work with, and values that have no derivative."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import GradientError

X = pt.asarray([1.0, 2.0])


@pytest.mark.parametrize(
    "value", [lambda x: x, lambda x: (x, x), lambda x: (x, x, x), lambda x: None]
)
@pytest.mark.parametrize("make", [ad.custom_gradient, ad.custom_jvp])
def test_a_function_of_ones_own_derivative_gives_a_pair(
    make: Callable[..., Any], value: Callable[..., Any]
) -> None:
    with pytest.raises(GradientError, match="no pair of a value and what carries"):
        ad.grad(lambda x: make(value)(x).sum())(X)


def test_a_jacobian_of_integers_is_refused() -> None:
    for function in (lambda x: x.argmax(), lambda x: {"a": x > 0}, lambda x: None):
        with pytest.raises(GradientError, match="holds no Float tensor"):
            ad.jacobian(function)(X)


def test_arrays_are_to_become_tensors() -> None:
    with pytest.raises(GradientError, match=r"px\.asarray\(x\)"):
        ad.grad(lambda x: (x * x).sum())(np.ones(3))


def test_gradients_of_a_list_of_passes_add_up() -> None:
    w = pt.asarray([1.0, 2.0], device=ad.Autodiff("numpy")).require_grad()
    passes: list[Any] = [(w * k).sum().backward() for k in range(4)]
    total: Any = sum(passes)
    assert total.get(w).tolist() == [6.0, 6.0]
    with pytest.raises(TypeError):
        sum([(w * 2.0).sum().backward()], 1)


def test_gradients_stay_in_their_process() -> None:
    grads = (pt.asarray([1.0], device=ad.Autodiff("numpy")).require_grad() * 2.0).backward()
    with pytest.raises(GradientError, match="gradients_of"):
        pickle.dumps(grads)


def test_a_copy_of_gradients_keeps_what_the_original_gives_away() -> None:
    x = pt.ones(2, device=ad.Autodiff("numpy")).require_grad()
    grads = (x * 3.0).sum().backward()
    copies = copy.copy(grads), copy.deepcopy(grads)
    assert grads.pop(x) is not None
    assert grads.get(x) is None
    assert all(kept[x].tolist() == [3.0, 3.0] for kept in copies)


@pytest.mark.parametrize("places", ["x", None, 1.0, True, (0, "y")])
def test_places_of_arguments_are_integers(places: Any) -> None:
    for transform in (ad.grad, ad.value_and_grad, ad.jacobian, ad.hessian):
        with pytest.raises(pt.WrongTypeError, match="argnums says no places"):
            transform(lambda x: x.sum(), places)
    with pytest.raises(GradientError, match="got argnums 2, expected one of 0, 1, by place"):
        ad.grad(lambda x, y: x.sum() + y, 2)(pt.ones(2), 1.0)


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_chunks_have_a_size(size: Any) -> None:
    with pytest.raises(pt.ArgumentError, match="chunk_size"):
        ad.vmap(lambda x: x, chunk_size=size)
    for transform in (ad.jacobian, ad.hessian):
        with pytest.raises(pt.ArgumentError, match="chunk_size"):
            transform(lambda x: x, chunk_size=size)


def test_a_cotangent_fits_its_value() -> None:
    _, pull = ad.vjp(lambda x: (x.sum(), x.argmax()), pt.asarray([1.0, 2.0]))
    assert pull((pt.asarray(2.0), None))[0].tolist() == [2.0, 2.0]
    with pytest.raises(pt.WrongTypeError, match=r"got float, expected \(\) of float"):
        pull((2.0, None))
    with pytest.raises(pt.ShapeError, match=r"got \(2,\) of float.*expected \(\) of float"):
        pull((pt.ones(2), None))
    with pytest.raises(pt.ShapeError, match=r"expected \(\) of int.*, or None"):
        pull((None, pt.asarray(1.0)))


def test_a_direction_is_of_tensors_or_floats() -> None:
    value, slope = ad.jvp(lambda x: x * x, (3.0,), (1.0,))
    assert (value.item(), slope.item()) == (9.0, 6.0)
    for primal, tangent in ((np.ones(3), np.ones(3)), (pt.ones(3), np.ones(3)), (2, 1)):
        with pytest.raises(GradientError, match="tangent"):
            ad.jvp(lambda x: x * 1.0, (primal,), (tangent,))


def test_no_order_of_derivatives_is_refused() -> None:
    with pytest.raises(pt.ArgumentError, match="order"):
        ad.gradcheck(lambda x: x, (pt.ones(1),), order=0)


def test_a_hook_is_a_function() -> None:
    x = pt.ones(2, device=ad.Autodiff(pt.default_device())).require_grad()
    with pytest.raises(pt.WrongTypeError, match="not a function"):
        ad.register_hook(x, 3)  # type: ignore[arg-type]


def test_a_checkpoint_of_a_generator_or_coroutine_is_refused() -> None:
    async def later(x: pt.Tensor[Any]) -> Any:
        return x * 2

    def each(x: pt.Tensor[Any]) -> Any:
        yield x * 2

    for function in (each, lambda x: (y for y in [x * 2]), lambda x: map(abs, [x])):
        with pytest.raises(pt.WrongTypeError, match=r"would do its work after its call.*got \w+"):
            ad.checkpoint(function)(X)
    made: Any = ad.checkpoint(later)
    with pytest.raises(pt.WrongTypeError, match=r"later would do its work after its call"):
        made(X)
