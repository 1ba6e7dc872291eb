"""Errors for names that do not exist: what to type instead, or what is spelled like it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .classes import UnknownNameError, nearest


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
