"""Caches that forget what is not used, and never everything at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """At least the last `capacity` / 2 values that were used, and at most `capacity`.

    Two generations: when the young one is full, the old one is dropped and the young one grows
    old; what is found in the old one joins the young one. ``get`` looks only among the young, at
    the price of a dict; `find` does the rest: ``cache.get(key) or cache.find(key, make)``.
    """

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self.get = self._young.get

    def find(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now where it is not known. Values are never None."""
        value = self._young.get(key)
        if value is None:
            value = self._old.pop(key, None)
            if value is None:
                value = make()
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
                self.get = self._young.get
            self._young[key] = value
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._old, self._young = {}, {}
        self.get = self._young.get

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
