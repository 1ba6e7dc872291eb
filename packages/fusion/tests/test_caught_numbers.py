"""Errors of arithmetic that a function catches: other numbers go another way, and back."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import phlox_tensor as pt
from phlox_fusion import compile, kernel

TRY: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "truediv": (lambda n: 1 / n, [0, 0, 0, 2, 4, 0]),
    "float truediv": (lambda n: 1.0 / n, [2.0, 4.0, 8.0, 0.0, 0.0, 0.0, 4.0]),
    "floordiv": (lambda n: 7 // n, [0, 0, 0, 2, 4, 0]),
    "mod": (lambda n: 7 % n, [0, 0, 0, 2, 4, 0]),
    "divmod": (lambda n: sum(divmod(7, n)), [3, 0, 0, 0, 2, 4]),
    "pow of 0": (lambda n: n**-1, [0, 0, 0, 2, 4]),
    "pow that overflows": (lambda n: 2.0**n, [5000, 5000, 5000, 2, 4]),
    "pow of floats": (lambda n: n**2.5, [1e300, 1e300, 1e300, 2.0, 4.0]),
    "int": (int, [math.inf, math.inf, math.inf, 2.0, 2.0]),
    "int of nan": (int, [2.0, 2.0, 2.0, math.nan, math.nan]),
    "float": (float, [10**400, 10**400, 10**400, 2, 2]),
    "round": (round, [math.inf, math.inf, math.inf, 2.0, 4.0]),
    "floor": (math.floor, [math.inf, math.inf, math.inf, 2.0, 4.0]),
    "ceil": (math.ceil, [2.0, 2.0, 2.0, math.nan, math.nan]),
    "trunc": (math.trunc, [2.0, 2.0, 2.0, math.nan, math.nan]),
    "sqrt": (math.sqrt, [-1.0, -1.0, -1.0, 4.0, 4.0]),
    "sqrt called anew": (lambda n: pt.capture.call(math.sqrt, n), [4.0, -1.0, -1.0, -1.0, 9.0]),
    "log": (math.log, [0, 0, 0, 4, 4]),
    "exp": (math.exp, [1e6, 1e6, 1e6, 0.0, 0.0]),
    "shift": (lambda n: 8 >> n, [-1, -1, -1, 1, 2]),
    "fmod": (lambda n: math.fmod(7.0, n), [0.0, 0.0, 0.0, 4.0, 4.0]),
}


def share(compute: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def run(x: Any, n: Any) -> Any:
        try:
            factor = compute(n)
        except (ArithmeticError, ValueError):
            factor = 0.5
        return x * factor

    return run


@pytest.mark.parametrize("wrap", [compile, kernel])
@pytest.mark.parametrize("name", TRY)
def test_a_caught_error_of_a_number_is_asked_about_again(name: str, wrap: Any) -> None:
    compute, numbers = TRY[name]
    written = share(compute)
    made = wrap(written)
    x = pt.asarray([3.0])
    for n in numbers:
        assert made(x, n).tolist() == written(x, n).tolist(), n
    assert getattr(made, "fallbacks", 0) == 0


def test_an_error_that_nobody_catches_comes_from_the_line_at_fault() -> None:
    inverse = compile(lambda x, n: x * (1 / n))
    for _ in range(3):
        inverse(pt.ones(2), 2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            inverse(pt.ones(2), 0)
    assert inverse(pt.ones(2), 4).tolist() == [0.25, 0.25]
    assert (inverse.versions, inverse.fallbacks) == (1, 0)


def test_errors_that_take_turns_are_versions_of_their_own() -> None:
    written = share(lambda n: 1 / n)
    made = compile(written)
    for n in (0, 2, 0, 2, 0, 2, 0, 5):
        assert made(pt.ones(1), n).tolist() == written(pt.ones(1), n).tolist()
    assert made.versions == 2


def test_a_class_of_errors_is_asked_about() -> None:
    def written(x: Any, n: Any) -> Any:
        try:
            return x * int(n)
        except OverflowError:
            return x + 1
        except ValueError:
            return x + 2

    made = compile(written)
    for n in (math.inf, math.inf, math.inf, math.nan, math.nan, math.nan, 3.0, math.inf):
        assert made(pt.ones(1), n).tolist() == written(pt.ones(1), n).tolist()
