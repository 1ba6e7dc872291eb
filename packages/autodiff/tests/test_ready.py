"""Gradients that are told while the pass goes on."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor

DEVICE = ad.Autodiff(Numpy(float="float64"))


def leaf(*values: float) -> Tensor[Any]:
    return pt.asarray(values, device=DEVICE).require_grad()


def test_gradients_are_told_as_soon_as_they_are_whole() -> None:
    first, second, last, unused = (leaf(1.0, 2.0) for _ in range(4))
    told: list[Any] = []
    went_back: list[str] = []

    def noted(name: str, x: Tensor[Any]) -> Tensor[Any]:
        return ad.register_hook(x, lambda _: went_back.append(name))

    x = noted("first", first * first)
    x = noted("second", x[0:1].sum() * second)  # slices are made whole when they are told
    loss = (noted("last", x * last) + second).sum()

    def tell(name: str) -> Any:
        return lambda grads: told.append(
            (name, len(went_back), [None if g is None else g.tolist() for g in grads])
        )

    ready = [
        ([first], tell("first")),
        ([second, last], tell("both")),
        ([last], tell("last")),
        ([unused, leaf(1.0).detach()], tell("none")),
    ]
    grads = loss.backward(ready=ready)
    assert told == [
        ("none", 0, [None, None]),
        ("last", 1, [[1.0, 2.0]]),
        ("both", 2, [[2.0, 3.0], [1.0, 2.0]]),
        ("first", 3, [[10.0, 0.0]]),
    ]
    assert [grads.get(each) for each in (unused,)] == [None]
    assert first.grad(grads).tolist() == [10.0, 0.0]


@pytest.mark.parametrize("retain", [False, True])
def test_a_function_that_fails_ends_the_pass(retain: bool) -> None:
    w = leaf(1.0)
    loss = (w * w).sum()
    with pytest.raises(ZeroDivisionError):
        loss.backward(retain_graph=retain, ready=[([w], lambda _: 1 // 0)])
    if retain:  # and nobody reads the graph any more
        assert w.grad(loss.backward()).tolist() == [2.0]


def test_leaves_of_devices_outside_and_parts_that_run_again() -> None:
    outside = pt.Checked(DEVICE, Numpy(float="float64"))
    w = pt.asarray([1.0, 2.0], device=DEVICE).require_grad().to_device(outside)
    told: list[Any] = []
    block = ad.checkpoint(lambda x: (x * x).exp())
    block(w).sum().backward(ready=[([w], told.append)])
    ((found,),) = told
    assert found.tolist() == pytest.approx([2.0 * 2.718281828459045, 4.0 * 54.598150033144236])
