"""Checks of a declaration before its op is registered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from math import inf
from types import NoneType
from typing import Any, Final

from .._errors.classes import ArgumentError, PhloxError, UnknownArgumentError, WrongTypeError
from .signature import Signature, parse

Fits = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_error(value: Any) -> bool:
    return _is_number(value) and 0 <= value < inf


def _is_interval(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))
    return pair and value[0] <= value[1]


def _is_domain(value: Any) -> bool:
    named = isinstance(value, Mapping)
    return all(map(_is_interval, value.values())) if named else _is_interval(value)


def _is_a(*kinds: type) -> Fits:
    return lambda value: isinstance(value, kinds)


def _all_have(attribute: str) -> Fits:
    """Whether a value is a tuple of such objects."""
    return lambda value: isinstance(value, tuple) and all(hasattr(v, attribute) for v in value)


def _are_texts(values: Iterable[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


_BOOL: Final = (_is_a(bool), "True or False")
_ERROR: Final = (_is_error, "a number from 0")
_FUNCTION: Final = (lambda value: value is None or callable(value), "a function")
# Fields of ``Op`` that a declaration may give -> what they are.
FIELDS: Final[dict[str, tuple[Fits, str]]] = {
    "atol": _ERROR,
    "cases": (_all_have("operands"), "a tuple of case((2, 3), axis=1)"),
    "compares": _BOOL,
    "derive": _FUNCTION,
    "doc": (_is_a(str), "a sentence"),
    "domain": (_is_domain, "(lowest, highest), or a dict of them by operand"),
    "example": (_is_a(str), "a line of code and its result"),
    "expand": _FUNCTION,
    "folds": _BOOL,
    "function": _BOOL,
    "internal": _BOOL,
    "linear": _BOOL,
    "measured": _BOOL,
    "method": _BOOL,
    "multilinear": _BOOL,
    "numpy": _FUNCTION,
    "positive": (
        lambda value: isinstance(value, tuple) and _are_texts(value),
        "a tuple of names of operands",
    ),
    "prepare": _FUNCTION,
    "refuses": (_all_have("error"), "a tuple of refusal(ShapeError, (2, 3), axis=5)"),
    "rounded": (lambda value: value is None or _is_error(value), "a number from 0, or None"),
    "shape": _FUNCTION,
    "signed_zeros": (_is_a(bool, NoneType), "True, False or None"),
    "source": _BOOL,
    "truths": _BOOL,
    "ulp": _ERROR,
    "unpromised": (
        lambda value: isinstance(value, Mapping) and _are_texts(value.values()),
        "a dict from operands to reasons",
    ),
    "with_tensors": _FUNCTION,
    "work": _FUNCTION,
}
# Functions that take the operands, then the attributes.
_CALLED: Final = ("expand", "numpy", "with_tensors")


def parsed(name: str, text: Any) -> Signature:
    """Return the parsed signature of an op."""
    example = '"x: Float; slope: float = 0.01 -> Float"'
    if not isinstance(text, str):
        what = f"the signature of {name!r} is no text"
        raise WrongTypeError("declare", what, got=repr(text), expected=example)
    try:
        return parse(text)
    except PhloxError:
        raise
    except ValueError as error:
        raise ArgumentError("declare", str(error), expected=f"a signature, {example}") from error


def check_fields(name: str, taken: Signature, fields: Mapping[str, Any]) -> None:
    """Refuse fields that no op has, and values that are none of theirs.

    Raises:
        ArgumentError: for a domain or a number for absence of what is no operand or attribute, and
            for a formula that does not take them.
    """
    for field, value in fields.items():
        if field not in FIELDS:
            near = get_close_matches(field, FIELDS, n=1)
            raise UnknownArgumentError(
                "declare",
                f"an op has no such field: {name}",
                got=field,
                expected=", ".join(FIELDS),
                hint=f"{near[0]}=..." if near else None,
            )
        fits, expected = FIELDS[field]
        if not fits(value):
            what = f"{field} of {name!r} is not what it has to be"
            raise WrongTypeError("declare", what, got=repr(value), expected=expected)
    operands, attributes = [o.name for o in taken.operands], [a.name for a in taken.attributes]
    _check_names(name, "domain", fields.get("domain"), operands)
    _check_names(name, "unpromised", fields.get("unpromised"), operands)
    for field in _CALLED:
        own = [] if operands or field != "expand" else ["device"]
        _check_call(name, field, fields.get(field), [*own, *operands, *attributes])


def _check_names(name: str, field: str, value: Any, known: Sequence[str]) -> None:
    for each in value if isinstance(value, Mapping) else ():
        if each not in known:
            what = f"{field} of {name!r} names what the signature has not"
            raise ArgumentError(
                "declare", what, got=repr(each), expected=", ".join(known) or "nothing"
            )


def _check_call(name: str, field: str, function: Any, names: Sequence[str]) -> None:
    """Refuse a function that cannot be called with so many arguments."""
    try:
        form = None if function is None else signature(function)
    except (TypeError, ValueError):  # of C, which does not say what it takes
        return
    try:
        if form is not None:
            form.bind(*names)
    except TypeError:
        raise ArgumentError(
            "declare",
            f"{field} of {name!r} does not take the operands and attributes",
            got=f"a function of {form}",
            expected=f"a function of ({', '.join(names)})",
        ) from None
