"""Graphs and threads: made at once, joined, gone backwards over at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import phlox_autodiff as ad
import phlox_tensor as pt
from phlox_tensor import Backend, GradientError, Numpy, Tensor

INNER = Numpy(float="float64")
DEVICE = ad.Autodiff(INNER)
BALANCED = ad.Autodiff(INNER, checkpointing=ad.BalancedCheckpointing())


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def leaf(*values: float, device: Backend = DEVICE) -> Tensor[Any]:
    return pt.asarray(list(values), device=device).require_grad()


def grad_of(w: Tensor[Any], grads: Any) -> Tensor[Any]:
    """A gradient that has to be there."""
    found = w.grad(grads)
    assert found is not None
    return found


def train(rounds: int) -> list[float]:
    w = leaf(1.0, -2.0, 0.5)
    for _ in range(rounds):
        loss = ((w.tanh() - 0.25) ** 2).sum()
        gradient = w.grad(loss.backward())
        assert gradient is not None
        w = pt.asarray(w.numpy() - 0.1 * gradient.numpy(), device=DEVICE).require_grad()
    found: list[float] = w.tolist()
    return found


def test_threads_train_at_once() -> None:
    alone = train(200)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(train, [200] * 8):
            assert found == alone


def test_a_graph_of_one_thread_is_used_in_another() -> None:
    w = leaf(1.0, 2.0)
    with ThreadPoolExecutor(1) as pool:
        middle = pool.submit(w.exp).result()
        loss = middle.sin().sum()
        grads = pool.submit(loss.backward).result()
    expected = np.cos(np.exp([1.0, 2.0])) * np.exp([1.0, 2.0])
    np.testing.assert_allclose(grad_of(w, grads).numpy(), expected)


def _at_once(*passes: Callable[[], Any]) -> list[Any]:
    """What each gives, or the error that it raises, when they start together."""
    start = Barrier(len(passes))

    def run(one: Callable[[], Any]) -> Any:
        start.wait()
        try:
            return one()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(passes)) as pool:
        return list(pool.map(run, passes))


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("keep", [(False, False), (True, False), (True, True)])
def test_two_threads_in_one_graph_work_or_are_told_why(keep: tuple[bool, bool]) -> None:
    worked = 0
    for _ in range(30):
        w = leaf(1.0, 2.0)
        shared = w
        for _ in range(30):
            shared = (shared + w).sin()
        losses = [(shared * 2.0).sum(), (shared * 3.0).sum()]
        passes = [
            partial(loss.backward, retain_graph=k) for loss, k in zip(losses, keep, strict=True)
        ]
        for loss, found in zip(losses, _at_once(*passes), strict=True):
            if isinstance(found, Exception):
                assert isinstance(found, GradientError), repr(found)
                assert "backward pass" in str(found)
                continue
            worked += 1
            assert np.isfinite(grad_of(w, found).numpy()).all()
            assert loss.requires_grad
    assert worked >= (60 if all(keep) else 30)


def test_threads_go_backwards_over_graphs_that_share_leaves() -> None:
    w = leaf(1.0, 2.0)
    losses = [(w * float(i)).sin().sum() for i in range(8)]
    expected = [float(i) * np.cos(i * w.numpy()) for i in range(8)]
    for found, value in zip(_at_once(*[loss.backward for loss in losses]), expected, strict=True):
        np.testing.assert_allclose(grad_of(w, found).numpy(), value)


def grown(w: Tensor[Any], factor: float, depth: int = 25) -> Tensor[Any]:
    """A long branch of a graph."""
    x = w
    for _ in range(depth):
        x = ((x * factor).sin() + w).tanh()
    return x


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("device", [DEVICE, BALANCED], ids=["kept", "balanced"])
def test_branches_of_several_threads_are_joined_to_one_graph(device: Backend) -> None:
    factors = [0.5, 1.5, 2.0, 2.5]
    w = leaf(1.0, 2.0, device=device)
    alone: Any = sum((grown(w, f).sum() for f in factors[1:]), start=grown(w, factors[0]).sum())
    want = grad_of(w, alone.backward())
    for _ in range(10):
        first, *rest = _at_once(*[partial(grown, w, f) for f in factors])
        joined: Any = sum((branch.sum() for branch in rest), start=first.sum())
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(joined.backward).result()
        # Which branch is added first depends on whose steps came last.
        np.testing.assert_allclose(grad_of(w, found).numpy(), want.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("hasty")
def test_a_branch_that_another_thread_grows_on_joins_where_it_stood() -> None:
    """One thread goes on from the middle of the other's graph; both ends make the loss."""
    w = leaf(0.5, 1.5)
    middle = grown(w, 1.0)
    want = grad_of(w, (grown(middle, 2.0) * grown(middle, 3.0)).sum().backward())
    for _ in range(10):
        middle = grown(w, 1.0)
        ends = _at_once(partial(grown, middle, 2.0), partial(grown, middle, 3.0))
        loss = (ends[0] * ends[1]).sum()
        found = grad_of(w, loss.backward())
        np.testing.assert_allclose(found.numpy(), want.numpy(), rtol=1e-12, atol=1e-15)
        with pytest.raises(GradientError, match="backward pass"):
            ends[0].sum().backward()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("device", [DEVICE, BALANCED], ids=["kept", "balanced"])
def test_passes_at_once_over_one_graph_that_keep_it_all_work(device: Backend) -> None:
    w = leaf(0.5, 1.5, device=device)
    loss = grown(w, 2.0).sum()
    want = grad_of(w, loss.backward(retain_graph=True)).numpy()
    for found in _at_once(*[partial(loss.backward, retain_graph=True)] * 6):
        np.testing.assert_array_equal(grad_of(w, found).numpy(), want)
    np.testing.assert_array_equal(grad_of(w, loss.backward()).numpy(), want)


@pytest.mark.usefixtures("hasty")
def test_one_of_several_passes_at_once_frees_the_graph_and_the_others_say_so() -> None:
    told = 0
    for _ in range(10):
        w = leaf(0.5, 1.5)
        loss = grown(w, 2.0).sum()
        want = grad_of(w, loss.backward(retain_graph=True)).numpy()
        found = _at_once(*[loss.backward] * 4)
        worked = [each for each in found if not isinstance(each, Exception)]
        assert len(worked) == 1
        np.testing.assert_array_equal(grad_of(w, worked[0]).numpy(), want)
        for error in found:
            if isinstance(error, Exception):
                assert isinstance(error, GradientError), repr(error)
                assert "retain_graph=True" in str(error) or "another backward pass" in str(error)
                told += 1
    assert told == 30


def test_gradients_of_several_threads_add_up() -> None:
    w = leaf(1.0, 2.0)
    parts = _at_once(*[(w * float(i)).sin().sum().backward for i in range(4)])
    total = parts[0] + parts[1] + parts[2] + parts[3]
    want = sum(i * np.cos(i * w.numpy()) for i in range(4))
    np.testing.assert_allclose(grad_of(w, total).numpy(), want, rtol=1e-14)


def test_no_grad_in_one_thread_leaves_others_alone() -> None:
    inside, checked = Barrier(2), Barrier(2)
    w = leaf(1.0)

    def pause() -> bool:
        with ad.no_grad():
            inside.wait()
            recorded = (w * w).requires_grad
            checked.wait()
        return recorded

    with ThreadPoolExecutor(1) as pool:
        paused = pool.submit(pause)
        inside.wait()
        here = (w * w).requires_grad
        checked.wait()
    assert here
    assert not paused.result()
