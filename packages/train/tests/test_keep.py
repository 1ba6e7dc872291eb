"""Rules for checkpoints, and which of two values is better."""

from __future__ import annotations

import math
from typing import Any

import pytest

from phlox_tensor import ArgumentError
from phlox_train import Every, KeepBest, KeepLast, Kept
from phlox_train.runs.better import direction, improves
from phlox_train.runs.stop import NoImprovement, Seen


def kept(*values: float) -> list[Kept]:
    return [Kept(step, step, {"valid/loss": value}) for step, value in enumerate(values)]


def test_the_best_are_kept_and_of_equal_ones_the_first() -> None:
    there = [*kept(3.0, 1.0, math.nan, 1.0, 2.0), Kept(5, 5, {})]
    assert KeepBest("valid/loss").wanted(there, {}) == {1}
    assert KeepBest("valid/loss", 3).wanted(there, {}) == {1, 3, 4}
    assert KeepBest("valid/loss", better="higher").wanted(there, {}) == {0}
    assert [k.step for k in KeepBest("valid/loss").ranked(there, {})] == [1, 3, 4, 0, 2]
    assert KeepLast(2).wanted(there, {}) == {4, 5}


def test_nobody_guesses_which_values_are_better() -> None:
    assert direction("valid/loss", None, {}, "best") == "lower"
    assert direction("valid/f1", None, {"valid/f1": "higher"}, "best") == "higher"
    assert direction("valid/loss", "higher", {}, "best") == "higher"
    for known in ({}, {"valid/f1": "none"}):
        with pytest.raises(ArgumentError, match=r'hint: best\(.valid/f1., better="higher"\)'):
            direction("valid/f1", None, known, "best")


def test_a_value_that_is_no_number_never_improves_and_is_improved_on() -> None:
    assert not improves(math.nan, None, "lower")
    assert not improves(math.nan, 1.0, "lower")
    assert improves(5.0, math.nan, "lower")
    assert improves(0.9, 1.0, "lower", 0.05)
    assert not improves(0.9, 1.0, "lower", 0.2)


def test_when_to_save_is_whatever_comes_first() -> None:
    every = Every(steps=10, minutes=1.0)
    assert every.due(10, 0.0, 0)
    assert every.due(1, 60.0, 0)
    assert not every.due(9, 59.0, 5)
    cases: list[dict[str, Any]] = [{}, {"steps": 0}, {"minutes": -1.0}]
    for case in cases:
        with pytest.raises(ArgumentError, match="Every"):
            Every(**case)


def test_patience_begins_behind_the_warm_up() -> None:
    rule = NoImprovement("valid/loss", 2, warm_up=2)
    reasons = [
        rule.reason(Seen(0, epoch, True, 0.0, {"valid/loss": loss}, {}))
        for epoch, loss in enumerate((0.1, 0.1, 5.0, 6.0, 7.0))
    ]
    assert [reason is not None for reason in reasons] == [False] * 4 + [True]
    again = NoImprovement("valid/loss", 2)
    assert again.load_record(rule.into_record()) is again
    assert (again.best, again.since) == (5.0, 2)
