"""Graphs of which only parts are tracked: operands without a node, and parents that are gone."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Backend, Numpy, Tensor

INNER = Numpy(float="float64")
PLAIN = ad.Autodiff(INNER)
BALANCED = ad.Autodiff(INNER, checkpointing=ad.BalancedCheckpointing())


class Everything(ad.Checkpointing):
    """Computes again whatever gives one result."""

    def __eq__(self, other: object) -> bool:
        return type(other) is Everything

    def __hash__(self) -> int:
        return 1

    def recomputes(self, op: pt.Op) -> bool:
        return len(op.signature.results) == 1


EVERYTHING = ad.Autodiff(INNER, checkpointing=Everything())
STRATEGIES = pytest.mark.parametrize("device", [BALANCED, EVERYTHING], ids=["balanced", "all"])

Program = Callable[[Tensor[Any], Tensor[Any], Tensor[Any]], Tensor[Any]]
"""Of two leaves and a constant."""


def _constant_beside(w: Any, v: Any, x: Any) -> Any:
    return ((x.exp() * w).tanh() * (x * x).sin() + v).sigmoid().sum()


def _constant_first(w: Any, v: Any, x: Any) -> Any:
    y = x.tanh().exp() * 1.5  # nothing of it is recorded
    return (y.sin() * (y * w).cos() * v.exp()).sum()


def _detached_in_the_middle(w: Any, v: Any, x: Any) -> Any:
    y = (w * x).tanh().exp()
    z = (y.detach().sin() * v).tanh()
    return (z * y.sigmoid()).sum()


def _paused(w: Any, v: Any, x: Any) -> Any:
    with ad.no_grad():
        scale = (w * v).abs().max() + x.abs().sum()
    return ((w / scale).exp() * (v * scale.tanh()).sin()).sum()


def _from_inside(w: Any, v: Any, x: Any) -> Any:
    inner = w.inner().tanh() * 2.0  # of the device inside, lifted as a constant
    return ((inner * v).exp().tanh() * w.sin() * x).sum()


def _one_side(w: Any, v: Any, x: Any) -> Any:
    y = pt.where(x > 0, (w * x).exp(), v.detach().tanh())
    return (y * y.sigmoid()).sum() + v.tanh().sum()


def _contracted(w: Any, v: Any, x: Any) -> Any:
    table = pt.outer(x.tanh(), x.sin())  # tracked by nobody
    return ((table @ (w * v).tanh()).exp() * x).sum()


PROGRAMS: list[Program] = [
    _constant_beside,
    _constant_first,
    _contracted,
    _detached_in_the_middle,
    _from_inside,
    _one_side,
    _paused,
]
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__.strip("_"))


def given(device: Backend) -> tuple[Tensor[Any], Tensor[Any], Tensor[Any]]:
    arrays = np.random.default_rng(0).uniform(0.2, 1.2, (3, 5)) * np.array([1, -1, 1, -1, 1.0])
    w, v, x = (pt.asarray(a, device=device) for a in arrays)
    return w.require_grad(), v.require_grad(), x


def gradients(program: Program, device: Backend, *, retain: bool = False) -> list[Any]:
    w, v, x = given(device)
    loss = program(w, v, x)
    if retain:
        loss.backward(retain_graph=True)
    grads = loss.backward()
    return [None if (g := grads.get(each)) is None else g.numpy() for each in (w, v)]


def same(one: list[Any], other: list[Any]) -> None:
    assert [g is None for g in one] == [g is None for g in other]
    for a, b in zip(one, other, strict=True):
        if a is not None:
            np.testing.assert_array_equal(a, b)


@STRATEGIES
@programs
@pytest.mark.parametrize("retain", [False, True], ids=["once", "retained"])
def test_half_tracked_graphs_have_the_same_gradients(
    program: Program, device: Backend, retain: bool
) -> None:
    found = gradients(program, device, retain=retain)
    same(found, gradients(program, PLAIN))
    assert any(g is not None for g in found)


@programs
def test_gradients_are_those_of_small_steps(program: Program) -> None:
    w, v, x = given(PLAIN)
    if program in (_detached_in_the_middle, _from_inside, _one_side, _paused):
        return _holding_what_is_detached(program)
    ad.gradcheck(lambda w, v: program(w, v, x.inner()), (w.inner(), v.inner()))
    return None


def _one_side_of(w: Any, v: Any, c: dict[str, Any]) -> Any:
    y = pt.where(c["x"] > 0, (w * c["x"]).exp(), c["t"])
    return (y * y.sigmoid()).sum() + v.tanh().sum()


def _holding_what_is_detached(program: Program) -> None:
    """A detached part is a constant: its gradient is that with the part's number in its place."""
    w, v, x = given(PLAIN)
    by_hand: dict[Program, Callable[[Any, Any, Any], Any]] = {
        _detached_in_the_middle: lambda w, v, c: (
            ((c["y"].sin() * v).tanh()) * (w * c["x"]).tanh().exp().sigmoid()
        ).sum(),
        _from_inside: lambda w, v, c: ((c["i"] * v).exp().tanh() * w.sin() * c["x"]).sum(),
        _one_side: _one_side_of,
        _paused: lambda w, v, c: ((w / c["s"]).exp() * (v * c["s"].tanh()).sin()).sum(),
    }
    a, b, c = w.inner(), v.inner(), x.inner()
    held = {
        "x": c,
        "y": (a * c).tanh().exp(),
        "i": a.tanh() * 2.0,
        "t": b.tanh(),
        "s": (a * b).abs().max() + c.abs().sum(),
    }
    want = ad.grad(lambda w, v: by_hand[program](w, v, held), argnums=(0, 1))(a, b)
    for found, other in zip(gradients(program, PLAIN), want, strict=True):
        np.testing.assert_allclose(found, other.numpy(), rtol=1e-12, atol=1e-14)


@STRATEGIES
def test_parents_that_the_program_let_go_are_still_there_for_the_pass(device: Backend) -> None:
    """Names go; what a pass computes again is made of what nodes and recipes hold."""
    want = gradients(_chain, PLAIN)
    w, v, x = given(device)
    loss = _chain(w, v, x)
    alive = weakref.ref(x.primitive.value)
    del x
    gc.collect()
    grads = loss.backward()
    same([w.grad(grads).numpy(), v.grad(grads).numpy()], want)
    del grads, loss
    gc.collect()
    assert alive() is None


def _chain(w: Any, v: Any, x: Any) -> Any:
    y = x * 2.0  # recorded nowhere, and needed by what is computed again
    for _ in range(12):
        y = ((y * w).tanh() + y.sigmoid() * v).sin()
    return y.sum()


@STRATEGIES
def test_a_parent_that_an_earlier_pass_freed_is_missed_with_a_reason(device: Backend) -> None:
    w, v, x = given(device)
    shared = (w * x).tanh().exp()
    first, second = (shared * v).sin().sum(), (shared.sigmoid() * 2.0).sum()
    first.backward()
    with pytest.raises(pt.GradientError, match="retain_graph=True"):
        second.backward()
    shared = (w * x).tanh().exp()
    first, second = (shared * v).sin().sum(), (shared.sigmoid() * 2.0).sum()
    first.backward(retain_graph=True)
    found = w.grad(second.backward())
    want = given(PLAIN)
    y = (want[0] * want[2]).tanh().exp()
    other = want[0].grad((y.sigmoid() * 2.0).sum().backward())
    assert found is not None
    assert other is not None
    np.testing.assert_array_equal(found.numpy(), other.numpy())


@STRATEGIES
def test_checkpointed_functions_of_half_tracked_arguments(device: Backend) -> None:
    def block(w: Any, v: Any, x: Any) -> Any:
        return ((w * x).tanh() * v.detach().exp() + x).sin()

    again = ad.checkpoint(block)
    found = gradients(lambda w, v, x: again(w, v.detach(), x.tanh()).sum(), device)
    same(found, gradients(lambda w, v, x: block(w, v, x.tanh()).sum(), PLAIN))
    assert found[1] is None


@pytest.mark.parametrize("seed", range(12))
@STRATEGIES
def test_any_mixture_of_tracked_and_constant_values_agrees(device: Backend, seed: int) -> None:
    def program(w: Any, v: Any, x: Any) -> Any:
        rng = np.random.default_rng(seed)
        known: list[Any] = [w, v, x, x.cos()]
        for _ in range(25):
            a, b = (known[i] for i in rng.integers(0, len(known), 2))
            way = rng.integers(0, 7)
            if way == 5:
                made = a.detach().tanh()
            elif way == 6:
                with ad.no_grad():
                    made = (a * b).sin()
            else:
                made = (a.sin(), (a * b).tanh(), a + b * 0.5, a.sigmoid() - b, a.exp() * 0.1)[way]
            known.append(made)
        return sum((each.tanh().sum() for each in known[-4:]), start=(known[4] * w * v).sum())

    same(gradients(program, device), gradients(program, PLAIN))
