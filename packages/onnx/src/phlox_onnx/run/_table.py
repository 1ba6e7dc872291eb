"""All rows: those of the tables, and those that users add."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, Final

from phlox_tensor import ArgumentError

from .._graph import Graph, Key, Node, walk
from ..table import TABLE
from ..table._row import Row, row

_REGISTERED: Final[dict[Key, Row]] = {}


def register(
    domain: str, op: str, function: Callable[..., Any], *, trained: Sequence[str] = ()
) -> None:
    """Add an op, or give one another meaning.

    Inputs are the positional parameters of the function and attributes those by keyword, under the
    names that the file has; it takes tensors and returns one, or a tuple of them.

    Args:
        domain: ``""`` is that of ONNX itself.
        op: the name of the op in files.
        function: what it does.
        trained: its inputs whose constants are weights; others are kept, but never trained.

    Raises:
        ArgumentError: for a name that is none, what is no function or hides its parameters, and an
            input that the function lacks.

    Example:
        >>> register("my.domain", "Twice", lambda x, *, scale=1.0: x * 2 * scale)
    """
    words: tuple[object, object] = domain, op
    if not op or not all(isinstance(word, str) for word in words):
        got = f"{domain!r}, {op!r}"
        raise ArgumentError("register", "an op has no name", got=got, expected="two words")
    _refuse_hidden(function)
    made = replace(row(1, function, trained=" ".join(trained), draws=True), registered=True)
    known = [p.name for p in (*made.inputs, *([made.rest] if made.rest else []))]
    if not made.trained <= set(known):
        raise ArgumentError("register", "no such input", got=trained, expected=", ".join(known))
    _REGISTERED["" if domain == "ai.onnx" else domain, op] = made


def _refuse_hidden(function: object) -> None:
    if not callable(function):
        raise ArgumentError("register", "this is no function", got=type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ArgumentError("register", "this is no function", got=repr(function)) from error
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        expected = "each attribute by its name"
        got = f"**{[p.name for p in parameters][-1]}"
        raise ArgumentError("register", "parameters without a name", got=got, expected=expected)


def row_of(key: Key) -> Row | None:
    """The row of an op, if there is one."""
    return _REGISTERED.get(key) or TABLE.get(key)


def unsupported(graph: Graph) -> dict[Key, list[Node]]:
    """Nodes without a row, by op."""
    found: dict[Key, list[Node]] = {}
    for node in walk(graph):
        if row_of(node.key) is None:
            found.setdefault(node.key, []).append(node)
    return found


def nearest(op: str) -> Key | None:
    """The op with a row whose name is most like another, whatever its domain."""
    names = {name: (domain, name) for domain, name in (*TABLE, *_REGISTERED)}
    return next((names[name] for name in get_close_matches(op, names, 1)), None)
