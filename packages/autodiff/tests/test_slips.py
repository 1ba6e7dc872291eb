"""Slips of who meets derivatives first: errors of the call that was made, with a way on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import PhloxError, Tensor

DEVICE = ad.Autodiff(pt.Numpy(float="float64"))


def x() -> Tensor[Any]:
    return pt.asarray([1.0, 2.0])


def product(a: Any, b: Any) -> Any:
    return (a * b).sum()


LOOSE: Any = ad


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: LOOSE.grad(product)(a=x(), b=x()),
            r"\[grad\] no such argument(.|\n)*px\.grad\(f\)\(x\)",
        ),
        (
            lambda: LOOSE.grad(product, x()),
            r"got Tensor, expected an int(.|\n)*px\.grad\(f\)\(x\)",
        ),
        (lambda: LOOSE.jacobian(product, {"a": x()}), r"got dict(.|\n)*px\.jacobian\(f\)\(x\)"),
        (
            lambda: LOOSE.grad(product, argnums="a"),
            r"got 'a', .*\nhint: px\.grad\(f, argnums=\(0, 1",
        ),
        (lambda: LOOSE.grad(lambda a: (a.sum(), a))(x()), r"got tuple(.|\n)*hint: .*has_aux=True"),
        (
            lambda: ad.hessian(lambda a: a * a)(x()),
            r"^\[hessian\] the value is not one(.|\n)*f\(x\)\.sum",
        ),
        (lambda: ad.hvp(lambda a: a * a, (x(),), (x(),)), r"^\[hvp\] the value is not one element"),
        (lambda: ad.grad(lambda a: a * a)(x()), r"^\[grad\] the value is not one element"),
        (
            lambda: ad.gradcheck(product, (pt.asarray([1, 2]),)),
            r"^\[gradcheck\] nothing to diff.*int64",
        ),
        (lambda: ad.gradcheck(x, ()), r"^\[gradcheck\] nothing .*: got no arguments"),
    ],
)
def test_the_error_is_of_the_call_and_says_what_to_type(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(PhloxError, match=text):
        call()


def test_gradients_of_what_holds_no_tensor_are_refused() -> None:
    w = pt.asarray([1.0, 2.0], device=DEVICE).require_grad()
    grads = (w * w).sum().backward()
    assert grads.of([w, 3, pt.ones(1, device=DEVICE)])[1:] == [None, None]
    values: list[Any] = [3, "w", [], None]
    for given in values:
        with pytest.raises(
            pt.WrongTypeError, match=r"^\[of\] nothing that a gradient could belong"
        ):
            grads.of(given)


@pytest.mark.parametrize("name", ["retain_grad", "register_hook"])
def test_what_pytorch_has_as_a_method_is_a_function(name: str) -> None:
    with pytest.raises(pt.UnknownNameError, match=rf"hint: x = px\.{name}\(x"):
        getattr(x(), name)
