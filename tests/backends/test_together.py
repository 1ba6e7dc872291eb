"""One kernel for many arguments does for each what the function does."""

from __future__ import annotations

from typing import Any

import pytest

from phlox import CompileError, Cpu, ones
from phlox_tensor.capture import run_together


def reads(row: Any) -> Any:
    try:
        return row[0] * row[0][0].item()
    except Exception:
        return row[0] * 100


def adds_up(row: Any) -> Any:
    try:
        return row[0] * row[0].sum()
    except Exception:
        return row[0] * 100


def measures(row: Any) -> Any:
    try:
        return row[0] * row[0].shape[0]
    except CompileError:
        return row[0] * 100


@pytest.mark.parametrize("function", [reads, adds_up, measures])
def test_what_a_function_may_not_ask_is_refused_where_it_catches_that(function: Any) -> None:
    rows = [(ones(1 << 18, device=Cpu()),) for _ in range(2)]
    with pytest.raises(CompileError, match="not one kernel"):
        run_together(function, rows)
    doubled = run_together(lambda row: row[0] * 2, rows)
    assert doubled is not None
    assert doubled[0][0].item() == 2.0
