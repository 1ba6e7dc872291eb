"""Functions of functions: grad, vjp, jvp, jacobian, hessian, gradcheck, nested in each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor

LOOSE: Any = ad
DEVICE = Numpy(float="float64")


def vector(*values: float) -> Tensor[Any]:
    return pt.asarray(list(values), device=DEVICE)


def cube(x: Tensor[Any]) -> Tensor[Any]:
    return (x**3).sum()


X = (1.0, 2.0, 3.0)


def test_grad_is_on_the_device_of_the_argument() -> None:
    found = ad.grad(cube)(vector(*X))
    assert found.device is DEVICE
    assert found.tolist() == [3.0, 12.0, 27.0]


def test_value_and_grad() -> None:
    value, gradient = ad.value_and_grad(cube)(vector(*X))
    assert value.device is DEVICE
    assert float(value) == 36.0
    assert gradient.tolist() == [3.0, 12.0, 27.0]


def test_grad_of_several_arguments() -> None:
    def function(x: Tensor[Any], n: int, y: Tensor[Any]) -> Tensor[Any]:
        return (x * y * n).sum()

    x, y = vector(1.0, 2.0), vector(3.0, 4.0)
    assert ad.grad(function)(x, 2, y).tolist() == [6.0, 8.0]
    assert ad.grad(function, -1)(x, 2, y).tolist() == [2.0, 4.0]
    both = ad.grad(function, (0, 2))(x, 2, y)
    assert [g.tolist() for g in both] == [[6.0, 8.0], [2.0, 4.0]]


def test_grad_takes_keywords_as_constants() -> None:
    def function(x: Tensor[Any], *, scale: Tensor[Any]) -> Tensor[Any]:
        return (x * scale).sum()

    assert ad.grad(function)(vector(1.0), scale=vector(4.0)).tolist() == [4.0]


class Point(NamedTuple):
    x: Tensor[Any]
    y: list[Tensor[Any]]


def test_arguments_may_be_trees() -> None:
    def function(tree: dict[str, Any]) -> Tensor[Any]:
        point = tree["point"]
        return (point.x * point.y[0]).sum() * tree["number"]

    point = Point(vector(1.0, 2.0), [vector(3.0, 4.0)])
    found = ad.grad(function)({"point": point, "number": 2, "index": pt.asarray([1])})
    assert isinstance(found["point"], Point)
    assert found["point"].x.tolist() == [6.0, 8.0]
    assert found["point"].y[0].tolist() == [2.0, 4.0]
    assert found["number"] is None
    assert found["index"] is None


def test_a_plain_number_is_an_argument() -> None:
    assert float(ad.grad(lambda x: x * x)(3.0)) == 6.0


def test_an_argument_without_influence_has_gradient_zero() -> None:
    found = ad.grad(lambda x, y: (x * 2.0).sum() + 0.0 * y.detach().sum(), 1)(
        vector(1.0), vector(2.0)
    )
    assert found.tolist() == [0.0]
    assert ad.grad(lambda x: x.floor().sum())(vector(1.5)).tolist() == [0.0]


def test_nested_grad() -> None:
    x = vector(*X)
    second = ad.grad(lambda x: ad.grad(cube)(x).sum())(x)
    third = ad.grad(lambda x: ad.grad(lambda x: ad.grad(cube)(x).sum())(x).sum())(x)
    assert second.tolist() == [6.0, 12.0, 18.0]
    assert third.tolist() == [6.0, 6.0, 6.0]
    assert third.device is DEVICE


def test_an_inner_grad_at_a_constant_sees_the_outer_argument() -> None:
    """The two levels must not be taken for one: d/dx of (d/dy x·y at y = 4) is 1."""
    outer = ad.grad(lambda x: ad.grad(lambda y: x * y)(4.0) * x)
    assert float(outer(3.0)) == 6.0
    held = vector(4.0)
    assert ad.grad(lambda x: (ad.grad(lambda y: (x * y).sum())(held) * x).sum())(
        vector(3.0)
    ).tolist() == [6.0]


def test_grad_through_a_recorded_graph() -> None:
    """A gradient penalty: the gradient for x is trained through, for w."""
    device = ad.Autodiff(DEVICE)
    w = pt.asarray([2.0, 3.0], device=device).require_grad()
    x = pt.asarray([1.0, -1.0], device=device)
    slope = ad.grad(lambda x: ((w * x) ** 2).sum())(x)
    penalty = (slope**2).sum()  # slope is 2·w²·x
    gradient = w.grad(penalty.backward())
    assert gradient is not None
    np.testing.assert_allclose(gradient.numpy(), 16 * np.array([8.0, 27.0]))


def test_a_tracked_tensor_that_is_no_argument_is_refused() -> None:
    w = pt.asarray([2.0], device=ad.Autodiff(DEVICE)).require_grad()
    with pytest.raises(pt.GradientError, match="tracked tensor that is not an argument") as error:
        ad.grad(lambda x: (w * x).sum())(vector(1.0))
    assert "x.to_device(Autodiff(Numpy(float='float64')))" in str(error.value)


def test_a_tensor_from_a_level_further_out_is_refused() -> None:
    outer = ad.Autodiff(ad.Autodiff(DEVICE))
    w = pt.asarray([2.0], device=outer).require_grad()
    with pytest.raises(pt.GradientError, match="a tensor of an outer device"):
        ad.grad(lambda x: (w * x).sum())(vector(1.0))
    moved = pt.asarray([2.0], device=ad.Forward(ad.Forward(DEVICE)))
    with pytest.raises(pt.GradientError, match="a tensor of an outer device"):
        ad.jvp(lambda x: x * moved, (vector(1.0),), (vector(1.0),))


def test_grad_records_inside_no_grad() -> None:
    with ad.no_grad():
        assert ad.grad(cube)(vector(1.0)).tolist() == [3.0]


def test_vjp() -> None:
    x, y = vector(1.0, 2.0), vector(3.0, 4.0)
    value, pull = ad.vjp(lambda x, y: {"product": x * y, "sum": (x + y,)}, x, y)
    assert value["product"].tolist() == [3.0, 8.0]
    assert value["product"].device is DEVICE
    one, zero = vector(1.0, 1.0), vector(0.0, 0.0)
    for _ in range(2):
        assert [g.tolist() for g in pull({"product": one, "sum": (zero,)})] == [
            [3.0, 4.0],
            [1.0, 2.0],
        ]
    assert [g.tolist() for g in pull({"product": zero, "sum": (one,)})] == [[1.0, 1.0], [1.0, 1.0]]


def test_vjp_refuses_a_cotangent_of_another_structure() -> None:
    _, pull = ad.vjp(lambda x: (x, x), vector(1.0))
    with pytest.raises(pt.TreeError, match="structure"):
        pull(vector(1.0))


def test_one_output_twice_adds_up() -> None:
    def function(x: Tensor[Any]) -> Any:
        y = x * 2.0
        return y, y

    _, pull = ad.vjp(function, vector(1.0))
    assert pull((vector(1.0), vector(10.0)))[0].tolist() == [22.0]


def test_jvp() -> None:
    x, t = vector(*X), vector(1.0, 0.0, 10.0)
    value, moved = ad.jvp(cube, (x,), (t,))
    assert float(value) == 36.0
    assert float(moved) == 273.0
    assert moved.device is DEVICE


def test_jvp_of_trees_and_constants() -> None:
    def function(pair: Any, z: Tensor[Any]) -> Any:
        return {"a": pair[0] * pair[1] + z, "b": z * 2.0, "n": pair[0].argmax()}

    value, moved = ad.jvp(
        function,
        ([vector(2.0), vector(3.0)], vector(4.0)),
        ([vector(1.0), None], None),
    )
    assert value["a"].tolist() == [10.0]
    assert moved["a"].tolist() == [3.0]
    assert moved["b"].tolist() == [0.0]
    assert moved["n"] is None


def test_jvp_refuses_a_tangent_that_does_not_fit() -> None:
    with pytest.raises(pt.ShapeError, match="a tangent does not fit"):
        ad.jvp(cube, (vector(1.0),), (vector(1.0, 2.0),))
    with pytest.raises(pt.TreeError, match="structure"):
        ad.jvp(cube, (vector(1.0),), ())


def test_modes_nest_in_each_other() -> None:
    x, t = vector(*X), vector(1.0, 1.0, 1.0)
    forward_over_reverse = ad.jvp(ad.grad(cube), (x,), (t,))[1]
    reverse_over_forward = ad.grad(lambda x: ad.jvp(cube, (x,), (t,))[1])(x)
    forward_twice = ad.jvp(lambda x: ad.jvp(lambda x: x**3, (x,), (t,))[1], (x,), (t,))[1]
    for found in (forward_over_reverse, reverse_over_forward, forward_twice):
        assert found.device is DEVICE
        assert found.tolist() == [6.0, 12.0, 18.0]


def test_jvp_does_not_confuse_its_levels() -> None:
    one = vector(1.0)

    def outer(x: Tensor[Any]) -> Tensor[Any]:
        return ad.jvp(lambda y: x * y, (vector(4.0),), (one,))[1] * x

    assert ad.jvp(outer, (vector(3.0),), (one,))[1].tolist() == [6.0]


def test_jacobian() -> None:
    w = pt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = ad.jacobian(lambda x: w @ x)(vector(*X))
    assert found.shape == (2, 3)
    np.testing.assert_array_equal(found.numpy(), w.numpy())


def test_jacobian_of_trees() -> None:
    found = ad.jacobian(lambda p: {"y": p[0] * p[1], "n": p[0].argmax()})(
        [vector(2.0, 3.0), vector(5.0)]
    )
    assert found["n"] is None
    np.testing.assert_array_equal(found["y"][0].numpy(), [[5.0, 0.0], [0.0, 5.0]])
    np.testing.assert_array_equal(found["y"][1].numpy(), [[2.0], [3.0]])


def test_jacobian_of_an_empty_value() -> None:
    found = ad.jacobian(lambda x: x[:0])(vector(*X))
    assert found.shape == (0, 3)


def test_hessian() -> None:
    found = ad.hessian(lambda x: (x[0] * x[1]) ** 2)(vector(2.0, 3.0))
    np.testing.assert_allclose(found.numpy(), [[18.0, 24.0], [24.0, 8.0]])


def test_a_hessian_vector_product_is_the_product_with_the_hessian() -> None:
    def function(tree: Any, y: Tensor[Any]) -> Tensor[Any]:
        return (tree["w"].sin() * y).sum() ** 2 + (y**3).sum()

    w, y, v = vector(0.3, 0.7), vector(1.0, -2.0), vector(0.5, 0.25)
    both = ad.hvp(function, ({"w": w}, y), ({"w": v}, None))
    wanted = ad.hessian(lambda w: function({"w": w}, y))(w).numpy() @ v.numpy()
    np.testing.assert_allclose(both[0]["w"].numpy(), wanted, rtol=1e-14)
    across = ad.jacobian(lambda w: ad.grad(function, 1)({"w": w}, y))(w).numpy() @ v.numpy()
    np.testing.assert_allclose(both[1].numpy(), across, rtol=1e-14)
    linear = ad.hvp(lambda x: (x * 2.0).sum(), (w,), (v,))
    assert linear[0].tolist() == [0.0, 0.0]


def test_what_was_computed_without_the_arguments_is_refused() -> None:
    x = vector(1.0, 2.0)
    for call in (
        lambda: ad.grad(lambda _: x.sum())(x),
        lambda: ad.grad(lambda x: pt.asarray(x.numpy()).sum())(x),
        lambda: ad.vjp(lambda x: x.inner() * 2.0, x),
        lambda: ad.jvp(lambda x: x.inner() * 2.0, (x,), (x,)),
        lambda: ad.jacobian(lambda x: x.inner() * 2.0)(x),
        lambda: ad.grad(lambda x, y: (pt.asarray(y.numpy()) * x).sum(), 1)(x, x),
        lambda: ad.jvp(lambda y, x: pt.asarray(y.numpy()) * x, (x,), (x,), kwargs={"x": x}),
    ):
        with pytest.raises(pt.GradientError, match="computed without the arguments"):
            call()
    # Of a value that the arguments are in, zeros are the truth.
    assert ad.grad(lambda x: (x * 0.0).sum())(x).tolist() == [0.0, 0.0]
    assert ad.grad(lambda x: x.detach().sum())(x).tolist() == [0.0, 0.0]
    assert not ad.hessian(lambda x: (x * 3.0).sum())(x).numpy().any()


def test_the_derivative_by_an_argument_that_is_not_used_is_zeros() -> None:
    x, y = vector(1.0, 2.0), vector(3.0, 4.0, 5.0)

    def square(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
        assert y.sum().item()
        return (x * x).sum()

    def same(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
        return pt.concat([x, x])

    def unread(x: Tensor[Any], y: Tensor[Any]) -> Tensor[Any]:
        return (x * x).sum()

    assert ad.grad(unread, 1)(x, y).tolist() == [0.0] * 3
    assert ad.grad(lambda y, x: (x * x).sum())(y, x=x).tolist() == [0.0] * 3
    with pytest.raises(pt.GradientError, match="computed without"):
        ad.grad(square, 1)(x, y)
    for mode in ("rows", "columns"):
        assert ad.jacobian(same, 1, mode=mode)(x, y).numpy().shape == (4, 3)
        assert not ad.jacobian(same, 1, mode=mode)(x, y).numpy().any()
    assert ad.jvp(same, (x, y), (None, y))[1].tolist() == [0.0] * 4
    assert ad.jvp(lambda y, x: x * 2.0, (y,), (y,), kwargs={"x": x})[1].tolist() == [0.0] * 2
    assert not ad.hessian(unread, 1)(x, y).numpy().any()

    def outer(x: Tensor[Any]) -> Tensor[Any]:  # what an inner transform reads is not read here
        return ad.grad(unread, 1)(x, y).sum() + (x * x).sum()

    assert ad.grad(outer)(x).tolist() == [2.0, 4.0]


def test_nothing_to_differentiate_names_what_was_found() -> None:
    given = {"a": pt.asarray([1]), "b": (True, None), "c": "x", "d": 3}
    with pytest.raises(
        pt.GradientError, match=r"dict of a: int64, b\.0: bool, b\.1: NoneType, c: str"
    ):
        ad.grad(lambda x: x["a"].sum())(given)
    with pytest.raises(pt.GradientError, match="got list of nothing"):
        ad.grad(lambda x: pt.asarray(1.0))([])


def test_gradcheck_accepts_what_is_right() -> None:
    assert ad.gradcheck(cube, (vector(*X),), order=3)
    assert ad.gradcheck(cube, vector(*X))
    narrow = pt.asarray([1.0, 2.0], dtype=pt.float32)
    assert ad.gradcheck(lambda x: x.tanh() * x, (narrow,), order=2)


def test_gradcheck_names_the_worst_element() -> None:
    @ad.custom_gradient
    def wrong(x: Tensor[Any]) -> Any:
        return x * x, lambda g: g * x * pt.asarray([2.0, 2.5, 2.0], device=g.device)

    with pytest.raises(pt.GradientError) as error:
        ad.gradcheck(lambda y, x: (y * wrong(x)).sum(), (vector(1.0, 1.0, 1.0), vector(*X)))
    text = str(error.value)
    assert "derivative of order 1 differs at argument 1, element (1,)" in text
    assert isinstance(error.value.got, float)


def test_gradcheck_shows_entries_of_the_jacobian() -> None:
    @ad.custom_gradient
    def wrong(x: Tensor[Any]) -> Any:
        return x * x, lambda g: g * x * pt.asarray([2.0, 3.0, 2.0], device=g.device)

    for function, at in (
        (wrong, "output 0, element (1,)"),
        (lambda x: (x, {"y": wrong(x)}), "output 1, element (1,)"),
        (lambda x: wrong(x).broadcast_to(2, 3), "output 0, element (0, 1)"),
    ):
        with pytest.raises(pt.GradientError) as error:
            ad.gradcheck(function, (vector(1.0, 1.0, 1.0),))
        text = str(error.value)
        assert f"at argument 0, element (1,), of {at}: got 3.0, expected" in text
        assert float(text.partition("expected ")[2].split()[0]) == pytest.approx(2.0)
        assert "weights" not in text


def test_gradcheck_finds_a_wrong_second_derivative() -> None:
    @ad.custom_gradient
    def wrong(x: Tensor[Any]) -> Any:
        frozen = (x * 2.0).detach()
        return x * x, lambda g: g * frozen

    ad.gradcheck(lambda x: wrong(x).sum(), (vector(1.0),))
    with pytest.raises(pt.GradientError, match="derivative of order 2"):
        ad.gradcheck(lambda x: wrong(x).sum(), (vector(1.0),), order=2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ad.grad(lambda x: x * 2.0)(vector(1.0, 2.0)), pt.ShapeError, "not one element"),
        (lambda: LOOSE.grad(lambda x: 3.0)(vector(1.0)), pt.GradientError, "not a Float tensor"),
        (lambda: ad.grad(cube)(pt.asarray([1])), pt.GradientError, "nothing to differentiate"),
        (lambda: ad.grad(cube, 1)(vector(1.0)), pt.GradientError, "no such argument"),
        (lambda: ad.vjp(cube), pt.GradientError, "nothing to differentiate"),
        (
            lambda: ad.gradcheck(lambda x: x > 0, (vector(1.0),)),
            pt.GradientError,
            "no Float tensor",
        ),
        (
            lambda: ad.grad(lambda x, y: x + y)(vector(1.0), pt.asarray([1.0], device=Numpy())),
            pt.DeviceError,
            "different devices",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("transform", [ad.jvp, ad.hvp])
def test_a_bare_tensor_is_no_tuple_of_arguments(transform: Any) -> None:
    x = pt.ones(1)
    for primals, tangents in ((x, x), ((x,), x)):
        with pytest.raises(pt.GradientError, match=r"as a tuple: got Tensor.*\n.*\(x,\), \(v,\)"):
            transform(lambda x: (x * 2).sum(), primals, tangents)


def test_functions_get_further_arguments_by_name() -> None:
    def cubes(x: Tensor[Any], *, by: Tensor[Any], power: int = 2) -> Tensor[Any]:
        return (x**power * by).sum()

    x = pt.asarray([1.0, 2.0], device=Numpy(float="float64"))
    named = {"by": x * 10.0, "power": 3}
    value, pull = ad.vjp(cubes, x, kwargs=named)
    assert (value.item(), pull(value.zeros() + 1)[0].tolist()) == (170.0, [30.0, 240.0])
    assert ad.jvp(cubes, (x,), (x,), kwargs=named)[1].item() == 510.0
    assert ad.hvp(cubes, (x,), (x,), kwargs=named)[0].tolist() == [60.0, 480.0]
    assert ad.gradcheck(cubes, x, order=2, kwargs=named)


def test_the_numbers_of_a_check_of_one_output_are_its_slopes() -> None:
    x = pt.asarray([3.0], device=pt.Numpy(float="float64"))
    wrong = ad.custom_gradient(lambda x: ((x * x).sum(), lambda g: g * x))
    with pytest.raises(pt.GradientError, match=r"got 3\.0, expected (6\.0|5\.9)") as caught:
        ad.gradcheck(wrong, (x,))
    assert "weights" not in str(caught.value)
