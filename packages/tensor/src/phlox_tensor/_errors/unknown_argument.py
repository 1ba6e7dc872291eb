"""The error for an argument that a call does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .classes import UnknownArgumentError, nearest


def unknown_argument(
    op: str,
    given: Iterable[str],
    known: Iterable[str],
    words: Mapping[str, tuple[str, ...]] | None = None,
    advice: Mapping[str, str] | None = None,
) -> UnknownArgumentError | None:
    """Return the error for the first argument that a call does not have; None where it has all.

    Args:
        op: what was called.
        given: the names of the arguments.
        known: those that it has.
        words: words of other libraries and ours, of which a call has some.
        advice: what to do instead of arguments that have no word here; of one call alone by
            ``"op.name"``.
    """
    names = list(known)
    for name in given:
        if name in names:
            continue
        ours = [each for each in (words or {}).get(name, ()) if each in names]
        near = nearest(name, names)
        meant = ours or ([near] if near else [])
        hint = ", ".join(f"{each}=..." for each in meant) or None
        if own := (advice or {}).get(f"{op}.{name}"):  # where the word means something else
            ours, hint = [name], own
        return UnknownArgumentError(
            op,
            "unknown argument",
            got=name,
            expected=", ".join(names) or "none",
            hint=hint if ours else (advice or {}).get(name, hint),
        )
    return None
