"""From a defect found deep inside a file to a RecordError that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from reprlib import Repr
from typing import Final

from phlox_tensor import RecordError

_SHOWN: Final = 80
# Lists that stand in each other twice would take a power of two to print.
_BRIEF: Final = Repr()
_BRIEF.maxlevel, _BRIEF.maxlong, _BRIEF.maxother, _BRIEF.maxstring = 4, 90, 200, 200
_BRIEF.maxdict = _BRIEF.maxlist = _BRIEF.maxtuple = 20


class Malformed(Exception):
    """What is wrong, without the file's name; `located` adds it."""

    def __init__(
        self, what: str, *, got: object = None, expected: object = None, hint: str | None = None
    ) -> None:
        """Keep the parts for `located`."""
        super().__init__(what)
        self.what: Final = what
        self.got: Final = got
        self.expected: Final = expected
        self.hint: Final = hint


@contextmanager
def located(op: str, name: str) -> Iterator[None]:
    """Turn a `Malformed` from the body into a `RecordError` that names `op` and the file."""
    try:
        yield
    except Malformed as bad:
        raise RecordError(
            op, f"{name}: {bad.what}", got=bad.got, expected=bad.expected, hint=bad.hint
        ) from None


def shown(text: object) -> str:
    """Return `text` fit for a terminal: no control characters, not long.

    Names come from files, so they may hold escape sequences or megabytes.
    """
    whole = text if isinstance(text, str) else _BRIEF.repr(text)
    head = whole[:_SHOWN]
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in head)
    return safe if len(whole) <= _SHOWN else safe + "…"
