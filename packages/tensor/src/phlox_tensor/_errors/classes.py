"""The errors of phlox: one base class, a fixed text shape, typed fields behind the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class PhloxError(Exception):
    """Base of every error that phlox raises on purpose.

    The text reads ``[op] what failed: got A, expected B`` and, where there is one,
    ``hint:`` with code to type. The parts stay readable as attributes.
    """

    def __init__(
        self,
        op: str,
        what: str,
        *,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> None:
        """Compose the message from its parts."""
        self.op: Final = op
        self.what: Final = what
        self.got: Final = got
        self.expected: Final = expected
        self.hint: Final = hint
        super().__init__(_compose(op, what, got, expected, hint))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by parts, so that errors cross process borders, with their notes."""
        parts = (type(self), self.op, self.what, self.got, self.expected, self.hint)
        return _rebuild, parts, vars(self)


def _rebuild(
    cls: type[PhloxError], op: str, what: str, got: object, expected: object, hint: str | None
) -> PhloxError:
    return cls(op, what, got=got, expected=expected, hint=hint)


def _compose(op: str, what: str, got: object, expected: object, hint: str | None) -> str:
    text = f"[{op}] {what}"
    parts = []
    if got is not None:
        parts.append(f"got {got}")
    if expected is not None:
        parts.append(f"expected {expected}")
    if parts:
        text += ": " + ", ".join(parts)
    if hint is not None:
        text += f"\nhint: {hint}"
    return text


class ArgumentError(PhloxError, ValueError):
    """An argument has a value that the call does not take."""


class BackendUnavailableError(PhloxError, RuntimeError):
    """A backend cannot run here: no adapter, no driver, not installed."""


class BatchingError(PhloxError, RuntimeError):
    """A function under ``vmap`` needs what lanes do not have: one value, or an op's rule."""


class DTypeError(PhloxError, TypeError):
    """Element types do not combine, or a backend lacks the requested one."""


class CompileError(PhloxError, RuntimeError):
    """A function cannot be compiled: a replay would not do what the function does."""


class DeviceError(PhloxError, ValueError):
    """Tensors on devices that do not combine, or a device that lacks an ability."""


class DisagreementError(PhloxError, ArithmeticError):
    """Two devices gave results that differ by more than the op declares.

    Attributes:
        operands: those of the op, as tensors.
    """

    operands: tuple[object, ...] = ()


class GradientError(PhloxError, RuntimeError):
    """A derivative was requested where there is none."""


class IndexOutOfRangeError(PhloxError, IndexError):
    """An index points outside its axis."""


class KindError(PhloxError, TypeError):
    """An op was called on a tensor of a kind (Float, Int, Bool) that it does not take."""


class RecordError(PhloxError, ValueError):
    """A record is corrupt, truncated, or does not fit what it is loaded into."""


class ShapeError(PhloxError, ValueError):
    """Shapes do not fit the op."""


class SharingError(ArgumentError, BufferError):
    """Data would have to be copied, and the call forbids it."""


class TreeError(PhloxError, ValueError):
    """Trees differ in structure, or a container of an unknown type holds a tensor."""


class UnknownArgumentError(ArgumentError, TypeError):
    """A call names an argument that it does not have."""


class UnknownNameError(PhloxError, AttributeError):
    """A module or a tensor has no attribute of this name."""


class UnknownOpError(ArgumentError, KeyError):
    """A table has no op of this name."""

    __str__ = Exception.__str__  # that of KeyError quotes


class WrongTypeError(ArgumentError, TypeError):
    """An argument is of a type that the call does not take."""


class Rejected(Exception):
    """An entry that checks its operands does not take them as they are."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """Return the known name that is most like another; None where none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a failing call needs it

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)
