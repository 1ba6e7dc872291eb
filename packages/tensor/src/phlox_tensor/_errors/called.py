"""Errors name the function that the user called, not the ops inside of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from .classes import (
    ArgumentError,
    DTypeError,
    IndexOutOfRangeError,
    KindError,
    PhloxError,
    ShapeError,
)

P = ParamSpec("P")
R = TypeVar("R")

# What is said of arguments. Errors of a missing kernel or derivative name the op that lacks it.
OF_ARGUMENTS: Final = (ArgumentError, DTypeError, IndexOutOfRangeError, KindError, ShapeError)
# Functions that errors name already.
AS_CALLED: Final[set[Callable[..., object]]] = set()


def rename(error: PhloxError, name: str, hint: str | None = None) -> None:
    """Let an error, whose parts stay, be one of the call of this name; with another hint or its."""
    parts = {"got": error.got, "expected": error.expected, "hint": hint or error.hint}
    PhloxError.__init__(error, name, error.what, **parts)  # type: ignore[arg-type]


def as_called(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of what a function is made of name the function."""
    name = function.__name__.rstrip("_")

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except OF_ARGUMENTS as error:
            if error.op != name:
                rename(error, name)
            raise

    AS_CALLED.add(run)
    return run
