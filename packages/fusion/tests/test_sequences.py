"""Calls that a device takes as one: what it is told, and that results are those of the calls."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile
from phlox_tensor import Numpy, tree
from phlox_tensor.capture import Call, CallSequence, Number, SequenceRun, Value

_REFUSED = "cumulative_sum"


@final
class Sequences:
    """Runs sequences as their data says, and notes how many values it held at most."""

    def __init__(self) -> None:
        self.made: list[CallSequence] = []
        self.held = 0

    def sequence(self, calls: CallSequence, /) -> SequenceRun | None:
        """Return an interpreter."""
        if any(_REFUSED in getattr(call.function, "__name__", "") for call in calls.calls):
            return None
        self.made.append(calls)
        return lambda given, numbers: self._run(calls, given, numbers)

    def _run(self, sequence: CallSequence, given: list[Any], numbers: Any) -> tuple[Any, ...]:
        values = dict(zip(sequence.inputs, given, strict=True))
        given.clear()
        known = dict(zip(sequence.numbers, numbers, strict=True))

        def filled(item: Any) -> Any:
            if type(item) is Value:
                return values[item.number]
            if type(item) is Number:
                return known[item.place]
            return tuple(map(filled, item)) if type(item) is tuple else item

        for call in sequence.calls:
            out = _called(call, [tuple(map(filled, args)) for args in call.each])
            values.update(zip(call.results, out, strict=True))
            self.held = max(self.held, len(values))
            for value in call.ended:
                del values[value]
        assert values.keys() >= {*sequence.results}
        return tuple(values.pop(value) for value in sequence.results)


def _called(call: Call, each: list[tuple[Any, ...]]) -> list[Any]:
    found: list[Any] = []
    for args in each:
        out = call.function(*args)
        found += out if isinstance(out, tuple) else (out,)
    return found


def _replayed(function: Any, *given: Any) -> tuple[Any, Any]:
    """What a function gives as written and at the third compiled call, and the compiled one."""
    fast = compile(function)
    outs = [fast(*given) for _ in range(4)]
    expected = tree.leaves(function(*given))
    for out in outs[2:]:
        for a, b in zip(tree.leaves(out), expected, strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
    return fast, outs


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Sequences:
    """The reference takes sequences."""
    made = Sequences()
    monkeypatch.setattr(Numpy, "sequence", lambda _, calls: made.sequence(calls))
    return made


def test_calls_are_one_where_the_device_takes_them(noted: Sequences) -> None:
    x = pt.asarray([1.0, -2.0, 3.0])
    fast, _ = _replayed(lambda x, rate: ((x * rate).relu() + x, x.sum() * rate), x, 0.5)
    (text,) = fast.sources
    assert text.count(" = sequence_") == 1
    assert "# v" in text  # what is inside stays to be read
    assert fast(x, 2.0)[0].tolist() == [3.0, -2.0, 9.0]  # numbers are given anew
    whole = noted.made[-1]
    assert len(whole.calls) > 3
    assert len(whole.numbers) == 1


@pytest.mark.usefixtures("noted")
def test_an_op_that_the_device_leaves_to_python_stands_between_two_sequences() -> None:
    x = pt.asarray([[1.0, 2.0], [3.0, 4.0]])

    def around(x: Any) -> Any:
        y = (x * 2).exp() - x
        z = pt.cumulative_sum(y, axis=0)
        return (z * y).sum(axis=1) / z.mean()

    fast, _ = _replayed(around, x)
    (text,) = fast.sources
    assert text.count(" = sequence_") == 2
    assert text.count("cumulative_sum") == 1
    report = fast.explain(x)
    assert "calls: 8, of which 0 programs" in report
    joined = [line for line in report.splitlines() if "calls are one: the device goes" in line]
    assert len(joined) == 2
    assert sum(int(line.split()[0]) for line in joined) == 7


def test_values_go_with_their_last_use_inside(noted: Sequences) -> None:
    x = pt.asarray(np.ones(4))

    def long(x: Any) -> Any:
        for _ in range(20):
            x = x.sin() + 1
        return x

    _replayed(long, x)
    assert noted.held <= 3  # an operand, a result, and the argument


@pytest.mark.usefixtures("noted")
def test_results_that_are_returned_and_taken_again_are_both() -> None:
    x = pt.asarray([2.0])

    def both(x: Any) -> Any:
        y = x * 3
        z = y + x
        return y, z, z * y, x

    _replayed(both, x)


def test_state_and_random_numbers_follow(noted: Sequences) -> None:
    x = pt.asarray(np.zeros(3))
    count = pt.Cell(0)

    def noisy(x: Any) -> Any:
        count.set(count.get() + 1)
        return (x + pt.random.normal((3,))) * count.get() + x

    pt.seed(3)
    expected = [noisy(x).tolist() for _ in range(5)]
    pt.seed(3)
    count.set(0)
    fast = compile(noisy)
    assert [fast(x).tolist() for _ in range(5)] == expected
    assert any("sequence_" in text for text in fast.sources)
    assert noted.made


def test_what_the_device_takes_as_a_whole_is_asked_for_once(noted: Sequences) -> None:
    _replayed(lambda x: ((x + 1) @ x).sum(), pt.ones((3, 3), device=Numpy()))
    assert [len(each.calls) for each in noted.made] == [3]


def test_about_a_call_alone_no_device_is_asked(noted: Sequences) -> None:
    _replayed(lambda x: x @ x, pt.ones((3, 3), device=Numpy()))
    assert noted.made == []


def test_an_op_that_the_device_does_not_take_stands_between_two_sequences(
    noted: Sequences,
) -> None:
    def function(x: pt.Tensor) -> pt.Tensor:
        y = ((x + 1) @ x).cumulative_sum(0)
        return (y * 2) @ y

    fast, _ = _replayed(function, pt.ones((3, 3), device=Numpy()))
    assert [len(each.calls) for each in noted.made if len(each.calls) > 1] == [2, 2]
    assert fast.sources[0].count("sequence_") == 2
