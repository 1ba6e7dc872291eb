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
    def places(mask: Tensor[Any]) -> Tensor[Any]:
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
