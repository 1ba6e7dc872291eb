"""What a function catches and goes on after decides nothing unseen."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_tensor import Cell, CompileError, Tensor

HERE = r"test_caught\.py:\d+"


def test_a_reading_that_the_function_catches_is_refused_all_the_same() -> None:
    def guarded(x: Tensor) -> Tensor:
        try:
            factor = x[0].item()
        except Exception:
            factor = 100.0
        return x * factor

    def suppressed(x: Tensor) -> Tensor:
        factor = 100.0
        with contextlib.suppress(RuntimeError):
            factor = float(x[0])
        return x * factor

    for function in (guarded, suppressed):
        for decorate in (compile, kernel):
            fast: Any = decorate(function)
            for _ in range(2):
                with pytest.raises(CompileError, match=rf"reads a value.*{HERE}"):
                    fast(pt.ones(3) * 2)


def test_a_size_that_values_tell_is_refused_where_the_function_catches_it() -> None:
    def places(mask: Tensor[Any]) -> Any:
        try:
            return pt.nonzero(mask)
        except CompileError:
            return mask

    with pytest.raises(CompileError, match=rf"depends on values.*{HERE}"):
        compile(places)(pt.ones(2) > 0)


def test_state_that_a_kernel_asks_for_is_refused_where_the_function_catches_it() -> None:
    count = Cell(2.0)

    def scaled(x: Tensor) -> Tensor:
        try:
            return x * count.get()
        except CompileError:
            return x * 100

    with pytest.raises(CompileError, match="reads state"):
        kernel(scaled)(pt.ones(3))


def test_an_error_behind_a_reading_is_the_functions_own() -> None:
    def failing(x: Tensor) -> Tensor:
        try:
            return x * x.sum().item()
        except CompileError:
            raise LookupError("nothing there") from None

    with pytest.raises(LookupError, match="nothing there"):
        compile(failing)(pt.ones(2))


def test_an_error_that_values_decide_is_refused_where_the_function_catches_it() -> None:
    def factor(x: Tensor) -> Tensor:
        try:
            return pt.linalg.cholesky(x)
        except pt.ArgumentError:
            return pt.linalg.cholesky(x + pt.eye(2) * 2)

    bad, good = pt.asarray([[1.0, 2.0], [2.0, 1.0]]), pt.eye(2) * 4
    with pytest.raises(CompileError, match=rf"cholesky caught at .*{HERE}(.|\n)*ArgumentError"):
        compile(factor)(bad)
    for check in (False, True):
        fast = compile(factor, check=check)
        for x in (good, good, bad, good, good):
            assert fast(x).tolist() == factor(x).tolist()

    def picked(x: Tensor, i: Tensor[Any]) -> Tensor:
        try:
            return x[i]
        except IndexError:
            return x[0] * 100

    with pytest.raises(CompileError, match="IndexOutOfRangeError"):
        compile(picked)(pt.ones(3), pt.asarray(7))
    numbered: Any = compile(picked)  # of numbers the program asks as it goes on
    for _ in range(3):
        assert [numbered(pt.ones(3), i).item() for i in (7, 1)] == [100.0, 1.0]


def test_an_error_that_follows_from_shapes_and_types_may_be_caught() -> None:
    def of_shapes(x: Tensor) -> Tensor:
        try:
            return x + pt.ones(4)
        except pt.ShapeError:
            return x * 100

    def of_places(x: Tensor) -> Tensor:
        try:
            return x[5]
        except IndexError:
            return x[0] * 100

    def of_types(x: Any) -> Any:
        try:
            return ~x
        except pt.KindError:
            return x * 100

    def of_constants(x: Tensor) -> Tensor:
        try:
            return x + pt.linalg.cholesky(pt.eye(3) * -1)
        except pt.ArgumentError:
            return x * 100

    for function in (of_shapes, of_places, of_types, of_constants):
        fast = compile(function)
        for _ in range(4):
            assert fast(pt.ones(3)).max().item() == 100.0
