"""What a function may not read from outside: it is too much to compare at each call."""

from __future__ import annotations

from typing import Any, Final

from phlox_tensor import CompileError

MOST_BYTES: Final = 16_384  # of bytes, arrays and views of memory
MOST_NUMBERS: Final = 4_096  # of an array of NumPy
MOST_PARTS: Final = 1_000  # of a container
MOST_VALUES: Final = 10_000  # of one function
DEEPEST: Final = 16  # containers and objects in each other


def too_large(item: Any, where: str) -> CompileError:
    """The error for a container of too many parts."""
    name = where.partition(" ")[0]
    return CompileError(
        "compile",
        "a container from outside is too large to be compared at each call",
        got=f"{where}, a {type(item).__name__} of {len(item)} parts",
        expected=f"at most {MOST_PARTS} parts, {MOST_BYTES} bytes",
        hint=f"give what is needed of it as an argument; tuple({name}) for plain values that "
        "never change; px.Cell for what the function changes",
    )


def large_array(item: Any, where: str, base: str) -> CompileError:
    """The error for an array of too many elements; ``base``: what may be written to."""
    name = where.partition(" ")[0]
    view = "" if base == name else ", a view of an array that may be written to"
    return CompileError(
        "compile",
        "an array of NumPy from outside is too large to be compared at each call",
        got=f"{where} of shape {item.shape}{view}",
        expected=f"tensors; arrays of at most {MOST_NUMBERS} elements",
        hint=f"px.asarray({name}) outside of the function; or "
        f"{base}.setflags(write=False) for what never changes",
    )


def too_deep(where: str) -> CompileError:
    """The error for what lies too far inside, or behind too many values."""
    return CompileError(
        "compile",
        "what the function reads from outside is too much to be compared at each call",
        got=f"more behind {where}",
        expected=f"at most {DEEPEST} containers in each other, and {MOST_VALUES} values",
        hint="give what is needed of it as an argument",
    )


def an_iterator(item: Any, where: str) -> CompileError:
    """The error for what gives another value each time, which a replay would not ask for."""
    return CompileError(
        "compile",
        "the function reads an iterator from outside, which a replay would not move on",
        got=f"{where}, a {type(item).__name__}",
        expected="values that depend on arguments and cells",
        hint="step(x, next(schedule)) outside of the function; px.Cell for a count",
    )


def host_random() -> CompileError:
    """The error for random numbers that a replay would not draw."""
    return CompileError(
        "compile",
        "the function draws random numbers of the host, which a replay would not draw again",
        expected="random numbers of px.random",
        hint="px.random.uniform(()) in place of random.random(); or give the number as an argument",
    )


def told_apart(where: str) -> CompileError:
    """The error for an argument that code may compare with the very object from outside."""
    return CompileError(
        "compile",
        "an argument is also there from outside, and the function compares objects by identity, "
        "where a replay could not tell",
        got=where,
        expected="arguments of their own",
        hint="None in the place of an object that stands for nothing; or a bool argument",
    )
