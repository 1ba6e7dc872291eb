"""What stands outside of a compiled function is kept by few versions that no call finds again."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_tensor import Tensor


@pytest.mark.filterwarnings("ignore:.*was recorded 10 times")
def test_a_batch_that_is_bound_anew_is_not_kept() -> None:
    batch = pt.zeros(3)
    fast = compile(lambda x: (x * batch).sum())
    seen: list[weakref.ref[Any]] = []
    for i in range(30):
        batch = pt.full((3,), float(i))
        seen.append(weakref.ref(batch))
        assert fast(pt.ones(3)).item() == 3.0 * i
    gc.collect()
    assert sum(each() is not None for each in seen) <= 9  # of 8 versions that ran once
    assert fast.versions <= 8


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
def test_batches_that_come_again_are_versions_of_their_own() -> None:
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    batches = [pt.full((3,), float(i)) for i in range(8)]
    batch = batches[0]

    def body(x: Tensor) -> Tensor:
        note()
        return (x * batch).sum()

    fast = compile(body)
    for _ in range(4):
        for i in range(8):
            batch = batches[i]
            assert fast(pt.ones(3)).item() == 3.0 * i
    assert fast.versions == 8
    assert len(runs) == 3 * 8  # each twice, and compared at its fourth call


def test_a_tensor_that_goes_meanwhile_is_another_version() -> None:
    table = pt.ones(2)
    fast = compile(lambda x: x + table)
    fast(pt.zeros(2))
    table = pt.full((2,), 5.0)
    gc.collect()
    for _ in range(3):
        assert fast(pt.zeros(2)).tolist() == [5.0, 5.0]
    assert fast.versions == 2


@pytest.mark.filterwarnings("error")
def test_the_warning_names_what_changes_outside() -> None:
    batch = pt.zeros(1)
    fast = compile(lambda x: x + batch)
    for _ in range(9):
        batch = pt.ones(1)
        fast(pt.ones(1))
    batch = pt.ones(1)
    with pytest.warns(UserWarning, match="names from outside keep changing: batch, which may"):
        fast(pt.ones(1))


def test_the_warning_names_where_a_number_is_asked() -> None:
    fast = compile(lambda x, n: x * (1.0 if n < 0 else float(n)))
    for n in range(9):
        fast(pt.ones(1), n)
    with pytest.warns(UserWarning, match=r"asks of numbers keep changing \(asked at .*\.py:\d+"):
        fast(pt.ones(1), 9)
