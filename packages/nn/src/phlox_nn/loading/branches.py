"""Entries by path, in branches: all at and below a path move at once, whatever their number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from .report import Entry, Found

# Where an entry stands among the others: parts of one stand in its place. () for no entry.
_Place = tuple[int, ...]


@final
class _Branch:
    """An entry, and what is below its path."""

    __slots__ = ("entry", "parts", "place")

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.entry: Any = None
        self.place: _Place = ()
        self.parts: Final[dict[str, _Branch]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing at the path and below it."""
        return not (self.place or self.parts)


@final
class Branches:
    """Entries by path, in an order that moves do not change."""

    __slots__ = ("_count", "_root")

    def __init__(self, entries: Iterable[tuple[str, Entry]]) -> None:
        """Take over entries with their paths."""
        self._root = _Branch()
        self._count = 0
        for path, entry in entries:
            self.add(path, entry)

    def add(self, path: str, entry: Entry, place: _Place | None = None) -> None:
        """Put an entry at a path, behind all others unless its place is told."""
        branch = self._made(path)
        branch.entry = entry
        branch.place = (self._count,) if place is None else place
        self._count += place is None

    def get(self, path: str) -> Entry | None:
        """Return the entry at a path; None where there is none."""
        branch = self._found(path)
        return None if branch is None else branch.entry

    def pop(self, path: str) -> tuple[Entry, _Place] | None:
        """Take out the entry at a path, and its place."""
        branch = self._found(path)
        if branch is None or not branch.place:
            return None
        taken = branch.entry, branch.place
        branch.entry, branch.place = None, ()
        if branch.is_empty:
            self._cut(path)
        return taken

    def holds_below(self, path: str) -> bool:
        """Whether a path has entries below it."""
        branch = self._found(path)
        return branch is not None and bool(branch.parts)

    def move(self, before: str, after: str) -> None:
        """Bring what is at and below one path to another; all are below the empty one."""
        if before == after:
            return
        branch = self._cut(before) if before else self._root
        if not before:
            self._root = _Branch()
        if branch is not None and not branch.is_empty:
            _join(self._made(after), branch)

    def entries(self) -> Found:
        """Return the entries by path, in their order."""
        found: list[tuple[_Place, str, Entry]] = []
        work: list[tuple[tuple[str, ...], _Branch]] = [((), self._root)]
        while work:
            names, branch = work.pop()
            if branch.place:
                found.append((branch.place, ".".join(names), branch.entry))
            work += [((*names, name), part) for name, part in branch.parts.items()]
        return {path: entry for _, path, entry in sorted(found, key=lambda each: each[0])}

    def _found(self, path: str) -> _Branch | None:
        branch: _Branch | None = self._root
        for name in _names(path):
            branch = None if branch is None else branch.parts.get(name)
        return branch

    def _made(self, path: str) -> _Branch:
        branch = self._root
        for name in _names(path):
            branch = branch.parts.setdefault(name, _Branch())
        return branch

    def _cut(self, path: str) -> _Branch | None:
        """Take out a branch, and those above it that hold nothing else."""
        above, branch = [], self._root
        for name in _names(path):
            above.append((branch, name))
            if name not in branch.parts:
                return None
            branch = branch.parts[name]
        for owner, name in reversed(above):
            del owner.parts[name]
            if not owner.is_empty:
                break
        return branch


def _names(path: str) -> list[str]:
    return path.split(".") if path else []


def _join(branch: _Branch, other: _Branch) -> None:
    """Bring all of one branch into another; of two entries at one path the later one stays."""
    work = [(branch, other)]
    while work:
        into, of = work.pop()
        if of.place > into.place:
            into.entry, into.place = of.entry, of.place
        for name, part in of.parts.items():
            if name in into.parts:
                work.append((into.parts[name], part))
            else:
                into.parts[name] = part
