"""Transforms inside ``no_grad`` record for themselves alone; hooks are nothing forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_autodiff import Autodiff
from phlox_tensor import Numpy, Tensor, WrongTypeError, tree

HERE = Numpy(float="float64")


def pulled(value: Any, pull: Callable[[Any], Any]) -> Any:
    return value, pull(value * 0 + 1)


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: ad.grad(f)(x),
    "hessian": lambda f, x: ad.hessian(f)(x),
    "hvp": lambda f, x: ad.hvp(f, (x,), (x * 0 + 1,)),
    "jacobian": lambda f, x: ad.jacobian(f)(x),
    "jacobian by columns": lambda f, x: ad.jacobian(f, mode="columns")(x),
    "jvp": lambda f, x: ad.jvp(f, (x,), (x * 0 + 1,)),
    "value_and_grad": lambda f, x: ad.value_and_grad(f)(x),
    "vjp": lambda f, x: pulled(*ad.vjp(f, x)),
}


def results(name: str, w: Any, x: Any) -> list[Tensor]:
    found = TRANSFORMS[name](lambda x: (x * x * w).sum(), x)
    return [leaf for leaf in tree.leaves(found) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize("device", [Autodiff(HERE), Autodiff(Autodiff(HERE))], ids=repr)
@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_results_of_transforms_in_no_grad_are_constants(name: str, device: Any) -> None:
    w, x = (pt.asarray([2.0, 3.0], device=device).require_grad() for _ in range(2))
    outside = results(name, w, x)
    assert any(t.requires_grad for t in outside)
    with ad.no_grad():
        inside = results(name, w, x)
    for one, other in zip(inside, outside, strict=True):
        assert one.device is other.device
        assert np.array_equal(one.detach().numpy(), other.detach().numpy())
        while one.device is not HERE:
            assert not one.requires_grad
            one = one.inner()  # noqa: PLW2901 - one level after the other


def test_a_gradient_taken_in_no_grad_is_a_constant_of_the_outer_one() -> None:
    def outer(x: Any) -> Any:
        with ad.no_grad():
            inside = ad.grad(lambda x: (x**3).sum())(x)
        return (x * inside).sum()

    assert ad.grad(outer)(pt.asarray([1.0, 2.0], device=HERE)).tolist() == [3.0, 12.0]


def test_hooks_and_kept_gradients_change_nothing_forwards() -> None:
    def f(x: Any) -> Any:
        return (ad.retain_grad(ad.register_hook(x * x, lambda g: g * 2.0)) * 3.0).sum()

    x = pt.asarray([1.0, 2.0], device=HERE)
    value, along = ad.jvp(f, (x,), (x * 0 + 1,))
    assert (float(value), float(along)) == (15.0, 18.0)
    assert ad.grad(f)(x).tolist() == [12.0, 24.0]
    # Forward over reverse: the hook is in the gradient, which moves.
    assert ad.hvp(f, (x,), (x * 0 + 1,))[0].tolist() == [12.0, 12.0]
    with pytest.raises(pt.GradientError, match="no gradient flows to the tensor"):
        ad.jvp(lambda x: ad.register_hook(x.detach(), lambda g: g) * x, (x,), (x,))


def test_errors_name_the_function_that_was_called() -> None:
    x, no_function = pt.asarray([1.0], device=HERE), 3.0
    anything: Any = no_function
    for name, call in (
        ("hvp", lambda: ad.hvp(anything, (x,), (x,))),
        ("jvp", lambda: ad.jvp(anything, (x,), (x,))),
        ("vjp", lambda: ad.vjp(anything, x)),
    ):
        with pytest.raises(pt.WrongTypeError, match=rf"\[{name}\] not a function: got float"):
            call()
    with pytest.raises(pt.GradientError, match=r"\[hvp\] the vector has not a part for each"):
        ad.hvp(lambda x: x.sum(), (x,), (x, x))


def test_the_order_of_gradcheck_is_its_third_argument() -> None:
    x = pt.asarray([0.5, -1.5], device=HERE)
    assert ad.gradcheck(lambda x: x.sin(), (x,), 2)
    with pytest.raises(pt.ArgumentError, match="order"):
        ad.gradcheck(lambda x: x.sin(), (x,), 0)


def test_a_block_that_nobody_enters_warns() -> None:
    with pytest.warns(RuntimeWarning, match=r"\[no_grad\] the block was never entered"):
        ad.no_grad()
    with pytest.warns(RuntimeWarning, match=r"\[detect_nan\] the block was never entered"):
        ad.detect_nan()


def test_no_grad_without_its_call_says_what_to_type() -> None:
    wrong: Any = ad.no_grad
    with (
        pytest.raises(WrongTypeError, match=r"opened by a call(.|\n)*hint: with px.no_grad\(\)"),
        wrong,
    ):
        pass
    with pytest.raises(WrongTypeError, match="not a function: got 3"):
        wrong(3)
    assert repr(wrong) == "<function no_grad>"
