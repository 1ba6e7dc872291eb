"""Names and arguments that do not exist: errors that say what is meant.

For packages above this one; their tables say what PyTorch's words are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ._elsewhere.named import Named
from ._elsewhere.processes import OF_PROCESSES as PROCESSES
from ._elsewhere.spellings import unknown_name as unknown_function
from ._errors.classes import UnknownNameError, nearest
from ._errors.foreign import warn_user
from ._errors.unknown_argument import unknown_argument

__all__ = [
    "PROCESSES",
    "Named",
    "unknown_argument",
    "unknown_function",
    "unknown_name",
    "warn_user",
]


def unknown_name(
    name: str, owner: str, codes: Mapping[str, str], known: Iterable[str]
) -> UnknownNameError:
    """Return the error for a name that ``owner`` lacks: what to type instead, or what is near."""
    names = list(known)
    lower = {each.lower(): each for each in codes} if name[:1].isupper() else {}
    said = name if name in codes else lower.get(name.lower())
    if said is not None:
        return UnknownNameError(name, "phlox writes this otherwise", hint=codes[said])
    same = (each for each in names if each.lower() == name.lower())
    near = next(same, None) or nearest(name, names)
    hint = near and f"{owner.removeprefix('phlox_')}.{near}"
    return UnknownNameError(name, f"no such name in {owner}", hint=hint)


def some(names: Sequence[str], most: int = 4) -> str:
    """Return some of many names, to be shown."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
