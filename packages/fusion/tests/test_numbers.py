"""Numbers of a compiled function are computed anew, or guarded."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_fusion.replay.replay import MISS
from phlox_tensor import Tensor
from phlox_tensor.capture import call


def test_a_number_may_be_another_at_each_call() -> None:
    fast = compile(lambda x, rate: x - rate * (x * 2))
    for i in range(6):
        assert fast(pt.ones(1), 0.25 * i).item() == 1 - 0.5 * i
    assert fast.versions == 1


def test_an_int_and_a_float_are_two_forms() -> None:
    fast = compile(lambda x, n: x * n)
    for _ in range(3):
        assert fast(pt.ones(1, dtype=pt.int64), 3).tolist() == [3]
        assert fast(pt.ones(1), 2.5).tolist() == [2.5]


def test_sizes_are_recorded_for_each_value() -> None:
    fast = compile(lambda n: pt.zeros((n, 2)) + 1)
    for n in (3, 1, 3, 1, 3, 1, 3):
        assert fast(n).shape == (n, 2)
    assert fast.versions == 2


def test_a_branch_on_a_number_is_a_guard() -> None:
    def warm(x: Tensor, step: int) -> Tensor:
        return x * (step / 10) if step < 10 else x

    fast = compile(warm)
    for step in range(20):
        assert fast(pt.ones(1), step).item() == pytest.approx(min(step / 10, 1.0))
    assert fast.versions == 2


def test_a_plain_value_of_a_number_is_recorded_for_each_value() -> None:
    fast = compile(lambda x, angle: x * math.cos(angle))
    for angle in (0.0, 1.0, 0.0, 1.0, 0.0, 1.0):
        assert fast(pt.ones(1), angle).item() == pytest.approx(math.cos(angle))
    assert fast.versions == 2


def test_a_function_of_plain_numbers_can_be_kept() -> None:
    fast = compile(lambda x, angle: x * call(math.cos, angle * 2))
    for i in range(6):
        assert fast(pt.ones(1), float(i)).item() == pytest.approx(math.cos(i * 2.0))
    assert fast.versions == 1


def test_numbers_make_tensors() -> None:
    fast = compile(lambda x, n: (pt.asarray(n) + pt.full((2,), n) + x, pt.asarray([x.sum(), n])))
    for i in range(4):
        value, both = fast(pt.zeros(2), 1.5 + i)
        assert value.tolist() == [3.0 + 2 * i] * 2
        assert both.tolist() == [0.0, 1.5 + i]
    assert fast.versions == 1


def test_an_integer_outside_of_the_type_is_refused_by_a_replay_too() -> None:
    fast = compile(lambda x, n: x + n)
    x = pt.ones(1, dtype=pt.int8)
    for _ in range(3):
        fast(x, 100)
    with pytest.raises(pt.DTypeError, match="300"):
        fast(x, 300)


def test_far_integers_compare_as_they_do_otherwise() -> None:
    fast = compile(lambda x, n: x < n)
    x = pt.ones(1, dtype=pt.int8)
    for n in (5, 5, 5, 1000, -1000, 5, 1000, 1000):
        assert fast(x, n).item() is (n > 1)


def test_signed_zeros_and_nan_are_values_of_their_own() -> None:
    fast = compile(lambda x, n: x * float(n))
    for _ in range(3):
        assert math.copysign(1, fast(pt.ones(1), -0.0).item()) == -1
        assert math.copysign(1, fast(pt.ones(1), 0.0).item()) == 1
        assert math.isnan(fast(pt.ones(1), math.nan).item())
    assert fast.versions == 3


def test_a_number_is_an_int_or_a_float_to_who_asks() -> None:
    def branch(x: Tensor, n: Any) -> Any:
        match n:
            case int():
                return x * n
            case float():
                return x * n * 10
        return x - 100

    def asked(x: Tensor, n: Any) -> Any:
        known = isinstance(n, numbers.Real) and isinstance(n, (int, float))
        return x * n if known and not isinstance(n, bool) else x - 100

    for fast in (compile(branch), kernel(branch)):
        for _ in range(3):
            assert fast(pt.ones(1), 2).item() == 2.0
            assert fast(pt.ones(1), 2.5).item() == 25.0
    for fast in (compile(asked), kernel(asked)):
        assert [fast(pt.ones(1), n).item() for n in (2, 2.5, 3, 4.5, 2)] == [2, 2.5, 3, 4.5, 2]


def test_a_number_that_may_be_either_is_guarded_where_somebody_asks() -> None:
    def powered(x: Tensor, n: Any) -> Tensor:
        return x * (2.0 if isinstance(2**n, int) else 3.0)

    fast = compile(powered)
    for n in (1, 2, 3, -1, -2, 4):
        assert fast(pt.ones(1), n).item() == (2.0 if n > 0 else 3.0)
    assert fast.versions == 2


@pytest.mark.parametrize(
    ("function", "versions"),
    [
        (lambda n: n & 1, 1),
        (lambda n: 1 << n, 1),
        (lambda n: n >> 1 | ~n ^ 3, 1),
        (lambda n: divmod(n, 3)[0] + divmod(7, n)[1], 1),
        (lambda n: round(n) + round(n / 7, 2), 1),
        (lambda n: math.trunc(n / 2) + math.floor(n / 2) + math.ceil(n / 2), 1),
        (lambda n: n.real + n.conjugate(), 1),
        (lambda n: n.bit_length(), 4),
        (lambda n: np.sqrt(n) + np.ones(1)[0] * n, 4),
        (lambda n: pt.asarray([n, 2.0])[0] + pt.asarray(((n,), (1.5,)))[0, 0], 1),
        (lambda n: pt.asarray([n, np.float32(2)])[0], 4),
    ],
)
def test_numbers_do_what_pythons_do(function: Callable[[Any], Any], versions: int) -> None:
    fast = compile(lambda x, n: x * function(n))
    x = pt.ones(1)
    for _ in range(3):
        for n in (1, 2, 3, 9):
            assert fast(x, n).tolist() == (x * function(n)).tolist()
    assert fast.versions == versions


def test_an_attribute_that_no_number_has_is_told_as_pythons() -> None:
    with pytest.raises(AttributeError, match="'int' object has no attribute 'shape'"):
        compile(lambda x, n: x * n.shape)(pt.ones(1), 2)


_BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    operator.truediv,
)
_VALUES = st.floats(-50, 50).filter(lambda x: abs(x) > 0.01) | st.integers(1, 9)


@given(st.lists(st.tuples(st.sampled_from(_BINARY), _VALUES, st.booleans()), max_size=6), _VALUES)
def test_arithmetic_is_pythons(steps: list[Any], start: float) -> None:
    def follow(value: Any) -> Any:
        for function, other, swapped in steps:
            if not swapped:
                value = function(value, other)
            elif function in (operator.add, operator.sub, operator.mul):
                value = function(other, value)
        return abs(-value)

    fast = compile(lambda x, n: (x, follow(n)))
    for value in (start, start + 1, start + 2):
        try:
            expected = follow(value)
        except (OverflowError, ZeroDivisionError):
            return
        _, out = fast(pt.ones(1), value)
        assert type(out) is type(expected)
        assert out == expected
    assert fast.fallbacks == 0


def test_equal_numbers_are_no_version_of_their_own_and_stay_on_the_fast_path() -> None:
    x, y = pt.ones(2), pt.zeros(2)
    for first, later in (((7, 7), (8, 9)), ((0.5, 0.25), (2.5, 2.5)), ((0.5, 0.5), (2.0, 3.0))):
        alone = compile(lambda x, a, b: x * a - b)
        nested = compile(lambda x, y, held: (x * held["a"] - held["b"][0]) + y)
        for a, b in (first, first, first, later, later):
            assert alone(x, a, b).tolist() == [float(a - b)] * 2
            assert nested(x, y, {"a": a, "b": [b]}).tolist() == [float(a - b)] * 2
        assert (alone.versions, nested.versions) == (1, 1)
        for number in later:
            for fast, args in (
                (alone, (x, number, number)),
                (nested, (x, y, {"a": number, "b": [number]})),
            ):
                assert fast._versions.last is not None
                probe: Any = fast._versions.last.probe
                assert probe(args, {}, []).tolist() == [0.0] * 2
    assert nested(x, x, {"a": 1.5, "b": [1.5]}).tolist() == [1.0] * 2
    assert nested.versions == 2  # one tensor at two places


def test_calls_by_keyword_are_known_at_once() -> None:
    fast = compile(lambda x, a, b=0.0: x * a - b)
    x = pt.ones(1)
    for _ in range(3):
        assert fast(x, a=3.0, b=2.0).item() == 1.0
    assert fast._versions.last is not None
    probe: Any = fast._versions.last.probe
    assert probe((x,), {"a": 5.0, "b": 1.0}, []).item() == 4.0
    for args, named in (
        ((x,), {"b": 5.0, "a": 1.0}),
        ((x,), {"a": 5.0}),
        ((x, 5.0), {"b": 1.0}),
        ((x, 5.0, 1.0), {}),
        ((), {"x": x, "a": 5.0, "b": 1.0}),
    ):
        assert probe(args, named, []) is MISS
    for _ in range(3):
        assert fast(x, b=2.0, a=3.0).item() == 1.0
        assert fast(x, 3.0, 2.0).item() == 1.0
        assert fast(x, 3.0, b=2.0).item() == 1.0
        assert fast(x=x, a=3.0).item() == 3.0
    assert fast.versions == 5


WIDE = [2**64] * 4, [2, 2**31, 2**62, 2**64, 2, -(2**64), 2**63, 2**64, 3], [2**40] * 4 + [2]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("given", WIDE)
def test_ints_of_more_than_64_bits_are_what_they_are(given: list[int], check: bool) -> None:
    functions: tuple[Callable[[Any, int], Any], ...] = (
        lambda x, n: x * n,
        lambda x, n: x * (n * n),
        lambda x, n: n - x,
    )
    for function in functions:
        fast = compile(function, check=check)
        for n in given:
            assert fast(pt.ones(2), n).tolist() == function(pt.ones(2), n).tolist()


def test_streams_of_random_numbers_with_any_key_are_one_version() -> None:
    """Their keys are ints of all 64 bits."""

    def drawn(x: Tensor, stream: Any) -> Tensor:
        with pt.random.use_generator(stream):
            return x + pt.random.uniform((2,))

    fast = compile(drawn)
    for seed in range(24):
        found = fast(pt.ones(2), pt.random.Generator(seed))
        assert found.tolist() == drawn(pt.ones(2), pt.random.Generator(seed)).tolist()
    assert fast.versions == 1
