"""Where a tensor stands for a number or an item of a list: its derivative arrives, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import GradientError, Numpy, Tensor

INNER = Numpy("float64")
Function = Callable[[Any], Any]


def rows(x: Tensor[Any]) -> Any:
    return [[x[0], 1], [2.0, x[1]]]


def vector(*values: float) -> Tensor[Any]:
    return pt.asarray(list(values), device=INNER)


# Each with the weights that the sum of its result gives to (x[0], x[1]) at (1.5, -0.5).
OPERANDS: dict[str, tuple[Function, list[float]]] = {
    "at add of a list": (lambda x: pt.zeros(2, device=x.device).at[:].add([x[0], x[1]]), [1, 1]),
    "at set of a list": (
        lambda x: pt.zeros((2, 2), device=x.device).at[:].set([[x[0], 3.0], [x[1], x[0]]]),
        [2, 1],
    ),
    "clip above, 0-d": (lambda x: vector(0.0, 2.0, 3.0).clip(max=x[0]), [2, 0]),
    "clip between": (lambda x: vector(-1.0, 0.0, 2.0).clip(x[1], x[0]), [1, 1]),
    "clip by tensors that broadcast": (lambda x: vector(-1.0, 9.0).clip(min=x[:, None]), [1, 1]),
    "clip itself": (lambda x: x.clip(min=x[1], max=1.0), [0, 1]),
    "full": (lambda x: pt.full((2, 3), x[0]), [6, 0]),
    "full_like": (lambda x: pt.full_like(vector(1.0, 2.0), x[1]), [0, 2]),
    "list": (lambda x: pt.asarray([x[0] * 2, x[1] * 3]), [2, 3]),
    "list of lists and numbers": (lambda x: pt.asarray(rows(x)), [1, 1]),
    "list of vectors": (lambda x: pt.asarray([x, x * 2, [0.0, 1.0]]), [3, 3]),
    "tuple beside an array": (lambda x: pt.asarray((x, np.array([1.0, 2.0]))), [1, 1]),
}

REFUSED: dict[str, Function] = {
    "arange": lambda x: pt.arange(x[0]),
    "from_dlpack": pt.from_dlpack,
    "from_numpy": pt.from_numpy,
    "leaky_relu": lambda x: x.leaky_relu(x[0]),
    "linspace": lambda x: pt.linspace(0.0, x[0], 3),
    "normal": lambda x: pt.random.normal(3, mean=x[0]),
    "pad": lambda x: x.pad([(1, 1)], x[0]),
    "uniform": lambda x: pt.random.uniform(3, high=x[0]),
    "var": lambda x: x.var(correction=x[0]),
}


def directional(function: Function) -> list[float]:
    """The gradient of the sum by forward mode, a direction at a time."""
    x = vector(1.5, -0.5)
    ways = (vector(1.0, 0.0), vector(0.0, 1.0))
    return [float(ad.jvp(lambda x: function(x).sum(), (x,), (way,))[1]) for way in ways]


@pytest.mark.parametrize("name", sorted(OPERANDS))
def test_a_tensor_is_an_operand_in_reverse_mode(name: str) -> None:
    function, weights = OPERANDS[name]
    found = ad.grad(lambda x: function(x).sum())(vector(1.5, -0.5))
    assert found.tolist() == weights


@pytest.mark.parametrize("name", sorted(OPERANDS))
def test_a_tensor_is_an_operand_in_forward_mode(name: str) -> None:
    function, weights = OPERANDS[name]
    assert directional(function) == weights


@pytest.mark.parametrize("name", sorted(OPERANDS))
def test_a_tensor_is_an_operand_of_nested_derivatives(name: str) -> None:
    function, _ = OPERANDS[name]
    inner = ad.grad(lambda x: (function(x) ** 2).sum() / 2)
    twice = ad.grad(lambda x: inner(x).sum())(vector(1.5, -0.5))
    pushed = ad.jvp(inner, (vector(1.5, -0.5),), (vector(1.0, 1.0),))[1]
    assert twice.tolist() == pushed.tolist()
    assert twice.tolist() != [0.0, 0.0]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_tensor_that_has_to_be_a_number_is_refused(name: str) -> None:
    x = vector(1.5, -0.5)
    with pytest.raises(GradientError, match="would be lost") as caught:
        ad.grad(lambda x: REFUSED[name](x).sum())(x)
    assert "detach()" in str(caught.value)
    with pytest.raises(GradientError, match="would be lost"):
        ad.jvp(REFUSED[name], (x,), (x,))
    # Tracked by the outer derivative alone, and read inside the inner one.
    with pytest.raises(GradientError, match="would be lost"):
        ad.grad(lambda x: ad.grad(lambda y: (REFUSED[name](x) * y).sum())(vector(1.0)).sum())(x)


@pytest.mark.parametrize("name", sorted(set(REFUSED) - {"from_dlpack", "from_numpy"}))
def test_a_tensor_without_history_is_read_as_a_number(name: str) -> None:
    plain = REFUSED[name](vector(1.5, -0.5))
    assert isinstance(plain, Tensor)
    shape = ad.grad(lambda x: REFUSED[name](x.detach()).sum() + x.sum())(vector(1.5, -0.5)).shape
    assert shape == (2,)


def test_a_bound_without_history_takes_the_type_of_the_tensor() -> None:
    x = pt.asarray([1.0, 2.0, 3.0], dtype="float32", device=INNER)
    assert x.clip(max=vector(2.0)[0]).dtype is pt.float32
    assert x.clip(max=vector(2.0)[0]).tolist() == [1.0, 2.0, 2.0]


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-1.0, None), (None, 1.0)])
def test_bounds_that_are_tensors_act_as_numbers_do(low: float | None, high: float | None) -> None:
    x = vector(-2.0, 0.5, 1.0, 2.0)
    least, most = [None if b is None else pt.full_like(x, b) for b in (low, high)]
    odd = vector(-2.0, float("nan"), 1.0, float("inf"))
    np.testing.assert_array_equal(odd.clip(least, most).numpy(), odd.clip(low, high).numpy())
    slopes = ad.grad(lambda x: x.clip(least, most).sum())(x)
    assert slopes.tolist() == ad.grad(lambda x: x.clip(low, high).sum())(x).tolist()


def test_bounds_of_integers_may_be_tensors() -> None:
    x, low = pt.asarray([1, 5, 9], device=INNER), pt.asarray([3, 3, 3], device=INNER)
    assert x.clip(low, 7).tolist() == [3, 5, 7]


def test_items_of_a_list_have_to_fit() -> None:
    x = vector(1.0, 2.0)
    with pytest.raises(pt.ShapeError, match="ragged"):
        pt.asarray([x, x[0]])
    with pytest.raises(pt.KindError):
        pt.asarray([x[0], pt.asarray(1, device=INNER)])
    with pytest.raises(pt.KindError):
        pt.asarray([pt.asarray(1, device=INNER), 0.5])
    assert pt.asarray([pt.asarray(1, device=INNER), 2]).dtype is pt.int64
    pair = pt.asarray([1, 2], device=INNER)
    for row in ([3, 0.5], [0.5, 3]):
        with pytest.raises(pt.KindError, match=r"whole number: got 0\.5"):
            pt.asarray([pair, row])
    with pytest.raises(pt.KindError, match="truth value: got 2"):
        pt.asarray([pair > 1, [1, 2]])
    assert pt.asarray([pair, [3.0, 4]]).tolist() == [[1, 2], [3, 4]]


def test_a_history_does_not_end_in_silence_on_the_device_inside() -> None:
    x = vector(1.0, 2.0)
    with pytest.raises(GradientError, match=r"(?s)does not follow it.*hint: x\.detach"):
        ad.grad(lambda x: ((x * 2).to_device(INNER) * x).sum())(x)
    cut = ad.grad(lambda x: ((x * 2).detach().to_device(INNER) * x).sum())(x)
    assert cut.tolist() == [2.0, 4.0]
    w = x.to_device(ad.Autodiff(INNER)).require_grad()
    assert w.to_device(INNER).tolist() == [1.0, 2.0]  # a leaf has no history
    with pytest.raises(GradientError, match="does not follow it"):
        (w * 2).to_device(INNER)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: pt.random.beta((2,), x, 1.0),
        lambda x: pt.random.beta((2,), 1.0, x),
        lambda x: pt.random.gamma((2,), x),
    ],
)
def test_a_parameter_that_has_no_derivative_is_refused(draw: Function) -> None:
    x = vector(0.5, 2.0)
    with pytest.raises(GradientError, match="would be lost"):
        ad.grad(lambda x: draw(x).sum())(x)
    assert draw(x).shape == (2,)


def test_the_scale_of_gamma_has_a_derivative() -> None:
    assert float(ad.grad(lambda x: pt.random.gamma((2,), 2.0, x).sum())(vector(1.0, 2.0)).min()) > 0


@pytest.mark.parametrize("strategy", [True, ad.BalancedCheckpointing])
def test_what_is_no_strategy_is_refused(strategy: Any) -> None:
    with pytest.raises(pt.WrongTypeError, match="checkpointing is no strategy"):
        ad.Autodiff(INNER, checkpointing=strategy)


def test_values_to_fill_with_may_be_tensors_with_gradients() -> None:
    x, mask = pt.asarray([1.0, 2.0, 3.0]), pt.asarray([True, False, True])
    fill: Any = pt.masked_fill

    def total(value: Any) -> Any:
        return (fill(x, mask, value) ** 2).sum()

    assert ad.grad(total)(pt.asarray(5.0)).item() == 20.0
    assert ad.grad(total)(pt.asarray([1.0, 2.0, 4.0])).tolist() == [2.0, 0.0, 8.0]
    assert fill(x, mask, pt.asarray([7.0, 8.0, 9.0])).tolist() == [7.0, 2.0, 9.0]
    with pytest.raises(pt.ShapeError):
        fill(x, mask, pt.ones((2, 3)))
    with pytest.raises(pt.KindError, match="value is of another kind than x"):
        fill(x, mask, pt.asarray([1, 2, 3]))
