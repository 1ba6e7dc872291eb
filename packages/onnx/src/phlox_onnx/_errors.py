"""What can be wrong with a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from phlox_tensor import ArgumentError, PhloxError

if TYPE_CHECKING:
    from ._graph import Node

# What code that trusts its operands raises for those that a file makes up. An AttributeError or
# AssertionError is a fault of ours, and is told as one.
RAW: Final = (ArithmeticError, LookupError, TypeError, ValueError)


_NOTES: Final = "__notes__"  # what a node inside of the node has given its place


def refuse_other_words(op: str, name: str, value: object, words: Sequence[object]) -> None:
    """Refuse an option that is none of its words.

    Raises:
        ArgumentError: naming them.
    """
    if not any(value is word or (isinstance(word, str) and value == word) for word in words):
        expected = ", ".join(map(repr, words))
        raise ArgumentError(op, f"unknown {name}", got=repr(value), expected=expected)


class OnnxError(PhloxError, ValueError):
    """A file is no ONNX model, is malformed, or holds what phlox has no row for."""


def refused(error: Exception, node: Node, own: bool = False) -> OnnxError:
    """The error of a node that asks for what cannot be, or of a function that a user registered."""
    if own:
        got = f"{type(error).__name__}: {error}, in {node.where()}"
        return OnnxError("onnx", "a registered function fails", got=got)
    return OnnxError(
        "onnx",
        "a node does not fit what it is given",
        got=f"{type(error).__name__}: {error}, in {node.where()}",
        hint="phlox onnx model.onnx --check",
    )


def of_node(error: PhloxError, node: Node) -> PhloxError:
    """The error of a row, under the name of the op that failed: several ops may share a helper."""
    if not isinstance(error, OnnxError) or error.op in ("onnx", node.op) or hasattr(error, _NOTES):
        return error
    made = OnnxError(node.op, error.what, got=error.got, expected=error.expected, hint=error.hint)
    return made.with_traceback(error.__traceback__)


@contextmanager
def within(node: Node) -> Iterator[None]:
    """Name the node in whatever goes wrong while the file is prepared."""
    try:
        yield
    except PhloxError:
        raise
    except RAW as error:
        raise refused(error, node) from error
