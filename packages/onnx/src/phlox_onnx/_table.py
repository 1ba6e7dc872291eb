"""All rows: those of the tables, and those that users add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from phlox_tensor import ArgumentError

from ._graph import Graph, Key, Node, walk
from ._row import Row, since
from .table import TABLE

_OWN: Final[dict[Key, Row]] = {}


def register(domain: str, op: str, function: Callable[..., Any]) -> None:
    """Add an op, or give one another meaning.

    Inputs are the positional parameters of the function and attributes those by keyword, under the
    names that the file has; it takes tensors and returns one, or a tuple of them.

    Args:
        domain: ``""`` is that of ONNX itself.
        op: the name of the op in files.
        function: what it does.

    Raises:
        ArgumentError: when the name is empty.

    Example:
        >>> register("my.domain", "Twice", lambda x, *, scale=1.0: x * 2 * scale)
    """
    if not op:
        raise ArgumentError("register", "an op has no name", got=repr(op))
    _OWN["" if domain == "ai.onnx" else domain, op] = since(1, function)


def row_of(key: Key) -> Row | None:
    """The row of an op, if there is one."""
    return _OWN.get(key) or TABLE.get(key)


def unsupported(graph: Graph) -> dict[Key, list[Node]]:
    """Nodes without a row, by op."""
    found: dict[Key, list[Node]] = {}
    for node in walk(graph):
        if row_of(node.key) is None:
            found.setdefault(node.key, []).append(node)
    return found
