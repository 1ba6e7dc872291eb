"""The tokens that follow, one step after the other: keys and values grow, or fill a fixed room."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from sys import maxsize
from typing import Any, NamedTuple, Protocol

import numpy as np

from phlox_tensor import (
    Bool,
    Float,
    Int,
    Tensor,
    arange,
    asarray,
    concat,
    zeros,
)
from phlox_tensor.ops.rearrangement import append_at

from ..layers.attention import KeyValues
from .held import cut, held, reaches
from .sampling import Sampling, with_tokens

# The least room; it doubles whenever it is full. Each size compiles a version, half a second for a
# billion parameters, and looking at so many keys, most of them hidden, costs less than that.
_ROOM = 256
_MANY = 64  # tokens from which on results between layers take more memory than a step does
Pads = np.ndarray[Any, np.dtype[np.int64]]


class Extends(Protocol):
    """What a causal model can do: map the next tokens, beside what it keeps of those before."""

    @property
    def context(self) -> int:
        """The most tokens that a text may have."""
        ...

    def extend(
        self,
        tokens: Tensor[Int],
        cache: Any = None,
        *,
        padding: Tensor[Bool] | None = None,
        positions: Tensor[Int] | None = None,
        last: bool = False,
    ) -> tuple[Tensor[Float], Any]:
        """Map tokens (N, length) to logits, and to what the layers have to keep."""
        ...


class Room(NamedTuple):
    """Keys and values with room for more, of which one position is written next.

    Attributes:
        keys: (…, heads, room, d_head).
        values: the same.
        place: (), which position is written next.
    """

    keys: Tensor[Float]
    values: Tensor[Float]
    place: Tensor[Int]

    @property
    def length(self) -> int:
        """The number of positions there is room for."""
        return self.keys.shape[-2]

    def extended(self, new: KeyValues) -> Room:
        """Return these with one position written; they are given up."""
        pairs = zip(self[:2], new, strict=True)
        keys, values = (append_at(old, one, self.place, axis=-2) for old, one in pairs)
        return Room(keys, values, self.place)


class Place(NamedTuple):
    """Where a step of a fixed room stands.

    Attributes:
        slot: (), the place of the token.
        pads: (N,), how many places before each text are none of it; None for none.
    """

    slot: Tensor[Int]
    pads: Tensor[Int] | None


def step_in_room(
    sampling: Sampling,
    model: Extends,
    tokens: Tensor[Int],
    kept: tuple[tuple[Tensor[Float], Tensor[Float]], ...],
    seen: Tensor[Bool] | None,
    place: Place,
    numbers: Tensor[Float],
) -> tuple[Tensor[Int], tuple[tuple[Tensor[Float], Tensor[Float]], ...], Tensor[Bool] | None]:
    """Write tokens (N, 1) at a place; return those that follow, and what is kept.

    Shapes stay from call to call until the room is full, so that a compiled step is replayed.
    """
    slot, pads = place
    slots = arange(kept[0][0].shape[-2], dtype=slot.dtype, device=slot.device)
    cache = tuple(Room(keys, values, slot) for keys, values in kept)
    padding = None if pads is None else slots < pads[:, None]
    at = slot.reshape(1)
    logits, cache = model.extend(tokens, cache, padding=padding, positions=at, last=True)
    if seen is not None:
        seen = with_tokens(seen, tokens[:, 0])
    chosen = sampling.chosen(logits[:, -1], numbers, seen)
    return chosen.astype(tokens.dtype), tuple(room[:2] for room in cache), seen


class Generation:
    """Tokens that follow a text, or several: what was read is kept, and may be gone on from.

    Attributes:
        cache: keys and values of all that was read.
        length: how many places these have.
    """

    def __init__(
        self,
        model: Extends,
        *,
        chunk: int = 512,
        pads: Pads | None = None,
        bits: int | None = None,
        rolls: bool = True,
    ) -> None:
        """Start with nothing read.

        Args:
            model: what maps tokens to logits; in inference.
            chunk: how many tokens of a text are read at once.
            pads: for texts of unequal lengths, the tokens before each that are none of it.
            bits: 8 for keys and values in integers; None as they are.
            rolls: whether layers with a window forget what is before it; compiled steps do not.
        """
        self._model = model
        self._bits = bits
        self._rolls = rolls
        self._chunk = chunk
        self._turn: int = getattr(model, "turn", None) or maxsize
        self._pads = pads if pads is not None and pads.any() else None
        self.cache: Any = None
        self.length = 0

    def read(self, tokens: Tensor[Int]) -> Tensor[Float]:
        """Read tokens (N, length) behind what was read; return the logits (N, words) after them."""
        many = tokens.shape[1] >= _MANY
        if many:
            tokens.device.trim()  # what an earlier text left
        first = self.part(self.length + tokens.shape[1], self._chunk) - self.length
        logits = self._read(tokens[:, :first])
        for start in range(first, tokens.shape[1], self._chunk):
            logits = self._read(tokens[:, start : start + self._chunk])
        if many:
            logits.device.trim()  # what so many tokens took; a step takes a small part of it
        return logits[:, -1]

    def part(self, end: int, chunk: int) -> int:
        """Return up to where a text that ends at a place is read at once, in chunks of a size.

        In a text longer than ``turn`` of the model all keys differ from those of a shorter one.
        """
        part = self.length + chunk
        return min(end, part if self.alike(self.length, end) else max(part, self._turn + 1))

    def alike(self, length: int, other: int) -> bool:
        """Whether texts of these lengths that begin alike have the same keys."""
        return (length > self._turn) == (other > self._turn)

    def _read(self, tokens: Tensor[Int]) -> Tensor[Float]:
        end, padding = self.length + tokens.shape[1], None
        if self._pads is not None:
            padding = asarray(np.arange(end) < self._pads[:, None], device=tokens.device)
        logits, cache = self._model.extend(tokens, self.cache, padding=padding, last=True)
        self.take(cache, end)
        return logits

    def take(self, cache: Any, length: int) -> None:
        """Keep what the layers gave for all positions so far, in as little memory as was said."""
        windows = self._windows(cache)
        self.cache = tuple(map(held, cache, windows, [self._bits] * len(cache)))
        self.length = length

    def cut(self, length: int) -> int:
        """Forget all from a place on; return the place, or 0 if too much before it is gone."""
        known = self.cache or ()
        if not all(map(reaches, known, [length] * len(known), self._windows(known))):
            length = 0
        self.length = length
        self.cache = tuple(cut(kept, length) for kept in known) if length and known else None
        return length

    def _windows(self, cache: Any) -> tuple[int | None, ...]:
        """How many positions each layer looks at, the latest; None for all."""
        windows: tuple[int | None, ...] = getattr(self._model, "windows", ()) if self._rolls else ()
        return windows or (None,) * len(cache)

    def tokens(
        self,
        text: Tensor[Int],
        sampling: Sampling,
        numbers: np.ndarray[Any, Any],
        *,
        before: Tensor[Int] | None = None,
        compiled: Callable[[Sampling], Any] | None = None,
    ) -> Generator[Tensor[Int], None, None]:
        """Read a text (N, length), then give the tokens (N,) that follow, a step each.

        Args:
            text: what follows what was read.
            sampling: how a token is chosen.
            numbers: (N, count), a number in [0, 1) for each draw.
            before: all tokens so far, if they are more than the text.
            compiled: gives ``step_in_room`` of a sampling as a compiled function; None for steps
                that call op after op.
        """
        if self.length and not self.alike(self.length, self.length + text.shape[1]):
            self.cut(0)
            text = text if before is None else before
        is_long = not self.length and text.shape[1] >= _MANY
        logits = self.read(text)
        seen = None
        if sampling.looks_back:
            seen = self.seen(text if before is None else before, logits.shape[-1])
        draws = asarray(numbers, device=text.device)
        new = sampling.chosen(logits, draws[:, 0], seen).astype(text.dtype)
        yield new
        parts = [text if before is None else before, new[:, None]]
        last = self.length + draws.shape[1] - 1
        end = draws.shape[1] if self.alike(self.length, last) else self._turn - self.length + 1
        goes_on = end < draws.shape[1]
        if compiled is not None:
            step = partial(compiled(sampling), self._model)
            following = self._in_rooms(new, seen, draws, end, step)
        else:
            following = self._one_by_one(new, seen, draws, end, sampling, is_long)
        with closing(following):
            for new in following:
                if goes_on:
                    parts.append(new[:, None])
                yield new
        if goes_on:  # past the turn of the model all keys change, so the text is read again
            self.cut(0)
            rest = numbers[:, end:]
            yield from self.tokens(concat(parts, axis=1), sampling, rest, compiled=compiled)

    def _one_by_one(
        self,
        new: Tensor[Int],
        seen: Tensor[Bool] | None,
        draws: Tensor[Float],
        end: int,
        sampling: Sampling,
        is_long: bool,
    ) -> Generator[Tensor[Int], None, None]:
        """Steps up to a draw that call op after op, beside keys and values that grow."""
        if is_long and end > 1:
            self._make_room()
            new.device.trim()  # what keys and values were in before
        for i in range(1, end):
            seen = None if seen is None else with_tokens(seen, new)
            new = sampling.chosen(self.read(new[:, None]), draws[:, i], seen).astype(new.dtype)
            yield new

    def _make_room(self) -> None:
        """Put keys and values where more fit behind them, so that only one layer has them twice."""
        layers, self.cache = list(self.cache), None
        try:
            for i, kept in enumerate(layers):
                if type(kept) is KeyValues:
                    nothing = KeyValues(*(each[..., :0, :] for each in kept))
                    layers[i] = nothing.extended(kept)
                    kept.keys.device.trim()
        finally:
            self.cache = tuple(layers)

    def seen(self, tokens: Tensor[Int], words: int) -> Tensor[Bool]:
        """Return which tokens are in each text (N, length), as (N, words)."""
        known = tokens.numpy()
        seen = np.zeros((len(known), words), np.bool_)
        pads = np.zeros(len(known), np.int64) if self._pads is None else self._pads
        for row, ids, pad in zip(seen, known, pads, strict=True):
            row[ids[pad:]] = True
        return asarray(seen, device=tokens.device)

    def _in_rooms(
        self,
        new: Tensor[Int],
        seen: Tensor[Bool] | None,
        draws: Tensor[Float],
        end: int,
        step: Any,
    ) -> Generator[Tensor[Int], None, None]:
        """Steps up to a draw whose shapes stay until a room is full.

        Where a device works by itself, the next step is handed to it before a token is read.
        """
        pads = None
        if self._pads is not None:
            pads = asarray(self._pads, dtype=new.dtype, device=new.device)
        kept: Any = tuple((each.keys, each.values) for each in self.cache)
        length, before = self.length, None
        most = self._model.context
        if length <= self._turn:  # in a larger room keys would be those of a long text
            most = min(most, self._turn)
        try:
            for i in range(1, end):
                room = kept[0][0].shape[-2]
                if room <= length:
                    kept = _with_room(kept, length, most)
                place = Place(asarray(length, dtype=new.dtype, device=new.device), pads)
                new, kept, seen = step(new[:, None], kept, seen, place, draws[:, i])
                length += 1
                goes_on = new.device.begin_read(new.primitive)
                if before is not None:
                    self.length += 1
                    yield before
                before = new if goes_on and i + 1 < end else None
                if before is None:
                    self.length += 1
                    yield new
        finally:
            self.cache = tuple(KeyValues(*pair) for pair in kept)
            self.cut(self.length)


def _with_room(kept: Any, length: int, most: int) -> Any:
    """Keys and values with zeros behind: room for some more positions."""
    room = _ROOM
    while room <= length:
        room *= 2
    room = min(room, most)

    def wider(x: Tensor[Float]) -> Tensor[Float]:
        shape = (*x.shape[:-2], room - x.shape[-2], x.shape[-1])
        return concat((x, zeros(shape, dtype=x.dtype, device=x.device)), axis=-2)

    return tuple((wider(keys), wider(values)) for keys, values in kept)
