"""Gradients of what is no leaf, hooks, gradients as trees, and the graph as data."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor

INNER = Numpy(float="float64")
DEVICE = ad.Autodiff(INNER)


def leaf(*values: float, device: ad.Autodiff = DEVICE) -> Tensor[Any]:
    return pt.asarray(list(values), device=device).require_grad()


def values_of(x: Tensor[Any], grads: Any) -> Any:
    found = grads.get(x)
    assert found is not None
    return found.tolist()


# retain_grad


def test_the_gradient_of_a_result_is_kept_where_asked() -> None:
    w = leaf(1.0, 2.0)
    plain = w * w
    h = ad.retain_grad(plain)
    grads = (h * 3.0 + h * plain.detach()).sum().backward()
    assert values_of(h, grads) == [4.0, 7.0]
    assert values_of(w, grads) == [8.0, 28.0]
    assert grads.get(plain) is None
    assert len(grads) == 2


@pytest.mark.parametrize(
    "half",
    [0.5, np.float64(0.5), np.float32(0.5), np.float16(0.5), Fraction(1, 2), pt.asarray(0.5)],
    ids=lambda half: type(half).__name__,
)
def test_one_number_of_any_type_scales_gradients(half: Any) -> None:
    w = leaf(1.0, 2.0)
    grads = (w * w).sum().backward()
    for scaled in (grads * half, half * grads, grads / (1 / half)):
        assert isinstance(scaled, ad.Gradients)
        assert values_of(w, scaled) == [1.0, 2.0]
        assert grads[w].dtype is scaled[w].dtype


def test_gradients_are_subtracted() -> None:
    w, v = leaf(1.0, 2.0), leaf(5.0)
    first, second = (w * w).sum().backward(), (w * v).sum().backward()
    assert values_of(w, -first) == [-2.0, -4.0]
    assert values_of(w, first - second) == [-3.0, -1.0]
    assert values_of(v, first - second) == [-3.0]


def test_a_factor_that_is_tracked_counts_by_its_value() -> None:
    w = leaf(1.0, 2.0)
    scaled = (w * w).sum().backward() * w.sum()
    assert values_of(w, scaled) == [6.0, 12.0]
    assert not scaled[w].requires_grad


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda g: g * np.ones(2), r"\[\*\].*got ndarray of shape \(2,\).*\nhint: grads.map"),
        (lambda g: np.ones(2) * g, r"\[\*\].*got ndarray of shape \(2,\).*\nhint: grads.map"),
        (lambda g: pt.asarray([1.0, 2.0]) * g, r"\[\*\].*got Tensor of shape \(2,\)"),
        (lambda g: g * "2", r"\[\*\].*got str"),
        (lambda g: g / [2.0], r"\[/\].*got list"),
        (lambda g: g + 1, r"\[\+\] gradients stand beside gradients.*got int"),
        (lambda g: g - 1, r"\[-\] gradients stand beside gradients.*got int"),
        (lambda g: np.float64(1) / g, r"\[/\] a Gradients is no tensor"),
        (lambda g: g**2, r"\[\*\*\] a Gradients is no tensor.*\nhint: grads.map"),
        (np.asarray, "a Gradients is no tensor"),
    ],
)
def test_what_does_not_scale_gradients_says_what_to_type(spoil: Any, text: str) -> None:
    w = leaf(1.0, 2.0)
    with pytest.raises(pt.WrongTypeError, match=text):
        spoil((w * w).sum().backward())


def test_retained_gradients_add_up_and_scale() -> None:
    w = leaf(1.0)
    h = ad.retain_grad(w * 2.0)
    loss = (h * h).sum()
    grads = loss.backward(retain_graph=True) + loss.backward() * 0.5
    assert values_of(h, grads) == [6.0]


def test_retain_grad_changes_no_derivative() -> None:
    def function(x: Tensor[Any]) -> Tensor[Any]:
        return (ad.retain_grad(x.exp()) * x).sum()

    x = pt.asarray([0.5, -1.0])
    plain = ad.hessian(lambda x: (x.exp() * x).sum())(x)
    assert ad.hessian(function)(x).tolist() == plain.tolist()
    rows = ad.vmap(ad.grad(function))(x.reshape((2, 1)))
    assert rows.flatten().tolist() == ad.grad(function)(x).tolist()


def test_constants_are_refused() -> None:
    constant = pt.asarray([1.0], device=DEVICE)
    for call in (ad.retain_grad, lambda x: ad.register_hook(x, lambda g: g)):
        with pytest.raises(pt.GradientError, match="no gradient flows to the tensor"):
            call(constant)
        with pytest.raises(pt.GradientError, match="no gradient flows to the tensor"):
            call(constant.inner())


def test_a_tensor_inside_of_a_checkpoint_cannot_be_kept() -> None:
    block = ad.checkpoint(lambda x: ad.retain_grad(x.exp()).sin())
    loss = block(leaf(1.0)).sum()
    with pytest.raises(pt.GradientError, match="runs again, so that no tensor inside of it stays"):
        loss.backward()


# register_hook


def test_a_hook_sees_the_whole_gradient_once_and_may_change_it() -> None:
    seen: list[Any] = []

    def clip(g: Tensor[Any]) -> Tensor[Any]:
        seen.append(g.tolist())
        return g.clip(-1.0, 1.0)

    w = leaf(1.0, 2.0)
    h = ad.register_hook(w, clip)
    grads = (h * h + h).sum().backward()
    assert seen == [[3.0, 5.0]]
    assert values_of(w, grads) == [1.0, 1.0]


def test_a_hook_that_gives_nothing_leaves_the_gradient() -> None:
    w = leaf(1.0)
    h = ad.register_hook(w * 2.0, lambda g: None)
    assert values_of(w, (h * 5.0).sum().backward()) == [10.0]


@pytest.mark.parametrize(
    ("hook", "got"), [(lambda g: g.sum(), r"\(\) of float64"), (lambda g: 3.0, "float")]
)
def test_a_hook_that_gives_something_else_is_refused(hook: Any, got: str) -> None:
    loss = ad.register_hook(leaf(1.0, 2.0) * 1.0, hook).sum()
    with pytest.raises(pt.GradientError, match=f"does not give a gradient: got {got}"):
        loss.backward()


# Trees


def test_gradients_take_the_place_of_the_leaves_of_a_tree() -> None:
    w = leaf(1.0, 2.0)
    model: dict[str, Any] = {
        "w": w,
        "rest": [leaf(3.0), 7],
        "fixed": pt.asarray([1.0], device=DEVICE),
    }
    grads = (w * w).sum().backward()
    found = grads.of(model)
    assert found["w"].tolist() == [2.0, 4.0]
    assert found["rest"] == [None, None]
    assert found["fixed"] is None


# The graph


def test_a_graph_lists_steps_and_every_kept_array_once() -> None:
    w, x = leaf(1.0, 2.0), pt.asarray([3.0, 4.0], device=DEVICE)
    loss = ((w * x).tanh() * x).sum()
    found = ad.graph(loss)
    assert [s.op for s in found.steps] == ["leaf", "multiply", "tanh", "multiply", "sum"]
    assert [s.parents for s in found.steps] == [(), (0,), (1,), (2,), (3,)]
    kept = [(k.op, k.name, k.shape, k.nbytes) for k in found.kept()]
    assert kept == [("multiply", "x2", (2,), 16), ("tanh", "y", (2,), 16)]
    assert found.nbytes == 32
    assert loss.backward() is not None  # looking at a graph does not use it


def test_what_is_computed_again_is_told_from_what_is_kept() -> None:
    frugal = ad.Autodiff(INNER, ad.BalancedCheckpointing())
    w = leaf(1.0, 2.0, device=frugal)
    found = ad.graph((w.exp().sin() * w).sum())
    assert found.nbytes == 16
    assert [k.again for s in found.steps for k in s.kept] == [True, True, True, False]


def test_steps_of_functions_say_what_they_close_over() -> None:
    @ad.custom_gradient
    def scaled(x: Tensor[Any]) -> Any:
        half = x * 0.5
        return x.sin(), lambda g: g * half

    w = leaf(1.0, 2.0)
    block = ad.checkpoint(lambda x: x.exp().sin())
    found = ad.graph(scaled(block(w)).sum())
    assert [s.op for s in found.steps] == ["leaf", "<lambda>", "scaled", "sum"]
    assert "half" in {k.name for k in found.steps[2].kept}
    assert found.steps[1].kept[0].shape == (2,)


def test_a_graph_is_text_and_a_picture() -> None:
    w = leaf(1.0, 2.0)
    found = ad.graph((w * w).sum())
    assert str(found).splitlines() == [
        "0 leaf (2,)",
        "1 multiply (2,) <- 0, 0  keeps x1 float64[2], x2 float64[2]",
        "2 sum () <- 1",
        "keeps 16 bytes",
    ]
    picture = ET.fromstring(found.svg())
    texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[::2] == ["0 leaf", "1 multiply", "2 sum"]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}line"))) == 2


def test_a_graph_of_lanes_is_that_of_the_device_inside() -> None:
    w = leaf(1.0, 2.0)
    seen: list[ad.Graph] = []

    def look(x: Tensor[Any]) -> Tensor[Any]:
        y = x.exp()
        seen.append(ad.graph(y))
        return y

    ad.vmap(look)(w)
    assert [s.op for s in seen[0].steps] == ["leaf", "exp"]


def test_a_constant_has_no_graph() -> None:
    with pytest.raises(pt.GradientError, match="nothing was recorded"):
        ad.graph(pt.asarray([1.0], device=DEVICE))
