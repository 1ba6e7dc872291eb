"""Keys of random numbers: functions of seed, step and part, so nothing global moves."""

from __future__ import annotations

from hashlib import blake2b


def key_of(seed: int, step: int, part: int) -> int:
    """Return the key of the stream that a part of a step draws from.

    >>> key_of(0, 1, 0) == key_of(0, 1, 0) != key_of(0, 1, 1)
    True
    """
    words = b"%d step %d part %d" % (seed, step, part)
    return int.from_bytes(blake2b(words, digest_size=8).digest(), "little")
