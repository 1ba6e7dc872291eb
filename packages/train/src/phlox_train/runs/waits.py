"""Errors for rules that wait for a value that nobody logs, and so would never do anything."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from phlox_tensor import ArgumentError


def check_waits(rules: Iterable[Any], logged: Collection[str], *, over: bool) -> None:
    """Refuse a rule whose value was not logged, though others of its split were.

    Args:
        rules: rules, some of which have the ``name`` of a value.
        logged: names of values, by split.
        over: whether nothing more will be logged.
    """
    splits = {name.rpartition("/")[0] for name in logged}
    for rule in rules:
        name = getattr(rule, "name", None)
        if not isinstance(name, str) or name in logged:
            continue
        split = name.rpartition("/")[0]
        # A split of which nothing was logged may come later, unless its name is one misspelt.
        if over or not split or split in splits or get_close_matches(split, splits):
            near = get_close_matches(name, logged, 1, 0.75)
            kind, log = type(rule).__name__, f"run.log(..., split={split!r})"
            raise ArgumentError(
                "run",
                f"{kind} waits for a value that was not logged",
                got=name,
                expected=", ".join(logged),
                hint=f"{kind}({near[0]!r})" if near else log,
            )
