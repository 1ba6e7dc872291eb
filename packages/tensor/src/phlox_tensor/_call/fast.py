"""The short path of elementwise and contraction calls, for operands that need no preparation.

Entries in ``device.checking`` look at their operands themselves and raise Rejected for whatever
they do not take as it is; the full path then promotes, lifts, or raises the error that users see.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from numpy import ndarray

from .._errors.classes import (
    ArgumentError,
    DTypeError,
    PhloxError,
    Rejected,
    UnknownArgumentError,
    WrongTypeError,
)
from .._errors.foreign import is_array, type_name
from .._errors.keywords import MODES, PLACES, instead_of, refused_keyword
from .._op.declaration import Op
from .._values.dlpack import advice, item_of
from .._values.dtype import DType
from .._values.number import Number, Scalar
from .._values.tensor import Tensor
from ..no_operand import NoOperand
from .dispatch import call, wrap


def unary(op: Op, x: Any) -> Any:
    """Apply an op of one operand and no attributes."""
    if type(x) is Tensor:
        device = x.device
        try:
            return wrap(getattr(device.checking, op.name)(x.primitive), device)
        except Rejected:
            pass
    return call(op, (x,), ())


def binary(op: Op, x1: Any, x2: Any) -> Any:
    """Apply an op of two operands and no attributes."""
    if type(x1) is Tensor:
        device = x1.device
        # What is no tensor of the device is for the entry to refuse.
        p2 = x2.primitive if type(x2) is Tensor and x2.device is device else x2
        try:
            return wrap(getattr(device.checking, op.name)(x1.primitive, p2), device)
        except Rejected:
            pass
    return call(op, (x1, x2), ())


def ternary(op: Op, x1: Any, x2: Any, x3: Any) -> Any:
    """Apply an op of three operands and no attributes."""
    if type(x1) is Tensor:
        device = x1.device
        p2 = x2.primitive if type(x2) is Tensor and x2.device is device else x2
        p3 = x3.primitive if type(x3) is Tensor and x3.device is device else x3
        try:
            return wrap(getattr(device.checking, op.name)(x1.primitive, p2, p3), device)
        except Rejected:
            pass
    return call(op, (x1, x2, x3), ())


_KNOWN: Final = (Tensor, bool, int, float, Number)
_SEQUENCES: Final = (list, range, tuple)  # ``x == [1, 2]`` would be False
_TEXTS: Final = (bytes, str)
# Where no operand answers, Python does: that they are not equal.
_EQUALITIES: Final = frozenset({"equal", "not_equal"})
_REPEATING: Final = frozenset({"multiply"})  # for which text asks how often


def operator(op: Op, x1: Any, x2: Any) -> Any:
    """Apply the op behind a Python operator; NotImplemented for operands of other libraries.

    Raises:
        ArgumentError: for a NumPy array, which would take the result off the device in silence.
        DTypeError: for a complex number, which equals no element as far as Python knows.
        WrongTypeError: for a list, range or tuple, and for arrays of other libraries, which to
            Python are not equal to any tensor.
    """
    other = x2 if isinstance(x1, Tensor) else x1
    if type(other) is Tensor:  # the entry rejected it already
        return call(op, (x1, x2), ())
    if isinstance(other, _KNOWN):
        return binary(op, x1, x2)
    if getattr(other, "shape", None) == () and hasattr(other, "item"):
        left = other is x1
        number = item_of(other)  # of NumPy, or a 0-d array of another library
        if number is None:
            raise WrongTypeError(
                op.name,
                "an array of another library beside a tensor",
                got=type_name(other),
                expected="a Tensor or a number",
                hint=advice(other),
            )
        if isinstance(number, Scalar):
            return binary(op, number, x2) if left else binary(op, x1, number)
        other = number
    refused = _refused(op, other)
    if refused is None:
        return NotImplemented
    raise refused


def _refused(op: Op, other: Any) -> PhloxError | None:
    """The error for what no operator takes with a tensor; None for what may know more itself."""
    kind, equality = type(other), op.name in _EQUALITIES
    if isinstance(other, complex):
        return DTypeError(
            op.name,
            "no tensor is complex",
            got=other,
            expected="a Tensor or a real number",
            hint="px.fft.Spectrum(x, px.zeros_like(x)), which adds, multiplies and divides",
        )
    what = f"a {kind.__name__} beside a tensor"
    error: type[ArgumentError] = WrongTypeError
    if kind in _SEQUENCES:
        got = f"{len(other)} elements"
    elif kind in _TEXTS and op.name in _REPEATING:
        return error(op.name, what, got=repr(other), expected="a Tensor or a number")
    elif isinstance(other, ndarray):
        what, got = "a NumPy array beside a tensor", f"array of shape {other.shape}"
        error = ArgumentError
    elif isinstance(other, NoOperand | tuple):  # a Spectrum compares itself
        return None
    elif hasattr(kind, "__dlpack__") or (equality and is_array(other)):
        what, got = "an array of another library beside a tensor", type_name(other)
    else:
        return None
    return error(op.name, what, got=got, expected="a Tensor or a number", hint="px.asarray(y)")


REVERSED: Final = ("reversed",)  # in the keys of ``x.T``, whose order follows from the shape


def reversed_axes(op: Op, x: Tensor[Any], key: Any) -> Any:
    """The first ``x.T`` of a shape; later ones are run by what this keeps for the key."""
    order = tuple(range(x.ndim))[::-1]
    out = op(x, order)
    x.device.keep(key, x.device.ops[op.name], (order,), several=False)
    return out


def rounded(x: Tensor[Any], digits: int | None) -> Any:
    """``round(x)``: whole numbers, which stay a tensor of its type."""
    if digits is not None:
        raise ArgumentError(
            "round",
            "a number of digits",
            got=digits,
            expected="none: whole numbers",
            hint=f"(x * 1e{digits}).round() / 1e{digits}",
        )
    return x.round()


# Keywords of NumPy's functions, which call methods of ours with them, and of functions alone.
_ELSEWHERE: Final = {
    "out": "px.{op}({given}), or np.{op}(x.numpy())",
    "stable": "px.{op}({given}, stable=True)",
}


_OF_INTS: Final = ("Axes", "Axes?", "AxisOrder", "Integers", "Shape")  # sizes or axes, in one tuple


def unknown_argument(
    op: Op, wrong: dict[str, Any], more: tuple[Any, ...] = ()
) -> UnknownArgumentError:
    """Return the error for keywords that an op does not have, or for more places than it has."""
    if (name := next(iter(wrong), "")) in _ELSEWHERE:
        return _of_numpy(op, wrong, name, sys._getframe(1).f_locals)
    given = sys._getframe(1).f_locals
    first, *rest = [o.name for o in op.signature.operands]
    settings = {a.name: given[a.name] for a in op.signature.attributes if a.name in given}
    settings |= {n: MODES[v] for n, v in settings.items() if isinstance(v, str) and v in MODES}
    known = [*rest, *op.attribute_names]
    settings["said"] = _said(op, settings)
    if not more:
        return refused_keyword(op.name, wrong, known, first, settings)
    last = op.signature.attributes[-1:]
    if op.signature.operands[0].variadic:
        hint: str | None = f"px.{op.name}([x, y])"
    elif last and last[0].type in _OF_INTS:
        sizes = (settings[last[0].name], *more)
        hint = f"px.{op.name}({first}, {last[0].name}={sizes!r})"
    else:
        by_name = [o.name for o in op.signature.operands if o.named]
        by_name += [a.name for a in op.signature.attributes if a.named]
        named = dict(zip(PLACES.get(op.name, by_name), more, strict=False))
        hint = instead_of(op.name, named, known, settings)
        known = [name for name in known if name not in by_name]
    got = f"{len(more)} more, {', '.join(map(type_name, more))}"
    what, expected = "more arguments by place than there are", ", ".join([first, *known])
    return UnknownArgumentError(op.name, what, got=got, expected=expected, hint=hint)


def _said(op: Op, settings: dict[str, Any]) -> list[str]:
    """The texts of settings that are no defaults."""
    return [
        f"{a.name}={getattr(value, 'name', value)!r}"
        for a in op.signature.attributes
        if isinstance(value := settings.get(a.name), Scalar | str | tuple | list | DType)
        and value not in (a.default, ())
    ]


def _of_numpy(
    op: Op, wrong: dict[str, Any], name: str, given: dict[str, Any]
) -> UnknownArgumentError:
    """The error for a keyword that only NumPy's functions take."""
    rest = "".join(f", {text}" for text in _said(op, given))
    operands = [
        o.name for o in op.signature.operands if not o.optional or given.get(o.name) is not None
    ]
    hint = _ELSEWHERE[name].format(op=op.name, given=", ".join(operands) + rest)
    if rest or len(operands) > 1:
        hint = hint.partition(", or ")[0]
    got, expected = ", ".join(wrong), ", ".join(op.attribute_names) or None
    return UnknownArgumentError(op.name, "unknown argument", got=got, expected=expected, hint=hint)


def spread(items: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    """Let ``x.reshape(2, 3)`` mean ``x.reshape((2, 3))``."""
    if len(items) == 1:
        first = items[0]
        if type(first) is tuple:
            return first
        if isinstance(first, Sequence):
            return tuple(first)
    return items  # type: ignore[return-value]
