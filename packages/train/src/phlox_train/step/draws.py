"""Keys of random numbers: functions of seed, step and part, so nothing global moves."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, TypeVar

from phlox_tensor.capture import Packed, call, drawing_from, recording
from phlox_tensor.random import Generator

R = TypeVar("R")
# Streams that nobody draws from now. Compiled functions are recorded anew for each other stream.
_FREE: Final[list[Generator]] = []


def key_of(seed: int, step: int, part: int) -> int:
    """Return the key of the stream that a part of a step draws from.

    >>> key_of(0, 1, 0) == key_of(0, 1, 0) != key_of(0, 1, 1)
    True
    """
    words = b"%d step %d part %d" % (seed, step, part)
    return int.from_bytes(blake2b(words, digest_size=8).digest(), "little")


def go_to(stream: Generator, seed: int, step: int, part: int) -> None:
    """Put a generator where a part of a step draws from; its key is computed at the first draw."""
    if recording():
        stream.set_state(call(key_of, seed, step, part))
    else:
        stream.cells()[0].pack(Packed(None, (seed, step, part), _start))


def _start(_: Any, at: tuple[int, int, int]) -> tuple[int, int]:
    return key_of(*at), 0


def drawing_at(number: int, function: Callable[..., R], *args: Any) -> R:
    """Call a function with the random numbers of one batch, in a stream that is used again."""
    stream = _FREE.pop() if _FREE else Generator()
    try:
        go_to(stream, 0, 0, number)
        return drawing_from(stream, function, *args)
    finally:
        _FREE.append(stream)
