"""Values that are not there: rows run on them as on tensors, and what they do becomes source.

A ``Traced`` stands for a tensor, a ``Size`` for a whole number of the host. Each is known at two
sizes of the inputs, on a device without data, so that ranks, types and fixed sizes are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Backend, DType, PhloxError, Tensor

from ...run._growth import META
from . import _expr as e
from ._expr import Any_, Block, Expr, Ref, Stmt
from ._size import Pair, Size, UnknownError


@final
class Trace:
    """Lines as they come, and how many values there are."""

    def __init__(self) -> None:
        """Start with none."""
        self.count = 0
        self.block = Block()
        self.limit: int | None = None
        self.kinds: dict[int, str] = {}

    def fresh(self) -> int:
        """A number for a new value."""
        self.count += 1
        return self.count - 1

    def keep(self, expr: Any_, *, moves: bool = True) -> Ref:
        """Note a line, and return its value."""
        return self.keep_several(expr, 1, moves=moves)[0]

    def keep_several(self, expr: Any_, count: int, *, moves: bool = True) -> list[Ref]:
        """Note a line with several values."""
        if self.limit is not None and len(self.block.lines) >= self.limit:
            raise UnknownError("long")
        targets = [self.fresh() for _ in range(count)]
        self.block.lines.append(Stmt(targets, expr, moves))
        return [Ref(t) for t in targets]


def cases_of(value: Any) -> Pair:
    """Both cases of anything that rows pass around."""
    if isinstance(value, Size | Traced | TracedDevice | Kind):
        return value.cases
    if isinstance(value, tuple | list):
        pairs = [cases_of(v) for v in value]
        made = (type(value)(p[0] for p in pairs), type(value)(p[1] for p in pairs))
        return made
    if isinstance(value, slice):
        first, last = cases_of([value.start, value.stop, value.step])
        return slice(*first), slice(*last)
    return value, value


@final
class Kind:
    """An element type that the device chooses."""

    def __init__(self, expr: Any_, dtype: DType) -> None:
        self.expr, self.cases = expr, (dtype, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cases[0], name)


@final
class TracedDevice:
    """The device of a value."""

    def __init__(self, expr: Any_) -> None:
        self.expr, self.cases = expr, (META, META)

    @property
    def dtypes(self) -> Any:
        """Not int64: what asks for it takes the integer of the device."""
        return META.dtypes - {px.int64}

    @property
    def default_int(self) -> Kind:
        """The integer of the device."""
        return Kind(e.member(self.expr, "default_int"), px.int64)

    @property
    def default_float(self) -> Kind:
        """The float of the device."""
        return Kind(e.member(self.expr, "default_float"), px.float32)


class Traced:
    """A tensor that is written, not there.

    Attributes:
        specs: the tensor on the device without data, in both cases; None where nobody knows.
        scalar: the number, for a constant of one element.
    """

    __slots__ = ("expr", "scalar", "specs", "trace")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, expr: Any_, specs: Pair | None, scalar: Any = None) -> None:
        self.trace, self.expr, self.specs, self.scalar = trace, expr, specs, scalar
        if specs is not None and isinstance(expr, Ref):
            trace.kinds[expr.value] = specs[0].dtype.kind

    @property
    def cases(self) -> Pair:
        """The tensor in both cases."""
        if self.specs is None:
            raise UnknownError("a shape")
        return self.specs

    @property
    def ndim(self) -> int:
        """The number of axes."""
        a, b = self.cases
        if a.ndim != b.ndim:
            raise UnknownError("a rank")
        return int(a.ndim)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, as numbers where they never change."""
        a, b = self.cases
        if a.ndim != b.ndim:
            raise UnknownError("a rank")
        line = member_of(self, "shape")
        return tuple(
            m if m == n else Size(e.item(line, [e.literal(i)]), (m, n))
            for i, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))
        )

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.cases[0].dtype

    @property
    def device(self) -> TracedDevice:
        """The device."""
        return TracedDevice(e.member(self.expr, "device"))

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return self._member("mT")

    @property
    def T(self) -> Any:
        """All axes in the other order."""
        return self._member("T")

    def _member(self, name: str) -> Any:
        specs = self.specs and tuple(getattr(s, name) for s in self.specs)
        return Traced(self.trace, self.trace.keep(member_of(self, name)), specs)

    def _has_type(self, wanted: Any, *_: Any) -> bool:
        """Whether a cast to a type changes nothing, whatever the device has."""
        known = self.specs is not None and self.scalar is None and isinstance(wanted, DType)
        return known and all(case.dtype is wanted for case in self.cases)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(name)

        def run(*args: Any, **named: Any) -> Any:
            if name == "astype" and self._has_type(*args):
                return self

            def made(case: int) -> Any:
                given, words = cases_of(list(args))[case], cases_of(list(named.values()))[case]
                return getattr(self.cases[case], name)(
                    *given, **dict(zip(named, words, strict=True))
                )

            of = _whole(self)
            parts = [source_of(a) for a in args], {k: source_of(v) for k, v in named.items()}
            return finished(self.trace, e.method(of, name, *parts), made)

        return run

    def __getitem__(self, places: Any) -> Any:
        whole = places if isinstance(places, tuple) else (places,)
        parts = [sliced(p) for p in whole]
        return finished(
            self.trace, e.item(_whole(self), parts), lambda c: self.cases[c][cases_of(places)[c]]
        )

    def __iter__(self) -> Any:
        raise UnknownError("a walk over a tensor")

    def __bool__(self) -> bool:
        raise UnknownError("a value")

    __int__ = __float__ = __index__ = __bool__


def member_of(name: Traced, word: str) -> Expr:
    """An attribute of a tensor."""
    return e.member(_whole(name), word)


def _whole(name: Traced) -> Any_:
    """The tensor itself, where a number in its place would not do."""
    if name.scalar is not None:
        raise UnknownError("a number with methods")
    return name.expr


def finished(trace: Trace, expr: Expr, made: Callable[[int], Any]) -> Any:
    """What a call gives: names for tensors."""
    specs: Any = None
    try:
        specs = made(0), made(1)
    except (PhloxError, UnknownError):
        raise UnknownError("a call whose result is unknown") from None
    if isinstance(specs[0], Tensor):
        return Traced(trace, trace.keep(expr), specs)
    if isinstance(specs[0], tuple | list) and all(isinstance(s, Tensor) for s in specs[0]):
        if len(specs[0]) != len(specs[1]):
            raise UnknownError("a number of results")
        refs = trace.keep_several(expr, len(specs[0]))
        pairs = zip(*specs, strict=True)
        return tuple(Traced(trace, r, p) for r, p in zip(refs, pairs, strict=True))
    raise UnknownError("a result of another kind")


def source_of(value: Any) -> Any_:
    """The source of an argument."""
    if isinstance(value, Traced | Size | Kind | TracedDevice):
        return value.expr
    if isinstance(value, tuple):
        return e.row_of([source_of(v) for v in value])
    if isinstance(value, list):
        return e.list_of([source_of(v) for v in value])
    if isinstance(value, Backend):
        raise UnknownError("a device")
    if isinstance(value, np.ndarray) and value.dtype == object:
        raise UnknownError("an array of sizes")
    try:
        return e.literal(value)
    except TypeError as error:
        raise UnknownError(str(error)) from None


def sliced(place: Any) -> Any_:
    if place is Ellipsis:
        return e.text("...")
    if not isinstance(place, slice):
        return source_of(place)
    parts: list[Any] = []
    for i, bound in enumerate((place.start, place.stop, place.step)):
        if i == 2 and bound in (None, 1):
            continue
        parts += [":"] if i else []
        parts += [] if bound is None else [(source_of(bound), e.ANY)]
    return Expr(tuple(parts), e.ANY)


def operator(sign: str, binds: int, run: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The methods of an operator between two, from both sides."""

    def between(self: Traced, one: Any, two: Any) -> Any:
        if not isinstance(one, Traced | Size | int | float | bool | np.generic) or not isinstance(
            two, Traced | Size | int | float | bool | np.generic
        ):
            return NotImplemented
        if all(not isinstance(v, Traced) or v.scalar is not None for v in (one, two)):
            raise UnknownError("numbers alone")
        expr = spelled(sign, one, two, binds)
        return finished(self.trace, expr, _agreeing(run, (one, two)))

    return lambda self, other: between(self, self, other), lambda self, other: between(
        self, other, self
    )


def spelled(sign: str, one: Any, two: Any, binds: int) -> Expr:
    """An operator between two, numbers behind tensors, and none below 0 that is added."""
    if sign in ("+", "*", "&", "|") and not isinstance(two, Size) and _is_number(one):
        one, two = two, one
    number = two.scalar if isinstance(two, Traced) else two
    if sign in ("+", "-") and isinstance(number, int | float) and number < 0:
        return e.binary(source_of(one), "-+"[sign == "-"], e.literal(-number), binds)
    return e.binary(source_of(one), sign, source_of(two), binds)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, Traced) and value.scalar is not None
    )


def _agreeing(run: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[int], Any]:
    """A call in one case, if a number in place of a constant changes nothing."""

    def made(case: int) -> Any:
        whole = run(*(cases_of(a)[case] for a in args))
        if any(isinstance(a, Traced) and a.scalar is not None for a in args):
            plain = [
                a.scalar if isinstance(a, Traced) and a.scalar is not None else cases_of(a)[case]
                for a in args
            ]
            other = run(*plain)
            if (other.shape, other.dtype) != (whole.shape, whole.dtype):
                raise UnknownError("a number that counts as a tensor")
        return whole

    return made


_OPERATORS: Final = {
    "add": ("+", e.ADD, lambda a, b: a + b),
    "and": ("&", e.AND, lambda a, b: a & b),
    "floordiv": ("//", e.MUL, lambda a, b: a // b),
    "lshift": ("<<", e.SHIFT, lambda a, b: a << b),
    "matmul": ("@", e.MUL, lambda a, b: a @ b),
    "mod": ("%", e.MUL, lambda a, b: a % b),
    "mul": ("*", e.MUL, lambda a, b: a * b),
    "or": ("|", e.OR, lambda a, b: a | b),
    "pow": ("**", e.POWER, lambda a, b: a**b),
    "rshift": (">>", e.SHIFT, lambda a, b: a >> b),
    "sub": ("-", e.ADD, lambda a, b: a - b),
    "truediv": ("/", e.MUL, lambda a, b: a / b),
    "xor": ("^", e.XOR, lambda a, b: a ^ b),
}
_ORDERS: Final = {
    "eq": ("==", lambda a, b: a == b),
    "ge": (">=", lambda a, b: a >= b),
    "gt": (">", lambda a, b: a > b),
    "le": ("<=", lambda a, b: a <= b),
    "lt": ("<", lambda a, b: a < b),
    "ne": ("!=", lambda a, b: a != b),
}


def _sign(sign: str, run: Callable[[Any], Any]) -> Callable[[Traced], Any]:
    return lambda self: finished(self.trace, e.unary(sign, self.expr), lambda c: run(self.cases[c]))


def _install() -> None:
    for word, (sign, binds, run) in _OPERATORS.items():
        own, turned = operator(sign, binds, run)
        setattr(Traced, f"__{word}__", own)
        setattr(Traced, f"__r{word}__", turned)
    for word, (sign, order) in _ORDERS.items():
        setattr(Traced, f"__{word}__", operator(sign, e.COMPARE, order)[0])
    for word, sign, act in (("neg", "-", lambda x: -x), ("invert", "~", lambda x: ~x)):
        setattr(Traced, f"__{word}__", _sign(sign, act))


_install()
