"""Blocks that a ``with`` statement opens; alone they would do nothing, and say so."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from threading import Barrier
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError, Numpy, WrongTypeError
from phlox_tensor.blocks import block

WIDE = Numpy(float="float64")
BLOCKS: dict[str, Callable[[], Any]] = {
    "printoptions": lambda: pt.printoptions(precision=2),
    "use_device": lambda: pt.use_device(WIDE),
    "use_generator": lambda: pt.random.use_generator(pt.random.Generator(3)),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_that_nobody_enters_warns_on_the_line_of_the_call(name: str) -> None:
    text = rf"\[{name}\] the block was never entered(.|\n)*hint: with {name}\("
    with pytest.warns(RuntimeWarning, match=text) as found:
        BLOCKS[name]()
    assert [each.filename for each in found] == [__file__]


def _generates() -> Iterator[int]:
    yield 1


async def _waits() -> None:
    pass


class _Later:
    pass


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("late", [_generates, _waits, _Later])
def test_what_works_after_its_call_is_not_decorated(name: str, late: Any) -> None:
    with pytest.raises(WrongTypeError, match=r"would end before(.|\n)*hint: with "):
        BLOCKS[name]()(late)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_in_use_does_not_warn(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with BLOCKS[name]():
            pass
        with ExitStack() as stack:
            stack.enter_context(BLOCKS[name]())
        assert BLOCKS[name]()(lambda x: x + 1)(1) == 2
        gc.collect()


def test_a_block_may_be_entered_again_and_inside_itself() -> None:
    chosen = pt.use_device(WIDE)
    assert "use_device" in repr(chosen)
    for _ in range(2):
        with chosen as outer, chosen as inner:
            assert outer is inner is WIDE
            assert pt.ones(1).device is WIDE
        assert pt.ones(1).device is not WIDE


def test_a_decorated_function_runs_inside_at_each_call() -> None:
    @pt.use_device(WIDE)
    def made(count: int) -> pt.Device:
        return pt.ones(count).device

    assert made(2) is made(3) is WIDE
    assert made.__name__ == "made"
    assert pt.ones(1).device is not WIDE


def test_a_block_ends_where_an_error_leaves_it() -> None:
    seen: list[str] = []

    @block
    def watched() -> Iterator[int]:
        try:
            yield 3
        except ZeroDivisionError:
            seen.append("error")
            raise
        finally:
            seen.append("end")

    with pytest.raises(ZeroDivisionError), watched() as value:
        raise ZeroDivisionError(value)
    assert seen == ["error", "end"]


def test_a_device_that_is_none_is_refused_where_the_block_opens() -> None:
    with pytest.raises(ArgumentError), pt.use_device("nowhere"):
        pass


def test_threads_and_tasks_enter_one_block_at_once() -> None:
    chosen, both = pt.use_device(WIDE), Barrier(2)

    def work(turns: int) -> bool:
        for _ in range(turns):
            with chosen:
                both.wait(10)  # both are inside, and leave in either order
                inside = pt.ones(1).device
            if inside is not WIDE or pt.ones(1).device is WIDE:
                return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (20, 20))) == [True, True]


def test_a_block_is_left_where_it_was_entered() -> None:
    chosen = pt.use_device(WIDE)
    context = copy_context()
    context.run(chosen.__enter__)
    assert pt.ones(1).device is not WIDE
    with pytest.raises(RuntimeError, match="left in another thread or task"):
        chosen.__exit__(None, None, None)
    context.run(chosen.__exit__, None, None, None)
    assert context.run(lambda: pt.ones(1).device) is not WIDE
