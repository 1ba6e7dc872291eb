"""Tables of rules by op, a file for each family."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

R = TypeVar("R")


def joined(tables: Iterable[Mapping[str, R]]) -> dict[str, R]:
    """Return one table of them all.

    Raises:
        ValueError: when two have a row for one op.
    """
    whole: dict[str, R] = {}
    for table in tables:
        twice = whole.keys() & table.keys()
        if twice:
            raise ValueError(f"two rules for {', '.join(sorted(twice))}")
        whole |= table
    return whole
