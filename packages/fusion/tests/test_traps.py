"""Nothing goes stale: what a replay would leave out is followed or refused."""

from __future__ import annotations

import gc
import os
import random
import time
import tracemalloc
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_tensor import Cell, CompileError, Numpy, Tensor

ONE = pt.ones(1)
HERE = r"test_traps\.py:\d+"


def test_reading_a_value_is_refused_with_the_line() -> None:
    for read in (
        lambda x: x * x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * float(x.sum()),
        lambda x: x + x.numpy(),
        lambda x: pt.asarray(x.tolist()),
        lambda x: pt.full((2,), 1.0) * int(x.sum()),
        lambda x: x.to_device(Numpy(float="float64")),
    ):
        fast: Any = compile(read)
        with pytest.raises(CompileError, match=HERE) as caught:
            fast(pt.ones(2))
        assert "where" in str(caught.value)


def test_sizes_that_depend_on_values_are_refused() -> None:
    with pytest.raises(CompileError, match="depends on values"):
        compile(lambda x: pt.nonzero(x > 0))(pt.ones(2))


def test_host_randomness_is_found() -> None:
    for _ in range(2):
        with pytest.raises(CompileError, match="draws random numbers of the host"):
            compile(lambda x: x * random.random())(pt.ones(1))


def test_host_data_that_changes_is_found() -> None:
    rng = np.random.default_rng(0)
    noise = compile(lambda x: x + pt.asarray(rng.normal(size=2)).astype(pt.float32))
    with pytest.raises(CompileError, match="draws random numbers of the host"):
        noise(pt.ones(2))
    # In float32, seconds since the machine began are the same ones for a millisecond.
    fast = compile(lambda x: x + pt.asarray([time.perf_counter_ns() % 1e6]).astype(pt.float32))
    fast(pt.ones(2))
    with pytest.raises(CompileError, match="host data"):
        fast(pt.ones(2))
    same = compile(lambda x: x + pt.asarray([1.0, 2.0]))
    assert [same(pt.ones(2)).tolist() for _ in range(4)] == [[2.0, 3.0]] * 4


def test_no_second_copy_of_host_data_is_kept() -> None:
    def plus_many(x: Tensor) -> Tensor:
        return x + pt.asarray(np.ones(1 << 20, np.float32))

    x = pt.ones(1)
    tracemalloc.start()
    try:
        fast = compile(plus_many)
        for _ in range(3):
            fast(x)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert fast.versions == 1
    assert 1 << 22 < held < 6 << 20  # the constant, and what is made once in a process


def test_a_tensor_from_outside_that_changes_is_found() -> None:
    fast = compile(lambda x: x * time.perf_counter())
    fast(pt.ones(1))
    with pytest.raises(CompileError, match=HERE):
        fast(pt.ones(1))
    tensors = iter([pt.ones(1), pt.zeros(1)])
    with pytest.raises(CompileError, match="an iterator from outside"):
        compile(lambda x: x * next(tensors))(pt.ones(1))


def test_a_rebound_closure_is_followed() -> None:
    w = pt.ones(1)
    fast = compile(lambda x: x * w)
    for i in range(8):
        if i % 4 == 0:
            w = pt.asarray([float(i + 1)])
        assert fast(pt.ones(1)).item() == w.item()
    assert fast.versions == 2


SCALE = 2.0


def test_a_rebound_global_is_followed() -> None:
    global SCALE  # noqa: PLW0603 - what the test is about
    fast = compile(lambda x: x * SCALE)
    for i in range(8):
        SCALE = 2.0 if i < 4 else 3.0
        assert fast(pt.ones(1)).item() == SCALE


def test_a_changed_closure_is_refused() -> None:
    count = 0
    seen: list[Tensor] = []

    def counting(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return x

    def listing(x: Tensor) -> Tensor:
        seen.append(x)
        return x

    class Holder:
        last: Any = None

        def __init__(self) -> None:
            self.model = pt.ones(1)

        def step(self, x: Tensor) -> Tensor:
            self.model = self.model + x
            return self.model

    for function, name in ((counting, "count"), (listing, "seen"), (Holder().step, "self.model")):
        with pytest.raises(CompileError, match=name):
            compile(function)(pt.ones(1))


class Account:
    def __init__(self) -> None:
        self.last: Any = 0.0
        self.parts = {"loss": 0.0}


def test_what_a_function_does_to_containers_and_objects_is_refused() -> None:
    kept: list[Any] = [None]
    table: dict[str, Any] = {}
    account = Account()

    def in_list(x: Tensor) -> Tensor:
        kept[0] = x
        return x

    def in_dict(x: Tensor) -> Tensor:
        table["x"] = x
        return x

    def in_object(x: Tensor) -> Tensor:
        account.last = x
        return x

    def in_argument(x: list[Tensor]) -> Tensor:
        x.append(x[0] * 2)
        return x[0]

    def in_given(x: Tensor, given: Account) -> Tensor:
        given.last = 1.0
        return x

    x = pt.ones(1)
    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (in_list, (x,), r"kept\[0\] holds something else"),
        (in_dict, (x,), "table holds something else"),
        (in_object, (x,), r"account\.last holds something else"),
        (in_argument, ([x],), "a container among the arguments"),
        (in_given, (x, Account()), r"Account\.last among the arguments"),
    ]
    for function, args, told in cases:
        with pytest.raises(CompileError, match=told):
            compile(function)(*args)


def test_a_method_that_sets_an_attribute_is_told_how_to_return_it() -> None:
    class Wrong:
        def __init__(self) -> None:
            self.m = pt.ones(1)

        @compile
        def step(self, x: Tensor) -> Tensor:
            self.m = self.m + x
            return self.m * 2

    class Right:
        def __init__(self) -> None:
            self.m = pt.ones(1)
            self.fast = compile(self.step)

        def step(self, m: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            m = m + x
            return m, m * 2

        def run(self, x: Tensor) -> Tensor:
            self.m, out = self.fast(self.m, x)
            return out

    with pytest.raises(CompileError) as caught:
        Wrong().step(pt.ones(1))
    assert "self.fast = px.compile(self.step)" in str(caught.value.hint)
    assert "self.m, out = self.fast(self.m, x)" in str(caught.value.hint)
    item = Right()
    assert [item.run(pt.ones(1)).item() for _ in range(4)] == [4.0, 6.0, 8.0, 10.0]


def test_an_object_may_remember_what_it_finds_out() -> None:
    class Sizes:
        @cached_property
        def most(self) -> int:
            return 3

    sizes = Sizes()
    fast = compile(lambda x: x * sizes.most)
    assert [fast(pt.ones(1)).item() for _ in range(4)] == [3.0] * 4


TABLES: dict[str, Tensor] = {}
NOTES: list[Tensor] = []


def table_of(name: str) -> Tensor:
    if name not in TABLES:
        TABLES[name] = pt.ones(3) * 2
    return TABLES[name]


def noted() -> Tensor:
    NOTES.append(pt.ones(3) * len(NOTES))
    return NOTES[-1]


def test_a_helper_may_remember_a_tensor_that_it_makes() -> None:
    TABLES.clear()
    fast = compile(lambda x: x * table_of("a"))
    assert [fast(pt.ones(3) * i).tolist() for i in range(5)] == [[2.0 * i] * 3 for i in range(5)]
    assert (fast.versions, len(fast.sources)) == (1, 1)
    TABLES["a"] = pt.ones(3) * 5
    assert [fast(pt.ones(3)).tolist() for _ in range(3)] == [[5.0] * 3] * 3


def test_a_helper_that_remembers_another_tensor_each_time_is_refused() -> None:
    NOTES.clear()
    fast = compile(lambda x: x * noted())
    assert [fast(pt.ones(3)).tolist() for _ in range(2)] == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(CompileError, match="two runs"):
        fast(pt.ones(3))


def test_an_argument_that_is_also_captured_is_two_things() -> None:
    w = pt.ones(1)
    fast = compile(lambda x: x * 10 + w)
    for _ in range(3):
        assert fast(w).item() == 11.0
    assert fast(pt.asarray([2.0])).item() == 21.0


def test_one_tensor_given_twice_is_not_two() -> None:
    fast = compile(lambda x, y: x * 10 + y)
    a, b = pt.asarray([1.0]), pt.asarray([2.0])
    for x, y in [(a, a), (a, a), (a, a), (a, b), (b, a), (a, b), (b, b)]:
        assert fast(x, y).item() == x.item() * 10 + y.item()


def test_views_share_data_and_stay_apart() -> None:
    fast = compile(lambda x, y: (x + 1, y * 2))
    base = pt.arange(6).astype(pt.float32)
    for _ in range(4):
        one, two = fast(base[:3], base[3:])
        assert (one.tolist(), two.tolist()) == ([1.0, 2.0, 3.0], [6.0, 8.0, 10.0])
    turned = compile(lambda x: x @ x)
    square = pt.arange(9).astype(pt.float32).reshape(3, 3)
    for x in (square, square.permute_dims((1, 0)), square, square.flip(), square):
        assert turned(x).tolist() == (x @ x).tolist()


def test_what_comes_in_may_go_out() -> None:
    fast = compile(lambda x, y: (x, y, x + y, x))
    for i in range(4):
        a, b = pt.asarray([float(i)]), pt.asarray([1.0])
        assert [t.item() for t in fast(a, b)] == [i, 1.0, i + 1.0, i]


def test_results_returned_twice() -> None:
    def function(x: Tensor, n: int) -> Any:
        y, k = x * 2, n + 1
        return y, [y, {"again": y}], (k, k), y.reshape(1), y

    fast = compile(function)
    for i in range(5):
        one, (two, inside), counts, view, last = fast(pt.asarray([float(i)]), i)
        assert counts == (i + 1, i + 1)
        for each in (one, two, inside["again"], view, last):
            assert each.tolist() == [2.0 * i]
        # One object is one object again, as the function gives it.
        assert one is two is inside["again"] is last
    assert fast.versions == 1


def test_an_error_in_a_replay_is_the_functions_own() -> None:
    count = Cell(0)

    @compile
    def pick(x: Tensor, index: Tensor[Any]) -> Tensor:
        count.set(count.get() + 1)
        noise = pt.random.uniform((1,))
        return pt.take(x, index, axis=0) + noise * 0

    x = pt.asarray([1.0, 2.0])
    for _ in range(3):
        pick(x, pt.asarray([1]))
    pt.seed(1)
    with pytest.raises(pt.IndexOutOfRangeError):
        pick(x, pt.asarray([7]))
    assert count.get() == 4  # as often as it was called
    assert pt.random.generator().state() == (1, 1)
    assert pick(x, pt.asarray([0])).tolist() == [1.0]
    assert count.get() == 5


def test_an_index_that_nobody_needs_is_still_checked() -> None:
    fast = compile(lambda x, i: (pt.take(x, i, axis=0), x + 1)[1])
    for _ in range(3):
        fast(pt.ones(2), pt.asarray([1]))
    with pytest.raises(pt.IndexOutOfRangeError):
        fast(pt.ones(2), pt.asarray([2]))


def test_an_error_while_recording_leaves_no_version() -> None:
    def failing(x: Tensor) -> Tensor:
        return x + pt.ones(3)

    fast = compile(failing)
    with pytest.raises(pt.ShapeError):
        fast(pt.ones(2))
    assert fast.versions == 0
    assert fast(pt.ones(3)).tolist() == [2.0] * 3
    assert (pt.ones(2) + 1).sum().item() == 4.0


def test_cells_are_followed() -> None:
    state: Cell[dict[str, Any]] = Cell({"count": 0, "mean": pt.zeros(2)})

    @compile
    def move(x: Tensor) -> Tensor:
        before = state.get()
        count = before["count"] + 1
        mean = before["mean"] + (x - before["mean"]) / count
        state.set({"count": count, "mean": mean})
        return mean

    values = [pt.asarray([float(i), 1.0]) for i in range(6)]
    assert [move(x).tolist() for x in values] == [[i / 2, 1.0] for i in range(6)]
    assert state.get()["count"] == 6
    assert type(state.get()["count"]) is int
    state.set({"count": 0, "mean": pt.zeros(2)})
    assert move(values[4]).tolist() == [4.0, 1.0]
    state.set({"count": 9, "mean": pt.zeros(2), "more": None})
    assert state.get().keys() == {"count", "mean", "more"}
    assert move(values[0])[1].item() == pytest.approx(0.1)


def test_a_cell_may_change_its_structure() -> None:
    last: Cell[Any] = Cell(None)

    @compile
    def difference(x: Tensor) -> Tensor:
        before = last.get()
        last.set(x)
        return x if before is None else x - before

    assert [difference(pt.asarray(float(i * i))).item() for i in range(6)] == [0, 1, 3, 5, 7, 9]
    last.set(None)
    assert difference(pt.asarray(7.0)).item() == 7.0


def test_what_a_cell_holds_is_not_changed_in_place() -> None:
    parts: Cell[list[int]] = Cell([0])
    table: Cell[dict[str, list[int]]] = Cell({"n": [0]})

    def in_list(x: Tensor) -> Tensor:
        parts.get()[0] += 1
        return x * parts.get()[0]

    def in_dict(x: Tensor) -> Tensor:
        table.get()["n"].append(1)
        return x * len(table.get()["n"])

    for function in (in_list, in_dict):
        with pytest.raises(CompileError, match=r"the content of a cell(.|\n)*cell\.set"):
            compile(function)(pt.ones(1))
    assert (parts.get(), table.get()) == ([0], {"n": [0]})

    def and_set(x: Tensor) -> Tensor:
        found = parts.get()
        found[0] += 1
        parts.set(found)
        return x * found[0]

    fast = compile(and_set)
    assert [fast(pt.ones(1)).item() for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_a_result_that_no_replay_can_make_is_refused() -> None:
    class Strange:
        __slots__ = ("value",)

    with pytest.raises(CompileError, match="Strange"):
        compile(lambda x: Strange())(pt.ones(1))


def test_static_arguments_are_compared_by_value() -> None:
    @compile
    def reduce(x: Tensor, how: str, options: dict[str, Any], keep: bool) -> Tensor:
        out = x.sum() if how == "sum" else x.mean()
        return out * 2 if options["double"] and keep else out

    x = pt.asarray([1.0, 3.0])
    for _ in range(3):
        assert reduce(x, "sum", {"double": True}, True).item() == 8.0
        assert reduce(x, "mean", {"double": True}, True).item() == 4.0
        assert reduce(x, "sum", {"double": False}, True).item() == 4.0
        assert reduce(x, "sum", {"double": True}, False).item() == 4.0
    assert reduce.versions == 4


def test_the_default_device_is_followed() -> None:
    fast = compile(lambda: pt.ones(1) + 1)
    for _ in range(3):
        assert fast().dtype == pt.float32
        with pt.use_device(Numpy(float="float64")):
            assert fast().dtype == pt.float64


def test_modes_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def counted(x: Tensor) -> Tensor:
        runs.append(1)
        return x

    monkeypatch.setenv("PHLOX_COMPILE", "off")
    off = compile(counted)
    for _ in range(4):
        off(pt.ones(1))
    assert len(runs) == 4
    monkeypatch.setenv("PHLOX_COMPILE", "sometimes")
    with pytest.raises(CompileError, match="check, off, on"):
        compile(counted)


def test_check_mode_finds_what_slipped_through(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "FAC".lower().upper() + "TOR"  # which no code names
    monkeypatch.setenv("FACTOR", "2.0")
    count = Cell(0)

    def scaled(x: Tensor) -> Tensor:
        count.set(count.get() + 1)
        return x * float(os.environ[name]) + pt.random.uniform((1,)) * 0

    fast = compile(scaled, check=True)
    for _ in range(4):
        assert fast(pt.ones(1)).item() == 2.0
    assert count.get() == 4
    assert pt.random.generator().state()[1] == 4
    monkeypatch.setenv("FACTOR", "3.0")
    with pytest.raises(pt.DisagreementError, match="multiply"):
        fast(pt.ones(1))


def test_a_function_under_a_profile_runs_as_it_is() -> None:
    device = pt.Profile(Numpy())
    fast = compile(lambda x: x + 1)
    for _ in range(3):
        fast(pt.ones(1, device=device))
    with device:
        fast(pt.ones(1, device=device))
    assert "add" in str(device.report())
