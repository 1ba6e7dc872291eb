"""The ids of parameters: blocks of the random stream, which nobody else draws."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, final

from phlox_tensor.random import generator

ID_BYTES: Final = 8
_KEY: Final = object()  # its place in the memo of ``copy.deepcopy``


def new_id() -> str:
    """Return a fresh parameter id: 64 bits in hexadecimal, drawn from the random stream.

    The same seed gives the same ids; what is seeded twice gives some of them twice.
    """
    return id_of(*generator().draw(1))


def id_of(key: int, block: int) -> str:
    """Return the id that belongs to a block of a random stream, which nobody else draws."""
    words = int(key).to_bytes(8, "little") + int(block).to_bytes(8, "little")
    return blake2b(words, digest_size=ID_BYTES).hexdigest()


@final
class CopiedIds(dict[str, str]):
    """The ids of the parameters that one ``copy.deepcopy`` copied, each with that of its copy.

    What is kept by the ids of parameters, such as the states of an optimizer, is copied in any
    order with them, and alone.
    """

    def __init__(self) -> None:
        """Start with no copy."""
        self._listeners: list[Callable[[str, str], None]] = []

    @staticmethod
    def of(memo: dict[int, Any]) -> CopiedIds:
        """Return those of the copy that a memo belongs to."""
        return memo.setdefault(id(_KEY), CopiedIds())

    def __missing__(self, old: str) -> str:
        new = self[old] = new_id()
        for listener in self._listeners:
            listener(old, new)
        return new

    def follow(self, rename: Callable[[str, str], None]) -> None:
        """Call a function for each id and that of its copy, now or once it is copied."""
        for old, new in self.items():
            rename(old, new)
        self._listeners.append(rename)
