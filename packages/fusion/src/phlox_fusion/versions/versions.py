"""Keeping versions and evicting the oldest; ``compiled.py::__call__`` chooses among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

from .form import most_changed
from .version import Version

WARN_AT: Final = 10
_MOST_ONCE: Final = 8  # of one key, without a replay yet: each may keep a batch alive for nothing


@final
class Versions:
    """The recordings of one compiled function, by the keys of their arguments.

    Attributes:
        last: the version whose probe comes first.
        made: how many there have been.
    """

    def __init__(self, most: int) -> None:
        self.last: Version | None = None
        self.made = 0
        self._most: Final = most
        self._by_key: dict[Any, list[Version]] = {}
        self._clock = 0

    def __iter__(self) -> Iterator[Version]:
        return (version for some in self._by_key.values() for version in some)

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def of(self, key: Any) -> list[Version]:
        """The recordings of a key."""
        return self._by_key.get(key, [])

    def use(self, version: Version) -> None:
        """Note that one has served a call."""
        self._clock = version.used = self._clock + 1

    def keep(self, key: Any, version: Version) -> None:
        """Keep one more; where there is no room, the one not used for longest goes."""
        self.made += 1
        if self.last is not None:  # its probe does not update ``used``
            self.use(self.last)
        once = [(key, v) for v in self.of(key) if v.replay is None]
        pairs = [(k, v) for k, some in self._by_key.items() for v in some]
        if len(once) >= _MOST_ONCE or len(pairs) >= self._most:
            some = once if len(once) >= _MOST_ONCE else pairs
            self.drop(*min(some, key=lambda pair: pair[1].used))
        self.use(version)
        self._by_key[key] = [*self.of(key), version]

    def drop(self, key: Any, version: Version) -> None:
        """Let one go."""
        self.last = None
        left = [v for v in self.of(key) if v is not version]
        if left:
            self._by_key[key] = left
        else:
            self._by_key.pop(key, None)

    def advice(self, key: Any, made: Version) -> str:
        """Why functions are recorded again and again, before one more is kept."""
        known = self.of(key)
        changed = most_changed([*(version.form for version in self), made.form])
        asked = [guard.line for guard in made.trace.graph.guards]
        name = known[-1].what_changed() if known else ""
        around = {k[0] for k in (*self._by_key, key) if k[1:] == key[1:]}
        if len(around) > 2:  # equal arguments under different generators or devices
            return (
                "the generator or default device in use keeps changing\n"
                "hint: with px.random.use_generator(stream): stream.set_state(seed); step(batch)"
            )
        if changed and len(known) < 2:
            return f"shapes, types or structure of the arguments keep changing{changed}"
        if name:
            return f"names from outside keep changing: {name}, which may be an argument instead"
        if asked:
            return f"values that the program asks of numbers keep changing (asked at {asked[0]})"
        return "what cells hold keeps changing its structure"
