"""Numbers inside a recorded function: they remember how they were computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol, final

import numpy as np

Plain = bool | int | float


class NeedsValue(BaseException):
    """A number was used as what only a plain value can be: the run starts again with that.

    No ``Exception``, which a function that is recorded may catch.
    """

    def __init__(self, given: set[int]) -> None:
        """Keep the places of the numbers that were given and that it comes of."""
        super().__init__(given)
        self.given: Final = given


class Owner(Protocol):
    """What keeps the numbers of one recording."""

    def number(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any, /) -> Number:
        """Keep a number that ``function`` gave, and return it."""
        ...

    def guard(self, function: Callable[..., Any], args: tuple[Any, ...], value: Any, /) -> None:
        """Keep that the program went on with what ``function`` gave."""
        ...

    def settle(self, number: Number, what: str, /) -> None:
        """Start again with the plain value of a number; return where nobody records any more.

        Raises:
            NeedsValue: to whoever can start again.
            TypeError: where nobody can: ``what`` says what a number does not have.
        """
        ...


@final
class Number:
    """An int or a float of a recorded function, which a replay computes anew.

    Arithmetic with numbers gives numbers, and ops take them. Whatever turns one into a plain value
    (``float``, ``int``, a comparison, ``if``) becomes a guard: a replay holds only while the same
    comes out. ``call(cos, x)`` keeps a function of plain numbers in the recording. It says that its
    class is int or float, as ``isinstance`` asks; only ``type`` tells it apart.

    Attributes:
        value: what it is in this call.
        place: which of the numbers of its recording it is.
    """

    __slots__ = ("_either", "_owner", "place", "value")

    def __init__(
        self, value: int | float, place: int, owner: Owner, *, either: bool = False
    ) -> None:
        """Made by a recording; ``either``: for other numbers it may be an int, or a float."""
        self.value: Final = value
        self.place: Final = place
        self._owner: Final = owner
        self._either: Final = either

    @property  # type: ignore[misc]
    def __class__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
    ) -> type:
        """What ``isinstance`` and ``match`` ask: int or float."""
        return self.ask(type) if self._either else type(self.value)

    def ask(self, function: Callable[..., Any], *rest: Any) -> Any:
        """Return ``function(value, *rest)``, which a replay must find again."""
        try:
            out = function(self.value, *rest)
        except Exception as error:
            guard_error(self._owner, function, (self, *rest), error)
            raise
        self._owner.guard(function, (self, *rest), out)
        return out

    def __float__(self) -> float:
        return float(self.ask(float))

    def __int__(self) -> int:
        return int(self.ask(int))

    def __index__(self) -> int:
        return int(self.ask(operator.index))

    def __bool__(self) -> bool:
        return bool(self.ask(bool))

    def __str__(self) -> str:
        return str(self.ask(str))

    def __format__(self, spec: str) -> str:
        return format(self.ask(itself), spec)

    def __repr__(self) -> str:
        return repr(self.ask(itself))

    def __complex__(self) -> complex:
        return complex(self.ask(complex))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """What NumPy takes it for: an array of its value."""
        del copy
        return np.asarray(self.ask(itself), dtype)

    def __hash__(self) -> int:
        self._owner.settle(self, "has no hash")
        return hash(self.value)

    def __reduce__(self) -> Any:
        self._owner.settle(self, "is not saved")
        return type(self.value), (self.value,)

    def __copy__(self) -> Number:
        return self

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    def __eq__(self, other: object) -> Any:
        return _compared(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return _compared(operator.ne, self, other)

    def __lt__(self, other: object) -> Any:
        return _compared(operator.lt, self, other)

    def __le__(self, other: object) -> Any:
        return _compared(operator.le, self, other)

    def __gt__(self, other: object) -> Any:
        return _compared(operator.gt, self, other)

    def __ge__(self, other: object) -> Any:
        return _compared(operator.ge, self, other)

    def __neg__(self) -> Number:
        return _made(self._owner, operator.neg, (self,))

    def __pos__(self) -> Number:
        return self

    def __abs__(self) -> Number:
        return _made(self._owner, abs, (self,))

    def __add__(self, other: Any) -> Any:
        return _applied(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return _applied(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return _applied(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return _applied(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return _applied(operator.mul, self, other)

    def __rmul__(self, other: Any) -> Any:
        return _applied(operator.mul, other, self)

    def __truediv__(self, other: Any) -> Any:
        return _applied(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _applied(operator.truediv, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _applied(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _applied(operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return _applied(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _applied(operator.mod, other, self)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return _made(self._owner, pow, (self, other, modulus))
        return _applied(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _applied(operator.pow, other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __and__(self, other: Any) -> Any:
        return _applied(operator.and_, self, other)

    def __rand__(self, other: Any) -> Any:
        return _applied(operator.and_, other, self)

    def __or__(self, other: Any) -> Any:
        return _applied(operator.or_, self, other)

    def __ror__(self, other: Any) -> Any:
        return _applied(operator.or_, other, self)

    def __xor__(self, other: Any) -> Any:
        return _applied(operator.xor, self, other)

    def __rxor__(self, other: Any) -> Any:
        return _applied(operator.xor, other, self)

    def __lshift__(self, other: Any) -> Any:
        return _applied(operator.lshift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _applied(operator.lshift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return _applied(operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _applied(operator.rshift, other, self)

    def __invert__(self) -> Number:
        return _made(self._owner, operator.invert, (self,))

    def __round__(self, digits: int | None = None) -> Number:
        return _made(self._owner, round, (self, digits))

    def __trunc__(self) -> Number:
        return _made(self._owner, math.trunc, (self,))

    def __floor__(self) -> Number:
        return _made(self._owner, math.floor, (self,))

    def __ceil__(self) -> Number:
        return _made(self._owner, math.ceil, (self,))

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        """Give functions of NumPy the plain value, which a replay must find again."""
        own = [item.ask(itself) if type(item) is Number else item for item in given]
        return getattr(ufunc, method)(*own, **options)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the plain value, which a replay must find again."""
        if name in ("conjugate", "real"):
            return self if name == "real" else self.__pos__
        if name.startswith("_") or not hasattr(self.value, name):
            kind = type(self.value).__name__
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")
        return getattr(self.ask(itself), name)


@final
class _Nobody:
    """The owner of numbers that stand for places: nobody computes with them."""

    def number(self, function: Any, args: Any, value: Any, /) -> NoReturn:
        """Raise: a mistake of whoever made such a number."""
        raise AssertionError(function)

    def guard(self, function: Any, args: Any, value: Any, /) -> NoReturn:
        """Raise, as above."""
        raise AssertionError(function)

    def settle(self, number: Any, what: str, /) -> NoReturn:
        """Raise, as above."""
        raise AssertionError(what)


NOBODY: Final = _Nobody()


Scalar = bool | int | float | Number
"""What may stand for a number; ``isinstance`` takes it."""


def itself(value: Any) -> Any:
    """Return a plain value as it is: a replay finds it again where it is needed."""
    return value


def plain(item: Any) -> Any:
    """Return what a number is in this call; everything else as it is."""
    return item.value if type(item) is Number else item


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, computed anew in each replay where a number is among ``args``.

    The function must give a number, and the same one for the same arguments.

    >>> from math import cos
    >>> call(cos, 0.0)
    1.0
    """
    for item in args:
        if type(item) is Number:
            return _made(item._owner, function, args)
    return function(*args)


def _made(owner: Owner, function: Callable[..., Any], args: tuple[Any, ...]) -> Number:
    """The number that a function gives; an error is a guard, as the program may catch it."""
    try:
        value = function(*map(plain, args))
    except Exception as error:
        guard_error(owner, function, args, error)
        raise
    return owner.number(function, args, value)


def guard_error(
    owner: Owner, function: Callable[..., Any], args: tuple[Any, ...], error: Exception
) -> None:
    """Keep that the program went on with an error, should it catch it."""
    owner.guard(error_of, (function, *args), type(error))


def error_of(function: Callable[..., Any], *args: Any) -> type[Exception] | None:
    """The class of the error that a function of plain values raises; None for none."""
    try:
        function(*args)
    except Exception as error:
        return type(error)
    return None


_CLOSED: Final = frozenset(
    {
        abs,
        float,
        int,
        operator.add,
        operator.and_,
        operator.floordiv,
        operator.invert,
        operator.lshift,
        operator.mod,
        operator.mul,
        operator.neg,
        operator.or_,
        operator.rshift,
        operator.sub,
        operator.truediv,
        operator.xor,
        round,
        *(function for function in vars(math).values() if callable(function)),
    }
) - {math.prod}


def type_depends_on_values(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether the values of numbers decide if a function of them gives an int or a float."""
    if function is operator.pow:
        return all(not isinstance(plain(item), float) for item in args)
    return function not in _CLOSED


def same(a: Any, b: Any) -> bool:
    """Whether two plain values are one: by type and sign of zero; NaN is NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):  # of NumPy too
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return bool(a == b)


def _compared(function: Callable[[Any, Any], Any], a: Number, b: Any) -> Any:
    if not isinstance(b, Scalar):
        return NotImplemented
    out = function(a.value, plain(b))
    a._owner.guard(function, (a, b), out)
    return out


def _applied(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    other = b if type(a) is Number else a
    if not isinstance(other, Scalar):
        return NotImplemented
    owner: Owner = (a if type(a) is Number else b)._owner
    return _made(owner, function, (a, b))
