"""Custom gradients, no_grad, detect_nan."""

from __future__ import annotations

import gc
import inspect
import math
import weakref
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


def grad_of(w: Tensor[Any], y: Tensor[Any]) -> list[float]:
    found = w.grad(y.sum().backward())
    assert found is not None
    values: list[float] = found.tolist()
    return values


@ad.custom_gradient
def clip_grad(x: Tensor[Any]) -> Any:
    return x, lambda g: g.clip(-1, 1)


@ad.custom_gradient
def swap(x: Tensor[Any], n: int, y: Tensor[Any]) -> Any:
    """Two values and a number; the cotangents are crossed on purpose."""
    return (x * n, y * n), lambda g, h: (h * n, g * n)


@ad.custom_gradient
def steep(x: Tensor[Any]) -> Any:
    """The sine with ten times its derivative."""
    return x.sin(), lambda g: g * x.cos() * 10.0


def test_the_gradient_is_the_one_given() -> None:
    w = leaf(1.0, 2.0)
    assert grad_of(w, clip_grad(w) * pt.asarray([0.5, 7.0])) == [0.5, 1.0]


def test_without_a_recording_device_only_the_value_is_computed() -> None:
    x = pt.asarray([1.0], device=INNER)
    assert clip_grad(x) is x
    constant = pt.asarray([1.0], device=DEVICE)
    assert not clip_grad(constant).requires_grad


def test_several_values_and_arguments() -> None:
    x, y = leaf(1.0), leaf(5.0)
    first, second = swap(x, 3, y)
    grads = (first + second * 100.0).sum().backward()
    assert x.grad(grads).tolist() == [300.0]
    assert y.grad(grads).tolist() == [3.0]


def test_a_custom_gradient_holds_at_every_order() -> None:
    x = pt.asarray([0.3], device=INNER)
    sine = float(x.sin()[0])
    second = ad.grad(lambda x: ad.grad(lambda x: steep(x).sum())(x).sum())(x)
    assert second.tolist() == pytest.approx([-10.0 * sine])  # the cosine in the rule is a plain one
    inside = ad.grad(lambda x: (ad.grad(lambda y: (x * steep(y)).sum())(pt.asarray([0.0]))).sum())
    assert inside(x).tolist() == [10.0]


def test_a_tracked_tensor_that_is_closed_over_is_refused() -> None:
    w = leaf(2.0)

    @ad.custom_gradient
    def scaled(x: Tensor[Any]) -> Any:
        return x * w, lambda g: g

    with pytest.raises(pt.GradientError, match="closes over a tensor"):
        scaled(leaf(1.0))


@pytest.mark.parametrize(
    ("pull", "text"),
    [
        (lambda g: (g, g), "not one cotangent per tensor argument: got 2, expected 1"),
        (lambda g: g.sum(), r"does not fit the argument: got \(\) of float64, expected \(2,\)"),
        (lambda g: g.astype(pt.float32), r"got \(2,\) of float32"),
        (lambda g: 3.0, "got float"),
    ],
)
def test_a_cotangent_that_does_not_fit_is_refused(pull: Any, text: str) -> None:
    @ad.custom_gradient
    def mine(x: Tensor[Any]) -> Any:
        return x * 1.0, pull

    w = leaf(1.0, 2.0)
    with pytest.raises(pt.GradientError, match=text) as error:
        mine(w).sum().backward()
    assert error.value.op == "mine"


@pytest.mark.parametrize(
    ("rule", "op"),
    [
        (lambda t: t * t, "multiply"),
        (lambda t: t.sin() * 2.0, "sin"),
        (lambda t: (t * 3.0).exp(), "exp"),
        (lambda t: 1.0 / (t + 1.0), "reciprocal|divide"),
        (lambda t: t * t.max(), "max|multiply"),
        (lambda t: t.relu(), "relu|maximum|where"),
    ],
)
def test_a_rule_that_is_not_linear_in_the_tangent_is_refused(rule: Any, op: str) -> None:
    bent = ad.custom_jvp(lambda x: (x * 1.0, rule))
    match = rf"not linear in the tangents.*got ({op}) of one"
    with pytest.raises(pt.GradientError, match=match):
        ad.grad(lambda x: bent(x).sum())(pt.asarray([1.0, 2.0], device=INNER))


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, t: t * x.cos(),
        lambda x, t: -t / x + t.mean() - t[0],
        lambda x, t: pt.where(x > 1.0, t, t * 0.0),
        lambda x, t: pt.concat([t[:1] * 2.0, t[1:]]) @ pt.eye(2, device=INNER),
        lambda x, t: pt.conv1d(t.reshape((1, 1, 2)), x.reshape((1, 1, 2)), padding=1)[0, 0, :2],
        lambda x, t: pt.linear(x.reshape((1, 2)), pt.stack([t, t * x]), t)[0],
        lambda x, t: pt.linear(t.reshape((1, 2)), pt.stack([x, x * x]))[0],
        lambda x, t: t.cumsum(axis=0).flip(axis=0) + t.astype("float32").astype("float64"),
    ],
)
def test_a_linear_rule_goes_back_by_its_transpose(rule: Any) -> None:
    x = pt.asarray([1.0, 2.0], device=INNER)
    mine = ad.custom_jvp(lambda x: (x * 1.0, lambda t: rule(x, t)))
    rows = ad.jacobian(mine, mode="rows")(x).tolist()
    assert rows == [pytest.approx(row) for row in ad.jacobian(mine, mode="columns")(x).tolist()]


def passed(x: Tensor[Any]) -> Any:
    """Straight through: nothing of the call is needed for its derivative."""
    return x.round(), lambda g: g


@pytest.mark.parametrize("decorate", [ad.custom_gradient, ad.custom_jvp])
def test_a_step_keeps_what_its_derivative_uses_and_no_more(decorate: Any) -> None:
    w = leaf(1.0, 2.0)
    before = w * 3.0
    result = decorate(passed)(before)
    loss = (result + 1.0).sum()
    arrays = [weakref.ref(x.primitive.value) for x in (before, result)]
    del before, result
    gc.collect()
    assert [array() is None for array in arrays] == [True, True]
    assert grad_of(w, loss) == [3.0, 3.0]

    kept = w * 3.0
    loss = decorate(lambda x: (x * x, lambda g: g * x * 2.0))(kept).sum()
    array = weakref.ref(kept.primitive.value)
    del kept
    assert array() is not None  # what the user's function closes over
    assert grad_of(w, loss) == [18.0, 36.0]


@pytest.mark.parametrize("decorate", [ad.custom_gradient, ad.custom_jvp])
def test_lanes_keep_what_the_derivative_uses_and_no_more(decorate: Any) -> None:
    seen: list[Any] = []

    def loss(w: Tensor[Any]) -> Tensor[Any]:
        before = w * 3.0
        seen.append(weakref.ref(before.primitive.value))
        value = ad.vmap(decorate(passed))(before).sum()
        del before
        gc.collect()
        seen.append(seen[0]() is None)
        return value

    assert ad.grad(loss)(pt.asarray([1.0, 2.0], device=INNER)).tolist() == [3.0, 3.0]
    assert seen[1]


def test_forward_mode_refuses_a_custom_gradient() -> None:
    one = pt.asarray([1.0], device=INNER)
    with pytest.raises(pt.GradientError, match="no forward derivative"):
        ad.jvp(steep, (one,), (one,))
    with pytest.raises(pt.GradientError, match="no forward derivative"):
        ad.jvp(ad.grad(lambda x: steep(x).sum()), (one,), (one,))
    value, moved = ad.jvp(lambda x: x * steep(pt.asarray([0.0])), (one,), (one,))
    assert (value.tolist(), moved.tolist()) == ([0.0], [0.0])


# no_grad


def test_nothing_is_recorded_inside_no_grad() -> None:
    w = leaf(1.0)
    with ad.no_grad():
        results = [w * w, w.exp(), w * 2.0, w.sum(), pt.concat([w, w]), w.softmax(), clip_grad(w)]
        results += [w.gelu_tanh(), w.std()]
        with ad.no_grad():
            pass
        results.append(-w)
    assert not any(r.requires_grad for r in results)
    assert (w * w).requires_grad


def test_no_grad_decorates_with_and_without_brackets() -> None:
    @ad.no_grad
    def bare(x: Tensor[Any]) -> Tensor[Any]:
        return x * 2.0

    @ad.no_grad()
    def called(x: Tensor[Any]) -> Tensor[Any]:
        return x * 2.0

    for function in (bare, called):
        assert not function(leaf(1.0)).requires_grad
    assert bare.__name__ == "bare"


def test_an_error_inside_no_grad_ends_it() -> None:
    with pytest.raises(RuntimeError, match="on purpose"), ad.no_grad():
        raise RuntimeError("on purpose")
    assert leaf(1.0).exp().requires_grad


# detect_nan


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_op_that_gives_the_first_nan_is_named() -> None:
    w = leaf(-1.0)
    with ad.detect_nan():
        line = here() + 2
        with pytest.raises(pt.GradientError) as error:
            w.log().exp()
    assert error.value.op == "log"
    assert error.value.got == "operands without nan: float64[1]"
    assert f"{__file__}:{line}" in str(error.value)


def test_a_function_without_a_name_is_called_by_what_decorates_it() -> None:
    class Halved:
        def __call__(self, x: Any) -> Any:
            return x * 0.5, lambda t: t * 0.5

    for decorate, name in ((ad.custom_gradient, "custom_gradient"), (ad.custom_jvp, "custom_jvp")):
        y = decorate(Halved())(leaf(1.0))
        assert y.primitive.node.plan.name == name


def test_a_nan_in_the_data_is_told_apart() -> None:
    w = leaf(float("nan"))
    with ad.detect_nan(), pytest.raises(pt.GradientError, match="an operand with nan"):
        w.exp()


def test_the_derivative_that_gives_the_first_nan_is_named() -> None:
    w = leaf(0.0)
    with ad.detect_nan():
        line = here() + 1
        root = w.sqrt()
        loss = (root * 0.0).sum()
        with pytest.raises(pt.GradientError) as error:
            loss.backward()
    assert error.value.op == "sqrt"
    assert "its derivative gives nan" in str(error.value)
    assert f"{__file__}:{line}" in str(error.value)


def test_a_step_from_before_the_block_is_named_without_its_line() -> None:
    w = leaf(0.0)
    loss = (w.sqrt() * 0.0).sum()
    with (
        ad.detect_nan(),
        pytest.raises(
            pt.GradientError, match=r"the call of [a-z_<>]+, which is no op, or ran before"
        ),
    ):
        loss.backward()


def test_infinities_are_found_where_asked_forwards_and_backwards() -> None:
    w = leaf(0.0, 1.0)
    with ad.detect_nan():
        assert w.log().tolist()[0] == float("-inf")
    with ad.detect_nan(infinities=True), pytest.raises(pt.GradientError) as forward:
        w.log()
    assert str(forward.value).startswith(
        "[log] the result holds inf: got operands without nan or inf: float64[2], expected finite"
    )
    with ad.detect_nan(infinities=True), pytest.raises(pt.GradientError) as backward:
        w.sqrt().sum().backward()
    assert str(backward.value).startswith(
        "[sqrt] its derivative gives inf: got cotangents without nan or inf: float64[2]"
    )


def test_an_infinity_is_found_where_it_starts_not_where_it_was_given() -> None:
    w = leaf(1.0, 2.0)
    hidden = pt.asarray([False, True], device=DEVICE)
    given = pt.asarray([0.0, float("-inf")], device=DEVICE)
    with ad.detect_nan(infinities=True):
        for scores in (pt.where(hidden, float("-inf"), w), w + given, given.exp() * w):
            ad.stop_gradient(scores).max()
            scores.softmax().sum().backward()
        pt.full((2,), float("-inf"), device=DEVICE)
        with pytest.raises(pt.GradientError, match=r"\[exp\] the result holds inf"):
            (w * 1e4).exp()
        with pytest.raises(pt.GradientError, match=r"\[multiply\] the result holds nan"):
            (given * 0.0).sum()


def test_an_op_is_judged_by_its_result_alone() -> None:
    """Formulas may pass through nan on their way."""
    w = leaf(float("inf"), 1.0)
    other = leaf(float("inf"), 2.0)
    with ad.detect_nan():
        w.logaddexp(other)
        ad.grad(lambda x: ad.grad(lambda x: x.softmax()[0])(x)[1])(leaf(1.0, 2.0))
        pt.max_pool2d_with_indices(pt.ones((1, 1, 4, 4), device=DEVICE).require_grad(), 2)


def test_the_block_leaves_no_trace() -> None:
    w = leaf(-1.0)
    with ad.detect_nan(), ad.detect_nan():
        pass
    assert w.log().requires_grad
    w.log().sum().backward()


def test_a_block_looks_at_devices_that_do_not_record() -> None:
    x = pt.asarray([-1.0, 1.0])
    with ad.detect_nan(), pytest.raises(pt.GradientError) as error:
        x.log()
    assert (error.value.op, error.value.got) == ("log", f"operands without nan: {x.dtype}[2]")
    assert __file__ in str(error.value)
    with ad.detect_nan(infinities=True), pytest.raises(pt.GradientError, match="holds inf"):
        (x * 0.0).reciprocal()
    with ad.detect_nan():
        assert pt.ones(2, device=pt.Meta()).log().shape == (2,)
    assert x.log().isnan().tolist() == [True, False]


def noisy(calls: list[int]) -> Any:
    @ad.custom_gradient
    def masked(x: Tensor[Any]) -> Any:
        calls.append(1)
        mask = (pt.random.uniform(x.shape, device=x.device.base) > 0.5).astype(x.dtype)
        return x * mask, lambda g: g * mask

    return masked


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_value_and_gradient_are_of_the_same_random_numbers(levels: int) -> None:
    device: Any = INNER
    for _ in range(levels):
        device = ad.Autodiff(device)
    calls: list[int] = []
    x = pt.ones(64, device=device).require_grad()
    y = noisy(calls)(x)
    found = x.grad(y.sum().backward())
    assert y.tolist() == found.tolist()
    assert len(calls) == 1  # nothing below has a derivative to take


def test_second_derivatives_are_of_the_same_random_numbers() -> None:
    calls: list[int] = []
    function = noisy(calls)

    def slope(x: Any) -> Any:
        return ad.grad(lambda x: (function(x) ** 2).sum())(x)

    x = pt.ones(64, device=INNER)
    first, second = slope(x), None
    pt.seed(3)
    first = slope(x).numpy()
    pt.seed(3)
    second = ad.grad(lambda x: slope(x).sum())(x).numpy()
    assert 0 < first.sum() < 128
    assert (first == second).all()


def test_a_tangent_of_zeros_is_no_derivative() -> None:
    for rule in (lambda t: pt.zeros(3, device=INNER), lambda t: None):
        silent = ad.custom_jvp(lambda x, rule=rule: (x * 2, rule))
        x = pt.ones(3, device=INNER)
        assert ad.grad(lambda x, f=silent: f(x).sum())(x).tolist() == [0, 0, 0]
        assert ad.jvp(silent, (x,), (x,))[1].tolist() == [0, 0, 0]


def test_functions_of_another_number_of_cotangents_or_tangents_are_refused() -> None:
    two = ad.custom_gradient(lambda x: ((x, x * 2), lambda g: g[0]))
    one = ad.custom_jvp(lambda x, n: (x * n, lambda t, _: t * n))
    x = pt.ones(3, device=INNER)
    with pytest.raises(pt.GradientError, match=r"(?s)another number of cotangents.*lambda c0, c1:"):
        ad.grad(lambda x: two(x)[0].sum())(x)
    with pytest.raises(pt.GradientError, match=r"another number of tangents: got 1 tangents"):
        ad.jvp(lambda x: one(x, 2), (x,), (x,))
    own = ad.custom_gradient(lambda x: (x, lambda g: g + "text"))
    with pytest.raises(TypeError, match=r"text|Tensor"):
        ad.grad(lambda x: own(x).sum())(x)


def test_blocks_refuse_words_where_they_are_written() -> None:
    call: Any = ad.detect_nan
    with pytest.raises(pt.UnknownArgumentError, match=r"(?s)got infinity.*infinities="):
        call(infinity=True)
    loss: Any = leaf(1.0).sum()
    with pytest.raises(pt.UnknownArgumentError, match=r"(?s)got gradient.*seed="):
        loss.backward(gradient=pt.ones(()))


def test_floats_of_numpy_are_numbers_as_those_of_python_are() -> None:
    for value in (2.0, np.float64(2), np.float32(2)):
        assert float(ad.grad(lambda x: x * x)(value)) == 4.0
        found = ad.grad(lambda p: p["a"] * p["b"].sum())({"a": value, "b": pt.ones(3)})
        assert float(found["a"]) == 3.0


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_second_derivatives_far_away_are_0(name: str) -> None:
    function = getattr(pt, name)
    x = pt.asarray([-1e20, 1e20, math.inf, -math.inf], device=INNER)
    if name == "gelu_tanh":
        x = x[:2]
    bend = ad.grad(lambda x: ad.grad(lambda x: function(x).sum())(x).sum())(x)
    assert bend.tolist() == [0.0] * len(x)


def test_lanes_draw_in_functions_with_a_derivative_of_their_own() -> None:
    @ad.custom_gradient
    def masked(x: Tensor[Any]) -> Any:
        mask = (pt.random.uniform(x.shape, device=INNER) > 0.5).astype(x.dtype)
        return x * mask, lambda g: g * mask

    xs = pt.ones((4, 16), device=INNER)
    values = ad.vmap(masked)(xs)
    assert len({tuple(row) for row in values.tolist()}) == 4
    assert set(values.reshape(-1).tolist()) == {0.0, 1.0}
    below = ad.grad(lambda xs: ad.vmap(masked)(xs).sum())(xs)
    assert len({tuple(row) for row in below.tolist()}) == 4
    value, slopes = ad.vmap(ad.value_and_grad(lambda x: masked(x).sum()))(xs)
    assert value.tolist() == slopes.sum(axis=1).tolist()
    pairs, twice = ad.vmap(ad.vmap(ad.value_and_grad(lambda x: masked(x).sum())))(
        xs.reshape(2, 2, 16)
    )
    assert pairs.tolist() == twice.sum(axis=2).tolist()


def test_no_derivative_is_lost_on_the_way_to_the_device_below() -> None:
    x = pt.asarray([1.0, 2.0], device=INNER)
    for function in (
        lambda a: (a.to_device(INNER) * a).sum(),
        lambda a: (pt.asarray(a, device=INNER) * a).sum(),
        lambda a: ad.vmap(lambda b: b * a.to_device(INNER))(a).sum(),
    ):
        with pytest.raises(pt.GradientError, match=r"(?s)history.*x.detach\(\)"):
            ad.grad(function)(x)
    assert ad.grad(lambda a: (a.detach().to_device(INNER) * a).sum())(x).tolist() == [1.0, 2.0]
    own = leaf(1.0, 2.0)  # which somebody may read elsewhere
    assert own.to_device(INNER).tolist() == [1.0, 2.0]
    assert ad.grad(lambda a: (own.to_device(INNER) * a).sum())(x).tolist() == [1.0, 2.0]


def test_tensors_of_lanes_are_bounds() -> None:
    xs = pt.asarray([[3.0, -9.0, 9.0], [1.0, -9.0, 9.0]], device=INNER)
    found = ad.vmap(lambda a: pt.clip(a, -0.5, a[0]))(xs)
    assert found.tolist() == [[3.0, -0.5, 3.0], [1.0, -0.5, 1.0]]
