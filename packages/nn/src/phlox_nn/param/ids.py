"""The ids of parameters: blocks of the random stream, which nobody else draws."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from phlox_tensor.random import generator

ID_BYTES: Final = 8


def new_id() -> str:
    """Return a fresh parameter id: 64 bits in hexadecimal, drawn from the random stream.

    The same seed gives the same ids; what is seeded twice gives some of them twice.
    """
    return id_of(*generator().draw(1))


def id_of(key: int, block: int) -> str:
    """Return the id that belongs to a block of a random stream, which nobody else draws."""
    words = int(key).to_bytes(8, "little") + int(block).to_bytes(8, "little")
    return blake2b(words, digest_size=ID_BYTES).hexdigest()
