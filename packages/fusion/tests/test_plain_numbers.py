"""Numbers go where only Python's own can: as keys, into JSON, to functions in C."""

from __future__ import annotations

import copy
import decimal
import fractions
import functools
import json
import pickle
import random
import statistics
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel
from phlox_tensor import CompileError, Tensor
from phlox_tensor.capture import Cell

TABLE = {n: 1.5 * n for n in range(-9, 9)}


@functools.lru_cache
def squared(n: int) -> int:
    return n * n


CASES: dict[str, Callable[[Any], Any]] = {
    "key": lambda n: TABLE[n],
    "set": lambda n: 2 if n in {1, 2} else 3,
    "cached": squared,
    "json": lambda n: len(json.dumps({"n": n})),
    "decimal": lambda n: float(decimal.Decimal(n) * 2),
    "fraction": lambda n: float(fractions.Fraction(n, 3) + n),
    "generator": lambda n: float(np.random.default_rng(abs(n)).random()),
    "random": lambda n: random.Random(n).random(),
    "power": lambda n: pow(n, 2, 5),
    "modulus": lambda n: pow(2, abs(n), 5),
    "mean": lambda n: statistics.mean([n, 1, 2]),
    "text": lambda n: len(f"{n}:{n:>8}:{n!r}:{[n]}"),
    "percent": lambda n: len("%d %s" % (n, n)),  # noqa: UP031 - what is tested
    "pickle": lambda n: pickle.loads(pickle.dumps(n)),
    "copy": lambda n: copy.copy(n) * copy.deepcopy([n])[0],
    "time": lambda n: timedelta(seconds=n).total_seconds(),
    "complex": lambda n: abs(complex(n, 1) * n * 1j),
    "array": lambda n: float(np.array([n, 2.5]).sum()),
    "full": lambda n: float(np.full(3, n).sum()),
    "descriptor": lambda n: int.bit_count(abs(n)),
    "hash": lambda n: hash((n, 1)) % 7,
    "tuple": lambda n: {(n, "a"): 2.0}[n, "a"],
}


@pytest.mark.parametrize("name", CASES)
def test_a_number_goes_where_only_a_plain_one_can(name: str) -> None:
    of = CASES[name]
    fast = compile(lambda x, n: x * of(n))
    for n in (1, 2, 3, -3, 2, 1, 2, 3, -3):
        assert fast(pt.ones(2), n).tolist() == (pt.ones(2) * of(n)).tolist(), n
    assert fast.versions <= 4


def test_other_numbers_stay_live() -> None:
    fast = compile(lambda x, rate, n: x * rate * TABLE[n + 1])
    for i in range(20):
        assert fast(pt.ones(1), 0.25 * i, i % 2).item() == 0.25 * i * TABLE[i % 2 + 1]
    assert fast.versions == 2


def test_a_key_in_a_result_is_a_plain_number() -> None:
    fast = compile(lambda x, n: {n: x * n})
    for n in (1, 2, 1, 2, 1, 2):
        (key,) = fast(pt.ones(1), n)
        assert (type(key), key) == (int, n)


def test_a_run_that_starts_again_leaves_no_state() -> None:
    count = Cell(0)

    def body(x: Tensor, n: int) -> Tensor:
        count.set(count.get() + 1)
        noise = pt.random.uniform(x.shape)
        return x * TABLE[n] + noise

    pt.random.seed(3)
    expected = [(pt.ones(2) * TABLE[n] + pt.random.uniform((2,))).tolist() for n in (1, 2) * 4]
    pt.random.seed(3)
    fast = compile(body)
    assert [fast(pt.ones(2), n).tolist() for n in (1, 2) * 4] == expected
    assert count.get() == 8


def test_a_number_of_a_cell_may_be_a_key() -> None:
    place = Cell(0)

    def body(x: Tensor) -> Tensor:
        now = place.get()
        place.set((now + 1) % 3)
        return x * TABLE[now]

    fast = compile(body)
    assert [fast(pt.ones(1)).item() for _ in range(12)] == [TABLE[i % 3] for i in range(12)]
    assert fast.versions == 3


def test_an_error_of_types_is_that_of_the_function() -> None:
    def body(x: Tensor, n: int) -> Tensor:
        return x * (n + "a")  # type: ignore[operator]

    fast = compile(body)
    for _ in range(3):
        with pytest.raises(TypeError, match="unsupported operand"):
            fast(pt.ones(1), 2)


def test_a_number_that_somebody_keeps_is_one_afterwards() -> None:
    kept: dict[str, Any] = {}

    def keep(n: Any) -> None:
        kept.setdefault("n", n)

    def body(x: Tensor, n: int) -> Tensor:
        keep(n)
        return x * n

    compile(body)(pt.ones(1), 3)
    n = kept["n"]
    assert (n + 1, TABLE[n], repr(n), f"{n}", {n}) == (4, 4.5, "3", "3", {3})
    assert pickle.loads(pickle.dumps(n)) == 3


# Each is called with the value of a float64, which is a number: what it does is done anew then.
WITH_FLOAT64: list[Callable[[Tensor, Any], Any]] = [
    lambda x, n: x * (3 * n),
    lambda x, n: x * (n / (n - 2.0)),  # inf where a float raises
    lambda x, n: x if n > 3 else x * 2,
    lambda x, n: x * (2 if (n > 3) is True else 3),  # a bool of NumPy is no True
    lambda x, n: x * n**2 + n % 2,
    lambda x, n: x * (2 if isinstance(n, float) else 3),
    lambda x, n: x * (2 if isinstance(n, np.floating) else 3),
    lambda x, n: (x.mean(), n + 1),
    lambda x, n: x * max(n, 2.5) + abs(-n),
    lambda x, n: x.clip(-n, n),
    lambda x, n: x * (2 if type(n) is np.float64 else 3),
    lambda x, n: x * np.sqrt(n),
    lambda x, n: x * n.item(),
    lambda x, n: x * n.astype("float32"),
    lambda x, n: x * {1.0: 5.0}.get(n, 1.0),
    lambda x, n: x * (np.float64(2) * n),
]


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning", "ignore:.*recorded 10 times")
@pytest.mark.parametrize("at", range(len(WITH_FLOAT64)))
def test_a_float64_of_numpy_is_a_number(at: int) -> None:
    function = WITH_FLOAT64[at]
    fast = compile(function)
    for n in (1.0, 2.0, 4.0, 1.0, 2.5, 0.0, np.nan, np.inf, 1.0, 5.0, 6.0, 7.0, 8.0):
        value = np.float64(n)
        found, expected = fast(pt.ones(2), value), function(pt.ones(2), value)
        if isinstance(expected, tuple):
            assert type(found[1]) is type(expected[1]) is np.float64
            assert np.array_equal(found[1], expected[1], equal_nan=True)
            found, expected = found[0], expected[0]
        assert np.array_equal(found.numpy(), expected.numpy(), equal_nan=True)
    assert fast.versions <= 2 or at >= 10


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_])
def test_scalars_of_numpy_are_compared_by_value(kind: Any) -> None:
    fast = compile(lambda x, n: x * (n * kind(3)))
    for n in (0, 1, 0, 1, 0, 1):
        scalar = np.array([n, n]).astype(kind)[0]  # another object at each call
        assert fast(pt.ones(2), scalar).tolist() == [float(scalar * kind(3))] * 2
    assert fast.versions == 2


ASKING: list[Callable[[Tensor, Any], Tensor]] = [
    lambda x, n: x * (2 if type(n) is int else 3),
    lambda x, n: x * (2 if type(n) == int else 3),  # noqa: E721 - what the test is about
    lambda x, n: x * (2 if type(n) in (int, bool) else 3),
    lambda x, n: x * (2 if issubclass(type(n), int) else 3),
    lambda x, n: x * {int: 2, float: 3}[type(n)],
    lambda x, n: x * (2 if type(n).__name__ == "int" else 3),
    lambda x, n: x * (2 if np.asarray(n).dtype.kind == "i" else 3),
    lambda x, n: x * (2 if np.array([n, n]).dtype.kind == "i" else 3),
    lambda x, n: x * (2 if n.__class__ is int else 3),
    lambda x, n: x * (2 if isinstance(n, int) else 3),
]


@pytest.mark.parametrize("at", range(len(ASKING)))
def test_the_class_of_a_number_is_that_of_the_plain_one(at: int) -> None:
    fast = compile(ASKING[at])
    for n in (1, 1, 1, 1, 1.5, 1.5, 1.5, 1):
        assert fast(pt.ones(1), n).item() == (2 if isinstance(n, int) else 3)
    assert fast.versions == 2


def test_a_kernel_that_asks_for_the_class_of_a_number_is_refused() -> None:
    with pytest.raises(CompileError, match=r"isinstance\(n, int\)"):
        kernel(ASKING[0])(pt.ones(1), 1)
    assert kernel(ASKING[-1])(pt.ones(1), 1).item() == 2
    assert kernel(lambda x, n: x * (n if type(x) is Tensor else 1))(pt.ones(1), 2).item() == 2


LATER: list[Callable[[Tensor, int], Tensor]] = [
    lambda x, n: x * 2 if n > 0 and n in {10, 2} else x,
    lambda x, n: x if n < 2 else x * TABLE[n],
    lambda x, n: x if n < 1 else x * len(json.dumps(n)),
    lambda x, n: x if n < 2 else x * squared(n),
]


@pytest.mark.parametrize("at", range(len(LATER)))
def test_a_number_may_be_a_key_on_one_way_alone(at: int) -> None:
    fast = compile(LATER[at])
    for n in (0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 1, 0, 3, 3, 3):
        assert fast(pt.ones(1), n).item() == LATER[at](pt.ones(1), n).item()


def otherwise(f: Callable[[Any], Any], n: Any) -> Any:
    try:
        return f(n)
    except TypeError:
        return -1.0


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_that_is_caught_is_none_of_a_plain_number(case: str) -> None:
    def function(x: Tensor, n: int) -> Tensor:
        return x * otherwise(CASES[case], n)

    fast = compile(function)
    for n in (2, 2, 3, 3, 2, 4, 4, 2):
        assert fast(pt.ones(1), n).item() == function(pt.ones(1), n).item()


def test_numbers_stay_inputs_where_nothing_refuses_them() -> None:
    def function(x: Tensor, n: float) -> Tensor:
        try:
            return x * n
        except TypeError:
            return x

    fast = compile(function)
    for n in range(20):
        assert fast(pt.ones(1), float(n)).item() == n
    assert fast.versions == 1
