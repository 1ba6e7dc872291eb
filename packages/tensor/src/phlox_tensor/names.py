"""Errors for names and arguments that do not exist, with what was probably meant.

For packages above this one; their tables say what PyTorch's words are here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._elsewhere.named import Named
from ._elsewhere.processes import OF_PROCESSES as PROCESSES
from ._elsewhere.spellings import unknown_name as unknown_function
from ._errors.foreign import warn_user
from ._errors.unknown_argument import unknown_argument
from ._errors.unknown_name import unknown_name

__all__ = [
    "PROCESSES",
    "Named",
    "unknown_argument",
    "unknown_function",
    "unknown_name",
    "warn_user",
]


def some(names: Sequence[str], most: int = 4) -> str:
    """Return some of many names, to be shown."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
