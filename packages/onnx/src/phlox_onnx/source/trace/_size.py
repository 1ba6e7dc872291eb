"""Whole numbers of the host that are known as expressions, and in two cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from . import _expr as e
from ._expr import Any_

Pair: TypeAlias = Any  # a value in both cases, as a tuple


class UnknownError(Exception):
    """The source cannot say what a row asks for."""


class Size:
    """A whole number, or a float made of some, known as an expression and in two cases."""

    __slots__ = ("cases", "expr")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Any_, cases: Pair) -> None:
        self.expr, self.cases = expr, cases

    def _with(self, other: Any, sign: str, binds: int, turned: bool = False) -> Any:
        if not isinstance(other, Size | int | float | np.generic):
            return NotImplemented
        if not isinstance(other, Size):
            plain = other.item() if isinstance(other, np.generic) else other
            if (sign in "+-" and plain == 0 and not turned) or (sign in ("*", "//") and plain == 1):
                return self
            other = Size(e.literal(plain), (plain, plain))
        one, two = (other, self) if turned else (self, other)
        run = _SIGNS[sign]
        try:
            cases = tuple(run(a, b) for a, b in zip(one.cases, two.cases, strict=True))
        except ZeroDivisionError:
            raise UnknownError("a division by 0") from None
        return Size(e.binary(one.expr, sign, two.expr, binds), cases)

    def __neg__(self) -> Size:
        return Size(e.unary("-", self.expr), (-self.cases[0], -self.cases[1]))

    def __floor__(self) -> Size:
        return self._rounded("math.floor", math.floor)

    def __ceil__(self) -> Size:
        return self._rounded("math.ceil", math.ceil)

    def __trunc__(self) -> Size:
        return self._rounded("int", int)

    def _rounded(self, word: str, run: Callable[[Any], int]) -> Size:
        if all(isinstance(c, int) for c in self.cases):
            return self
        return Size(e.call(word, [self.expr]), (run(self.cases[0]), run(self.cases[1])))

    def floating(self) -> Size:
        """The same number as a float."""
        return Size(e.call("float", [self.expr]), (float(self.cases[0]), float(self.cases[1])))

    def _same(self, other: Any) -> bool:
        if isinstance(other, Size):
            if other.expr == self.expr or other.cases == self.cases:
                return True
        elif other < 0 and all(c >= 0 for c in self.cases):
            return False
        raise UnknownError("whether sizes are equal")

    def holds(self, sign: str, other: Any) -> Any:
        """A comparison that is decided when the source runs, if not now."""
        known = not isinstance(other, Size) and other < 0 and all(c >= 0 for c in self.cases)
        if known and sign == "==":
            return False
        two = other.expr if isinstance(other, Size) else e.literal(other)
        expr = e.binary(self.expr, sign, two, e.COMPARE)
        pairs = zip(self.cases, _cases(other), strict=True)
        return Size(expr, tuple(COMPARED[sign](a, b) for a, b in pairs))

    def __eq__(self, other: object) -> bool:
        return self._same(other)

    def __ne__(self, other: object) -> bool:
        return not self._same(other)

    def _before(self, other: Any, least: bool) -> bool:
        if not isinstance(other, Size) and other == 0 and all(c > 0 for c in self.cases):
            return not least
        raise UnknownError("the order of sizes")

    def __lt__(self, other: Any) -> bool:
        return self._before(other, True)

    def __le__(self, other: Any) -> bool:
        return self._before(other, True)

    def __gt__(self, other: Any) -> bool:
        return self._before(other, False)

    def __ge__(self, other: Any) -> bool:
        return self._before(other, False)

    def __bool__(self) -> bool:
        if all(self.cases):
            return True
        raise UnknownError("a size that may be 0")

    def __index__(self) -> int:
        raise UnknownError("the value of a size")

    __int__ = __float__ = __index__


_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "%": lambda a, b: a % b,
    "*": lambda a, b: a * b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
}


COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": lambda a, b: bool(a < b),
    "==": lambda a, b: bool(a == b),
    ">": lambda a, b: bool(a > b),
}


def _operator(sign: str, turned: bool) -> Callable[[Size, Any], Any]:
    binds = e.ADD if sign in "+-" else e.MUL
    return lambda self, other: self._with(other, sign, binds, turned)


for _word, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"),
                     ("truediv", "/"), ("mod", "%")):  # fmt: skip
    setattr(Size, f"__{_word}__", _operator(_sign, turned=False))
    setattr(Size, f"__r{_word}__", _operator(_sign, turned=True))


def _cases(value: Any) -> Pair:
    return value.cases if isinstance(value, Size) else (value, value)
