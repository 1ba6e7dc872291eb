"""Sums over ranks: the same bits for any number of them, and what travels for that."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phlox_tensor import ArgumentError
from phlox_tensor.groups import (
    Solo,
    TreeNode,
    TreeSum,
    all_gather_object,
    broadcast_object,
    nodes_of,
    share_of,
    tree_sum,
)
from tests.distributed.threads import Threads, leaves_of, summed, together

SIZES = (1, 2, 3, 4, 5, 8)


@pytest.mark.parametrize("leaves", [1, 3, 8, 12, 13])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_sums_have_the_same_bits_for_any_number_of_ranks(leaves: int, dtype: str) -> None:
    data = leaves_of(leaves, 101, dtype)
    whole: TreeSum[Any] = TreeSum()
    for leaf in data:
        whole.add(leaf)
    expected = whole.value().tobytes()
    for size in SIZES:
        found = together(size, lambda group: summed(group, data).tobytes())
        assert found == [expected] * size, f"{size} ranks"
    if leaves > 3 and dtype == "float32":
        assert data.sum(axis=0).tobytes() != expected  # another order is another result


@settings(max_examples=25, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=9).filter(any), st.integers(1, 5))
def test_absent_leaves_change_no_bit(there: list[bool], size: int) -> None:
    data = leaves_of(len(there), 5)
    data[:, 0] = -0.0  # which zeros in the place of what is absent would make 0.0
    whole: TreeSum[Any] = TreeSum()
    for here, leaf in zip(there, data, strict=True):
        whole.add(leaf if here else None)
    found = together(size, lambda group: summed(group, data, there).tobytes())
    assert found == [whole.value().tobytes()] * size


@given(st.integers(1, 60), st.integers(1, 12))
def test_ranks_hold_all_leaves_once_in_few_sums(leaves: int, size: int) -> None:
    nodes = [node for rank in range(size) for node in nodes_of(leaves, rank, size)]
    covered = [i for k, n in nodes for i in range(n << k, (n + 1) << k)]
    assert covered == list(range(leaves))
    whole: TreeSum[Any] = TreeSum()
    for node in nodes:
        whole.join(node, 1)
    shares = [share_of(leaves, rank, size) for rank in range(size)]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert all(
        len(nodes_of(leaves, r, size)) <= 2 * len(s).bit_length() for r, s in enumerate(shares)
    )


def test_long_sums_travel_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phlox_tensor._groups.exchange.CHUNK", 16)
    data = leaves_of(6, 1000)

    def run(group: Threads) -> tuple[bytes, int, int]:
        found = summed(group, data).tobytes()
        return found, len(group.calls), sum(size for _, size in group.calls)

    once, *_ = together(1, run)
    for size in (2, 3):
        for found, calls, sent in together(size, run):
            assert found == once[0]
            assert calls == 2 * -(-1000 // (16 * size))
            assert sent <= 4000 * 2.1  # about a reduce-scatter and an all-gather of two rows


def test_threads_of_sums_are_those_that_a_rank_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = import_module("phlox_tensor._groups.exchange")
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    monkeypatch.delenv("PHLOX_NUM_THREADS", raising=False)
    for cores, ranks, threads in ((16, 2, 4), (16, 8, 2), (2, 8, 2), (1, 8, 1), (16, 99, 1)):
        monkeypatch.setattr(exchange, "_CORES", cores)  # of two cores, 8 such ranks have all 16
        assert exchange._threads(ranks) == threads
    monkeypatch.setenv("PHLOX_NUM_THREADS", "3")
    assert exchange._threads(99) == 3


def test_values_of_python_travel() -> None:
    found = together(
        3,
        lambda group: (
            all_gather_object(group, "ab" * group.rank),
            broadcast_object(group, group.rank, 1),
        ),
    )
    assert found == [(["", "ab", "abab"], 1)] * 3
    assert (all_gather_object(Solo(), 5), broadcast_object(Solo(), 5)) == ([5], 5)


def test_sums_of_other_leaves_are_refused() -> None:
    total: TreeSum[int] = TreeSum()
    total.add(1)
    with pytest.raises(ArgumentError, match="leaf 4"):
        total.join(TreeNode(2, 1), 1)
    with pytest.raises(ArgumentError, match="not the sums of this rank"):
        tree_sum(Solo(), 4, np.ones((3, 2)))
