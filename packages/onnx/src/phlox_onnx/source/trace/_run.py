"""Rows run on names: their own code, with the functions of phlox replaced by what writes them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Final, final

import phlox_tensor as px
from phlox_tensor import Tensor

from . import _expr as e
from ._size import Size, UnknownError
from ._traced import Trace, Traced, TracedDevice, _agreeing, finished, source_of, spelled

_ROWS: Final = __name__.partition(".")[0] + ".table"
# What elementwise ops read as operators.
SIGNS: Final = {
    "add": ("+", e.ADD),
    "bitwise_and": ("&", e.AND),
    "bitwise_or": ("|", e.OR),
    "divide": ("/", e.MUL),
    "equal": ("==", e.COMPARE),
    "greater": (">", e.COMPARE),
    "greater_equal": (">=", e.COMPARE),
    "less": ("<", e.COMPARE),
    "less_equal": ("<=", e.COMPARE),
    "logical_and": ("&", e.AND),
    "logical_or": ("|", e.OR),
    "multiply": ("*", e.MUL),
    "subtract": ("-", e.ADD),
}
UNARY: Final = {"logical_not": "~", "negative": "-"}
# Functions of one tensor that read as methods.
METHODS: Final = frozenset(
    """abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isnan log reciprocal
    relu round sigmoid sign sin sinh softmax sqrt square tan tanh""".split()  # noqa: SIM905 - words
)


@final
class Written:
    """The functions of phlox, each of which notes that it was called."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(px, name)
        if isinstance(found, types.FunctionType):
            return self.function(name, found)
        return found

    def function(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """One function."""

        def run(*args: Any, **named: Any) -> Any:
            flat = [*args, *named.values()]
            if not any(_is_written(v) for v in flat):
                return real(*args, **named)
            if (
                args
                and isinstance(args[0], Traced)
                and all(a.scalar is not None for a in args if isinstance(a, Traced))
            ):
                raise UnknownError("numbers alone")
            if name in SIGNS and len(args) == 2 and not named:
                expr = spelled(SIGNS[name][0], *args, SIGNS[name][1])
                return finished(self._trace, expr, _agreeing(real, args))
            given, more = _shortened(name, real, args, named)
            words = {k: source_of(v) for k, v in more.items()}
            parts = [source_of(a) for a in given]

            def once(*given: Any) -> Any:
                return real(
                    *given[: len(args)], **dict(zip(named, given[len(args) :], strict=True))
                )

            return finished(
                self._trace, spelled_call(name, parts, words), _agreeing(once, tuple(flat))
            )

        return run


def _shortened(
    name: str, real: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments without those that are as they would be; settings of windows by name."""
    try:
        parameters = list(inspect.signature(real).parameters.values())
    except ValueError:
        return list(args), named
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return list(args), named
    given: list[Any] = []
    words: dict[str, Any] = {}
    for parameter, value in zip(parameters, args, strict=False):
        short = _uniform(value) if "pool" in name or "conv" in name else value
        plain = not isinstance(short, Traced | Size | TracedDevice | tuple | list)
        if plain and parameter.default is not parameter.empty and short == parameter.default:
            continue
        late = words or len(given) < parameters.index(parameter) or len(given) >= 3
        if late and parameter.kind is not parameter.POSITIONAL_ONLY:
            words[parameter.name] = short
        else:
            given.append(short)
    return given, words | named


def _uniform(value: Any) -> Any:
    """One number for a tuple of equal ones, and one for both sides of an axis."""
    if not isinstance(value, tuple) or not value:
        return value
    shorter = tuple(map(_uniform, value))
    if not all(isinstance(v, int) for v in shorter):
        return value
    return shorter[0] if len(set(shorter)) == 1 else shorter


def spelled_call(name: str, parts: list[Any], words: dict[str, Any] | None = None) -> e.Expr:
    """A call of a function of phlox, as an operator or a method where it reads better."""
    words = words or {}
    if name in SIGNS and len(parts) == 2 and not words:
        return e.binary(parts[0], SIGNS[name][0], parts[1], SIGNS[name][1])
    if name in UNARY:
        return e.unary(UNARY[name], parts[0])
    if name in METHODS:
        return e.method(parts[0], name, parts[1:], words)
    return e.call(f"px.{name}", parts, words)


def _is_written(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_is_written, value))
    return isinstance(value, Traced | TracedDevice | Size)


def written(function: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    """A row, or what it calls, for names instead of tensors."""
    seen: dict[int, Any] = {}
    library = Written(trace)

    def other(value: Any) -> Any:
        if value is px:
            return library
        if value is Tensor:
            return Traced
        if isinstance(value, types.FunctionType):
            if value.__module__.startswith(_ROWS):
                return copied(value)
            public = getattr(px, value.__name__, None) is value
            return library.function(value.__name__, value) if public else value
        if isinstance(value, dict) and all(
            isinstance(v, types.FunctionType) for v in value.values()
        ):
            return {k: other(v) for k, v in value.items()}
        return value

    def copied(real: types.FunctionType) -> Any:
        if id(real) in seen:
            return seen[id(real)]
        scope: dict[str, Any] = {"__builtins__": __builtins__}
        cells = tuple(types.CellType(other(c.cell_contents)) for c in real.__closure__ or ())
        made = types.FunctionType(real.__code__, scope, real.__name__, real.__defaults__, cells)
        made.__kwdefaults__ = real.__kwdefaults__
        seen[id(real)] = made
        names = set(_names_of(real.__code__))
        scope |= {n: other(v) for n, v in real.__globals__.items() if n in names}
        return made

    return copied(function) if isinstance(function, types.FunctionType) else function


def _names_of(code: types.CodeType) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return [*code.co_names, *(n for c in inner for n in _names_of(c))]
