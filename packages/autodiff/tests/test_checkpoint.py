"""``checkpoint``: a function that runs again in the backward pass, whatever it takes and gives."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor

INNER = Numpy(float="float64")
DEVICE = ad.Autodiff(INNER)


def leaf(*values: float) -> Tensor[Any]:
    return pt.asarray(list(values), device=DEVICE).require_grad()


def gradients(loss: Tensor[Any], *leaves: Tensor[Any]) -> list[Any]:
    grads = loss.backward()
    found = [grads.get(x) for x in leaves]
    return [None if g is None else g.tolist() for g in found]


def same(function: Any, *arrays: tuple[float, ...], **kwargs: Any) -> None:
    """The gradients with and without ``checkpoint`` have the same bits."""
    both = []
    for form in (function, ad.checkpoint(function)):
        leaves = [leaf(*a) for a in arrays]
        both.append(gradients(form(*leaves, **kwargs).sum(), *leaves))
    assert both[0] == both[1]
    assert None not in both[0]


def test_gradients_are_the_same() -> None:
    same(lambda x, y: (x.sin() * y).exp() + x * x, (1.0, 2.0), (0.5, -1.0))


def test_keywords_and_trees_pass() -> None:
    def function(parts: Any, *, scale: Tensor[Any], power: int) -> Any:
        return {"a": parts[0] * scale, "b": (parts[1]["x"].tanh() ** power, 3, None)}

    found = []
    for form in (function, ad.checkpoint(function)):
        x, y, s = leaf(1.0, 2.0), leaf(3.0), leaf(0.5, 0.25)
        out = form([x, {"x": y}], scale=s, power=2)
        assert out["b"][1:] == (3, None)
        found.append(gradients((out["a"] * 2.0).sum() + out["b"][0].sum(), x, y, s))
    assert found[0] == found[1]


def test_a_result_without_a_gradient_is_left_out() -> None:
    both = ad.checkpoint(lambda x: (x.sin(), x.exp()))
    x = leaf(0.5)
    assert gradients(both(x)[1].sum(), x) == [[float(np.exp(0.5))]]


def test_tensors_that_the_function_closes_over_are_operands() -> None:
    found = []
    for decorate in (lambda f: f, ad.checkpoint):
        w = leaf(1.0, 2.0)
        hidden = w.exp()
        x = leaf(0.1, 0.2)
        out = decorate(lambda x, h=hidden, w=w: (x * h).sin() * w)(x)
        found.append(gradients((out * hidden).sum(), w, x))
    assert found[0] == found[1]


def test_checkpoints_nest() -> None:
    inner = ad.checkpoint(lambda x: x.sin() * x)
    same(lambda x: inner(inner(x) + 1.0) * x, (0.3, 0.7))


def test_random_numbers_are_drawn_again() -> None:
    def dropout(x: Tensor[Any]) -> Tensor[Any]:
        kept = pt.random.uniform(x.shape, device=x.device) < 0.5
        return (x * kept.astype(x.dtype)).square()

    found = []
    for form in (dropout, ad.checkpoint(dropout)):
        pt.random.seed(7)
        x = leaf(*map(float, range(1, 65)))
        loss = (form(x) * form(x)).sum()
        after = pt.random.generator().state()
        found.append(gradients(loss, x))
        assert pt.random.generator().state() == after
    assert found[0] == found[1]


def test_derivatives_of_second_order() -> None:
    def function(x: Tensor[Any]) -> Tensor[Any]:
        return (x.sin() * x[0]).exp()

    x = pt.asarray([0.3, 0.7], device=INNER)
    assert ad.gradcheck(ad.checkpoint(function), x, order=2)
    plain = ad.hessian(lambda x: function(x).sum())(x)
    again = ad.hessian(lambda x: ad.checkpoint(function)(x).sum())(x)
    assert plain.tolist() == again.tolist()


def test_forward_mode_passes() -> None:
    x = pt.asarray([0.3, 0.7], device=INNER)
    function = ad.checkpoint(lambda x: x.sin() * x)
    _, moved = ad.jvp(function, (x,), (x,))
    assert moved.tolist() == ad.jvp(lambda x: x.sin() * x, (x,), (x,))[1].tolist()


def test_a_graph_may_be_used_twice() -> None:
    x = leaf(0.3, 0.7)
    loss = ad.checkpoint(lambda x: x.sin() * x)(x).sum()
    first = x.grad(loss.backward(retain_graph=True))
    assert first is not None
    assert gradients(loss, x) == [first.tolist()]
    with pytest.raises(pt.GradientError, match="used by an earlier"):
        loss.backward()


def test_nothing_is_recorded_without_a_gradient() -> None:
    calls: list[int] = []

    @ad.checkpoint
    def function(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x * 2.0

    assert not function(pt.asarray([1.0], device=DEVICE)).requires_grad
    with ad.no_grad():
        assert not function(leaf(1.0)).requires_grad
    assert len(calls) == 2
    assert function(leaf(1.0)).requires_grad


def test_it_records_again_inside_no_grad() -> None:
    x = leaf(0.5)
    loss = ad.checkpoint(lambda x: x.sin() * x)(x).sum()
    with ad.no_grad():
        found = gradients(loss, x)
    assert found == gradients((x.sin() * x).sum(), x)


def test_inner_values_are_not_kept() -> None:
    kept: list[weakref.ref[Any]] = []

    def function(x: Tensor[Any]) -> Tensor[Any]:
        middle = x.exp()
        kept.append(weakref.ref(middle.primitive.value))
        return middle.sin().sum()

    x = leaf(1.0, 2.0)
    loss = ad.checkpoint(function)(x)
    gc.collect()
    assert kept[0]() is None
    assert loss.requires_grad
    function(x)
    plain = function(x)
    assert kept[-1]() is not None
    assert plain.requires_grad


@dataclass
class Layer:
    w: Tensor[Any]
    name: str = "layer"

    def __call__(self, x: Tensor[Any]) -> Any:
        return Layer((x * self.w).tanh(), self.name)


def test_modules_are_called_and_given_back() -> None:
    w, x = leaf(1.0, 2.0), leaf(0.5, 0.1)
    out = ad.checkpoint(Layer(w))(x)
    assert (type(out), out.name) == (Layer, "layer")
    assert gradients(out.w.sum(), w, x) == gradients(Layer(w)(x).w.sum(), w, x)


def test_a_function_that_changes_is_refused() -> None:
    calls: list[int] = []

    def unsteady(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x * 2.0 if len(calls) == 1 else (x * 2.0).sum()

    one, other = leaf(3.0, 4.0), leaf(5.0, 6.0)

    def wandering(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x * (one if len(calls) == 1 else other)

    def counting(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x * float(len(calls))

    def turning(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.cos()

    def narrow(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x.sin().astype("float64" if len(calls) == 1 else "float32")

    def drawing(x: Tensor[Any]) -> Tensor[Any]:
        calls.append(1)
        return x * pt.random.uniform((len(calls), 64), device=x.device).sum()

    wrong = {
        r"a value of float64\[\]": unsteady,
        r"a value of float32\[2\]": narrow,
        "other steps": counting,
        "of other steps": turning,
        "depends on another tensor": wandering,
        "other random numbers": drawing,
    }
    for what, function in wrong.items():
        calls.clear()
        loss = ad.checkpoint(function)(leaf(1.0, 2.0)).sum()
        with pytest.raises(pt.GradientError, match=what):
            loss.backward()


def test_a_leaf_made_at_the_first_call_is_an_operand() -> None:
    """As the parameters of a module are: the numbers that make it are drawn once."""
    made: list[Tensor[Any]] = []

    @ad.checkpoint
    def lazy(x: Tensor[Any]) -> Tensor[Any]:
        if not made:
            made.append(pt.random.normal((2,), device=DEVICE).require_grad())
        return x * made[0] * pt.random.uniform((2,), device=DEVICE)

    x = leaf(1.0, 2.0)
    y = lazy(x)
    found = gradients(y.sum(), x, made[0])
    np.testing.assert_allclose(np.array(found[0]) * x.numpy(), y.numpy())
    np.testing.assert_allclose(np.array(found[1]) * made[0].numpy(), y.numpy())


def test_a_leaf_made_inside_is_refused() -> None:
    with pytest.raises(pt.GradientError, match="leaf of its own"):
        ad.checkpoint(lambda x: x * x.detach().require_grad())(leaf(1.0))
