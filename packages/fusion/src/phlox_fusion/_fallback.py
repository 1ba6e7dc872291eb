"""Replacements that fail where what they stand for does not: a fault of ours, never silent."""

from __future__ import annotations

import warnings
from threading import Lock
from typing import Final, final

from phlox_tensor import DisagreementError
from phlox_tensor.capture import line_of_user


@final
class Fallbacks:
    """How often what was written ran, and went well, after its replacement had failed.

    Attributes:
        count: it.
    """

    def __init__(self, op: str, replacement: str, written: str, hint: str) -> None:
        """Start at 0.

        Args:
            op: that errors name.
            replacement: what may fail.
            written: what runs in its place.
            hint: how to do without replacements.
        """
        self.count = 0
        self._op: Final = op
        self._replacement: Final = replacement
        self._written: Final = written
        self._hint: Final = hint
        self._lock: Final = Lock()

    def note(self, error: Exception, whose: object, *, check: bool) -> None:
        """Count an error; the first one is a warning at the line of the user.

        Args:
            error: of the replacement.
            whose: it is.
            check: raise in place of that.

        Raises:
            DisagreementError: in check mode.
        """
        if check:
            raise self.disagreement(error) from error
        with self._lock:
            self.count += 1
            first = self.count == 1
        if first:
            text = (
                f"[{self._op}] {self._replacement} of {whose!r} failed, a fault of phlox; "
                f"{self._written} ran in its place: {_shown(error)}\nhint: {self._hint}"
            )
            file, _, line = line_of_user().rpartition(":")
            warnings.warn_explicit(text, UserWarning, file, int(line))

    def disagreement(self, error: Exception) -> DisagreementError:
        """Return the error of check mode."""
        return DisagreementError(
            self._op,
            f"{self._replacement} failed where {self._written} did not",
            got=_shown(error),
            expected=f"what {self._written} gave",
            hint=self._hint,
        )


def of_a_function() -> Fallbacks:
    """Return the count of a compiled function, from 0."""
    hint = "PHLOX_COMPILE=off runs functions as they are"
    return Fallbacks("compile", "a replay", "the function", hint)


def of_a_device() -> Fallbacks:
    """Return the count of a lazy device, from 0."""
    return Fallbacks("fusion", "a program", "its ops one by one", "PHLOX_FUSION=off runs ops alone")


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
