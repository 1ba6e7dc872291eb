"""Facts about classes, forgotten when the class is."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Final, Generic, TypeVar, final
from weakref import ReferenceType, ref

V = TypeVar("V")
_NOTHING: Final[Any] = object()


@final
class ByClass(Generic[V]):
    """Values by class, found once for each by a function; a class that ends takes its own along.

    Attributes:
        found: the values by the ``id`` of the class, for who cannot spare a call to ask.
    """

    __slots__ = ("_find", "_lock", "_refs", "found")

    def __init__(self, find: Callable[[type], V]) -> None:
        """Keep the function that finds the value of a class."""
        self.found: Final[dict[int, V]] = {}
        self._find = find
        self._refs: dict[int, ReferenceType[type]] = {}
        # What is found while somebody forgets would stay for good.
        self._lock: Final = RLock()

    def of(self, cls: type) -> V:
        """Return what is known of a class."""
        key = id(cls)
        known: Any = self.found.get(key, _NOTHING)
        if known is not _NOTHING:
            return known
        with self._lock:
            value = self._find(cls)
            self._refs[key] = ref(cls, lambda _: self._end(key))
            self.found[key] = value
        return value

    def forget(self, change: Callable[[], Any]) -> None:
        """Find everything anew after a change."""
        with self._lock:
            change()
            self.found.clear()
            self._refs.clear()

    def _end(self, key: int) -> None:
        """Drop what is known of a class before another one can have its place in memory."""
        self.found.pop(key, None)
        self._refs.pop(key, None)
