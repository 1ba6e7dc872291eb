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
    total: Any = sum((w * k).sum().backward() for k in range(4))
    assert total.get(w).tolist() == [6.0, 6.0]
    with pytest.raises(TypeError):
        sum([(w * 2.0).sum().backward()], 1)


def test_gradients_stay_in_their_process() -> None:
    grads = (pt.asarray([1.0], device=ad.Autodiff("numpy")).require_grad() * 2.0).backward()
    assert copy.deepcopy(grads) is copy.copy(grads) is grads
    with pytest.raises(GradientError, match="gradients_of"):
        pickle.dumps(grads)
