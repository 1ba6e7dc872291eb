"""Replays and programs that fail where what they replace does not: a fault of ours, and counted."""

from __future__ import annotations

import warnings
from threading import Lock
from typing import Final, final

from phlox_tensor import DisagreementError, Rejected
from phlox_tensor.capture import line_of_user, may_be_of_values

# What may fail, what runs in its place, how to do without; and whether what runs then may catch
# errors that values decide.
_OF: Final = {
    "compile": ("a replay", "the function", "PHLOX_COMPILE=off runs functions as they are", True),
    "fusion": ("a program", "its ops one by one", "PHLOX_FUSION=off runs ops alone", False),
}


@final
class Fallbacks:
    """How often what was written ran, and went well, after its replacement had failed."""

    def __init__(self, op: str) -> None:
        self.count = 0
        self._op: Final = op
        self._replacement, self._written, self._hint, self._catches = _OF[op]
        self._lock: Final = Lock()
        self._told = False

    def note(self, error: Exception, whose: object, *, check: bool) -> None:
        """Count an error; the first one is a warning at the line of the user.

        One that the function may have caught is only counted.

        Args:
            check: raise in place of that.
        """
        caught = self.may_be_caught(error)
        if check and not caught:
            raise self.disagreement(error) from error
        with self._lock:
            self.count += 1
            first = not (caught or self._told)
            self._told |= first
        if first:
            text = (
                f"[{self._op}] {self._replacement} of {whose!r} failed, a fault of phlox; "
                f"{self._written} ran in its place: {_shown(error)}\nhint: {self._hint}"
            )
            file, _, line = line_of_user().rpartition(":")
            warnings.warn_explicit(text, UserWarning, file, int(line))

    def may_be_caught(self, error: Exception) -> bool:
        """Whether what is written may have had this error, and caught it.

        So it is with an int of more than 64 bits, which ops refuse and get as a float then.
        """
        return self._catches and (isinstance(error, Rejected) or may_be_of_values(error))

    def disagreement(self, error: Exception) -> DisagreementError:
        """Return the error of check mode."""
        return DisagreementError(
            self._op,
            f"{self._replacement} failed where {self._written} did not",
            got=_shown(error),
            expected=f"what {self._written} gave",
            hint=self._hint,
        )


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
