"""What a call depends on besides its arguments: the default device, the generator, modes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, final


@final
class _Eager:
    """Says that a compiled function has to run as it is written."""


@final
class _Modes:
    """How many modes are entered, in all threads together; while it is 0 no source is called."""

    __slots__ = ("_lock", "entered")

    def __init__(self) -> None:
        self.entered = 0
        self._lock: Final = Lock()

    def change(self, step: int) -> None:
        """Count a mode that is entered (1) or left (-1)."""
        with self._lock:
            self.entered += step


EAGER: Final = _Eager()
MODES: Final = _Modes()
ALWAYS: Final[list[Callable[[], Hashable]]] = []
_modes: Final[list[Callable[[], Hashable]]] = []


def depend_on(source: Callable[[], Hashable], *, mode: bool = False) -> None:
    """Let compiled functions be recorded anew where ``source()`` gives something else.

    It gives ``EAGER`` where they must run as they are written, such as while somebody watches.

    Args:
        source: gives something that can be compared.
        mode: ask only while ``MODES.entered`` is not 0; it gives None where the mode is off.
    """
    (_modes if mode else ALWAYS).append(source)


def ambient() -> tuple[Any, ...]:
    """Return what all sources give now."""
    found = [source() for source in ALWAYS]
    if MODES.entered:
        found += [(place, now) for place, ask in enumerate(_modes) if (now := ask()) is not None]
    return tuple(found)


def runs_eagerly() -> bool:
    """Whether compiled functions have to run as they are written."""
    return MODES.entered > 0 and any(ask() is EAGER for ask in _modes)
