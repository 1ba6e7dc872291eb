"""What can be wrong with a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from phlox_tensor import ArgumentError, PhloxError

# What code that trusts its operands raises for those that a file makes up. An AttributeError or
# AssertionError is a fault of ours, and is told as one.
RAW: Final = (ArithmeticError, LookupError, TypeError, ValueError)


_NOTES: Final = "__notes__"  # what a node inside of the node has given its place


def refuse_other_words(op: str, name: str, value: object, words: Sequence[object]) -> None:
    """Refuse an option that is none of its words."""
    if not any(value is word or (isinstance(word, str) and value == word) for word in words):
        expected = ", ".join(map(repr, words))
        raise ArgumentError(op, f"unknown {name}", got=repr(value), expected=expected)


class OnnxError(PhloxError, ValueError):
    """A file is no ONNX model, is malformed, or holds what phlox has no row for."""


def refused(error: Exception, where: str, own: bool = False) -> OnnxError:
    """The error of a node that asks for what cannot be, or of a function that a user registered."""
    got = f"{type(error).__name__}: {error}, in {where}"
    if own:
        return OnnxError("onnx", "a registered function fails", got=got)
    what, hint = "a node does not fit what it is given", "phlox onnx model.onnx --check"
    return OnnxError("onnx", what, got=got, hint=hint)


def of_op(error: PhloxError, op: str) -> PhloxError:
    """The error of a row, under the name of the op that failed: several ops may share a helper."""
    if not isinstance(error, OnnxError) or error.op in ("onnx", op) or hasattr(error, _NOTES):
        return error
    made = OnnxError(op, error.what, got=error.got, expected=error.expected, hint=error.hint)
    return made.with_traceback(error.__traceback__)


@contextmanager
def within(where: str) -> Iterator[None]:
    """Name the node in whatever goes wrong while the file is prepared."""
    try:
        yield
    except PhloxError:
        raise
    except RAW as error:
        raise refused(error, where) from error
