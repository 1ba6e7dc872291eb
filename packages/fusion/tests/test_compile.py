"""Replays give what the function gives, for any form of arguments."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_tensor import Numpy, Tensor


def bits(x: Tensor) -> bytes:
    return x.numpy().tobytes()


def chain(x: Tensor) -> Tensor:
    return ((x * 2 + 1).relu().exp() - x.sum(axis=0)).sin()


def test_a_replay_gives_the_bits_of_the_function() -> None:
    fast = compile(chain)
    for i in range(5):
        x = pt.random.normal((4, 3)) + i
        assert bits(fast(x)) == bits(chain(x))
    assert fast.versions == 1


@pytest.mark.filterwarnings("ignore:.*changes runs at each call")
def test_a_replay_runs_no_python_of_the_function() -> None:
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    @compile
    def counted(x: Tensor) -> Tensor:
        note()
        return x + 1

    made: list[int] = []
    for call in range(1, 70):
        before = len(runs)
        counted(pt.ones(2))
        made += [call] * (len(runs) - before)
    assert made == [1, 2, 4, 16, 64]  # recorded twice, then compared again


def test_shapes_may_go_and_come_back() -> None:
    fast = compile(chain)
    for shape in [(2, 3), (5, 1), (2, 3), (0, 2), (5, 1), (2, 3), (0, 2), (5, 1), (2, 3)]:
        x = pt.random.normal(shape)
        assert bits(fast(x)) == bits(chain(x))
    assert fast.versions == 3


def test_element_types_and_devices_are_kept_apart() -> None:
    fast = compile(lambda x: x + x)
    for _ in range(3):
        for device in (Numpy(), Numpy(float="float64")):
            for dtype in (pt.float32, pt.int64):
                out = fast(pt.ones(2, dtype=dtype, device=device))
                assert (out.dtype, out.device) == (dtype, device)
    assert fast.versions == 4


def test_trees_come_in_and_go_out() -> None:
    @compile
    def swap(pair: dict[str, Any], *, factor: float, name: str = "z") -> Any:
        a, (b, c) = pair["a"], pair["b"]
        return {name: a * factor, "rest": [b + c, None, True], "twice": (b, b), "n": factor}

    for i in range(4):
        x = pt.asarray([float(i)])
        out = swap({"a": x, "b": (x + 1, 2.5)}, factor=3.0 + i)
        assert out["z"].tolist() == [i * (3.0 + i)]
        assert (out["rest"][0].tolist(), out["rest"][1:]) == ([i + 3.5], [None, True])
        assert out["twice"][0].tolist() == out["twice"][1].tolist() == [i + 1]
        assert out["n"] == 3.0 + i
        assert type(out["n"]) is float
    x = pt.ones(1)
    assert swap({"a": x, "b": (x, 1.0)}, factor=1.0, name="y").keys() >= {"y"}
    assert swap.versions == 2


def test_methods_and_objects_that_are_trees_can_be_compiled() -> None:
    class Box:
        def __init__(self, w: Tensor) -> None:
            self.w = w

        def __call__(self, x: Tensor) -> Tensor:
            return x * self.w

    pt.tree.register(Box, lambda b: ({"w": b.w}, None), lambda parts, rest: Box(parts["w"]))
    fast = compile(Box(pt.asarray([2.0])))
    assert [fast(pt.ones(1)).item() for _ in range(4)] == [2.0] * 4

    class Plain:
        def __init__(self) -> None:
            self.factor = 2.0

        @compile
        def scaled(self, x: Tensor) -> Tensor:
            return x * 3

        def own(self, x: Tensor) -> Tensor:
            return x * self.factor

    plain = Plain()
    assert [plain.scaled(pt.ones(1)).item() for _ in range(4)] == [3.0] * 4
    own = compile(plain.own)
    assert [own(pt.ones(1)).item() for _ in range(4)] == [2.0] * 4
    plain.factor = 5.0
    assert [own(pt.ones(1)).item() for _ in range(4)] == [5.0] * 4


def test_a_compiled_function_inside_of_another_is_a_part_of_it() -> None:
    inner = compile(lambda x: x * 2)
    outer = compile(lambda x: inner(x) + inner(x + 1))
    assert [outer(pt.asarray(float(i))).item() for i in range(5)] == [4.0 * i + 2 for i in range(5)]
    assert (inner.versions, outer.versions) == (0, 1)


def test_a_compiled_function_may_call_itself() -> None:
    @compile
    def power(x: Tensor, n: int) -> Tensor:
        return x if n == 0 else power(x, n - 1) * x

    for n in (0, 3, 1, 3, 3, 0, 3):
        assert power(pt.asarray(2.0), n).item() == 2.0 ** (n + 1)


def test_random_numbers_go_on_as_they_would() -> None:
    def noisy(x: Tensor) -> Tensor:
        return x + pt.random.normal((3,)) * pt.random.uniform((3,))

    fast = compile(noisy)
    pt.seed(5)
    expected = [bits(noisy(pt.zeros(3))) for _ in range(6)]
    pt.seed(5)
    assert [bits(fast(pt.zeros(3))) for _ in range(6)] == expected
    pt.seed(5)
    assert [bits(fast(pt.zeros(3))) for _ in range(6)] == expected
    with pt.random.use_generator(pt.random.Generator(5)):
        assert [bits(fast(pt.zeros(3))) for _ in range(6)] == expected
    assert pt.random.generator().state() == (5, 12)


def test_two_threads_draw_no_number_twice() -> None:
    fast = compile(lambda: pt.random.uniform((4,)))
    for _ in range(3):
        fast()
    found: list[bytes] = []

    def work() -> None:
        for _ in range(200):
            found.append(bits(fast()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 800


def test_recording_in_one_thread_leaves_others_alone() -> None:
    stop = threading.Event()
    wrong: list[Any] = []

    def work() -> None:
        while not stop.is_set():
            if (pt.ones(3) + 1).sum().item() != 6.0:
                wrong.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    fast = compile(chain)
    for size in range(1, 9):
        for _ in range(3):
            x = pt.random.normal((size, 2))
            assert bits(fast(x)) == bits(chain(x))
    stop.set()
    thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_goes_on() -> None:
    fast = compile(lambda x: x * 3)
    for _ in range(3):
        fast(pt.ones(1))
    child = os.fork()
    if child == 0:
        os._exit(0 if fast(pt.ones(1)).item() == 3.0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_function_that_is_recorded_ever_again_is_told() -> None:
    fast = compile(lambda x: x + 1)
    for size in range(1, 10):
        fast(pt.ones(size))
    with pytest.warns(UserWarning, match="recorded 10 times: shapes") as told:
        fast(pt.ones(10))
    text = str(told[0].message)
    assert "argument 0 was float32[9] on Numpy(), then float32[10] on Numpy()" in text
    assert fast.versions == 10
    drawn = compile(lambda x: x + pt.random.uniform(()))
    for number in range(9):
        with pt.random.use_generator(pt.random.Generator(number)):
            drawn(pt.ones(1 + number % 2))
    told_why = pytest.warns(UserWarning, match="the generator or default device in use")
    with told_why, pt.random.use_generator(pt.random.Generator(9)):
        drawn(pt.ones(1))
    slowed: Any = compile(lambda x, rate=1.0: x * rate)
    for n in range(9):
        slowed(pt.ones(1), rate=np.float32(n))
    with pytest.warns(UserWarning, match=r"rate was .*; float\(.*9.0.*\) may be another"):
        slowed(pt.ones(1), rate=np.float32(9))
    asked = compile(lambda x, n: x * float(n))
    for n in range(9):
        asked(pt.ones(1), 1.5 + n)
    with pytest.warns(UserWarning, match=r"test_compile.py:\d+"):
        asked(pt.ones(1), 0.5)


def test_the_graph_and_the_report_are_text() -> None:
    fast = compile(lambda x, rate: (x * rate).sum())
    text = str(fast.trace(pt.ones(2), 0.5))
    assert "multiply(v0, n0)" in text
    assert "float32[2]" in text
    report = fast.explain(pt.ones(2), 0.5)
    assert "1 tensor, 1 number" in report
    assert "calls: 2, of which 0 programs for 0 ops" in report


def test_a_compiled_function_looks_like_the_function() -> None:
    """Has a docstring."""
    fast = compile(chain)
    assert (fast.__name__, fast.__wrapped__) == ("chain", chain)  # type: ignore[attr-defined]
    assert "chain" in repr(fast)


def test_a_peak_is_not_above_that_of_the_function() -> None:
    def deep(x: Tensor) -> Tensor:
        kept = x.cos()
        for _ in range(12):
            x = (x * 1.5).sin()
        return x + kept

    fast = compile(deep)
    x = pt.ones(2**16)
    for _ in range(4):
        fast(x)

    def most(function: Any) -> int:
        tracemalloc.start()
        try:
            function(x)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    array = 2**16 * 4
    assert 2 * array < most(deep) < 6 * array  # tracemalloc sees NumPy's arrays
    assert most(fast) <= most(deep) + array // 4


class Owner:
    """An object with a compiled method."""

    @compile
    def step(self, x: Tensor) -> Tensor:
        """Twice."""
        return x * 2


@compile(versions=3)
def by_name(x: Tensor) -> Tensor:
    """A compiled function that pickles know by its name."""
    return x * 2


def doubled(x: Tensor) -> Tensor:
    """Two of it."""
    return x * 2


def test_compiled_functions_are_pickled_and_copied() -> None:
    assert pickle.loads(pickle.dumps(by_name)) is by_name
    assert pickle.loads(pickle.dumps(Owner.step)) is Owner.step
    assert copy.deepcopy(by_name) is by_name
    fast = compile(doubled, check=True, versions=3)
    fast(pt.ones(2))
    for again in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast)):
        assert again.versions == 0
        assert again._settings == (True, 3)
        assert [again(pt.ones(1)).item() for _ in range(4)] == [2.0] * 4


def test_settings_and_what_is_wrapped_are_asked_for() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        (
            {"check": "no"},
            r"check is not of the type .*: got 'no' \(str\), expected bool",
        ),
        ({"check": 1}, "expected bool"),
        ({"versions": 1.5}, r"got 1\.5 \(float\), expected int"),
        ({"versions": True}, "expected int"),
    ]
    for settings, told in wrong:
        with pytest.raises(pt.WrongTypeError, match=told):
            compile(doubled, **settings)
    with pytest.raises(pt.CompileError, match="no room for a version"):
        compile(versions=0)(doubled)
    nothing: Any = None
    with pytest.raises(pt.WrongTypeError, match="not a function: got NoneType"):
        compile(nothing)
    for kind in (staticmethod, classmethod):
        with pytest.raises(pt.WrongTypeError, match=rf"@{kind.__name__} above @px\.compile"):
            compile(kind(doubled))  # type: ignore[arg-type]


def test_a_generator_is_told_to_give_a_list() -> None:
    def parts(x: Tensor) -> Any:
        yield x * 2

    with pytest.raises(pt.CompileError, match=r"got generator(.|\n)*return \[\*parts\]"):
        compile(parts)(pt.ones(1))


def test_a_keyword_may_be_called_as_a_place_is() -> None:
    fast: Any = compile(lambda x, **given: x + sum(given.values()))
    for step in range(4):
        assert fast(pt.ones(1), **{"argument 0": float(step)}).item() == step + 1
