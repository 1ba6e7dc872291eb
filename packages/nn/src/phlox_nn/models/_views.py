"""What layers of a decoder look at: how queries and keys are turned, and which keys are seen."""

from __future__ import annotations

from typing import Any, NamedTuple

from phlox_tensor import Bool, Float, Int, Tensor, arange, attention, concat, stack, take

from ..layers.attention import KeyValues
from ..layers.position import RotaryEncodingConfig, turns


class Rotaries(NamedTuple):
    """How queries and keys are turned: in layers that see all, in long texts, with a window."""

    usual: RotaryEncodingConfig
    long: RotaryEncodingConfig
    local: RotaryEncodingConfig


class Looks(NamedTuple):
    """How the layers of one kind look.

    Attributes:
        window: how many tokens they look at; None for all.
        usual: how queries and keys are turned.
        long: the same in texts longer than ``limit``.
        limit: None for texts of any length.
    """

    window: int | None
    usual: RotaryEncodingConfig
    long: RotaryEncodingConfig
    limit: int | None

    def turns(self, x: Tensor[Float], first: int, end: int) -> tuple[Tensor[Float], Tensor[Float]]:
        """Sines and cosines (length, pairs) of positions."""
        is_long = self.limit is not None and end > self.limit
        return turns(x, self.long if is_long else self.usual, first, end - first)


class Call(NamedTuple):
    """What a call says, as of ``CausalModel.extend``, and where its tokens begin and end."""

    known: int
    end: int
    padding: Tensor[Bool] | None
    positions: Tensor[Int] | None


class View(NamedTuple):
    """What the layers of one kind look at in a call.

    Attributes:
        cosines: (length, 1, pairs), by which queries and keys are multiplied.
        sines: (length, 2, pairs), by which the other halves are, negative for the first.
        first: the first key that a query may look at.
        hidden: which keys from there on are hidden; None for those that come later alone.
        is_causal: whether the last query sees all keys, the one before all but one, and so on.
    """

    cosines: Tensor[Float]
    sines: Tensor[Float]
    first: int
    hidden: Tensor[Bool] | None
    is_causal: bool

    def found(
        self, query: Tensor[Float], new: KeyValues, cache: KeyValues | None, how: Any
    ) -> tuple[Tensor[Float], KeyValues]:
        """Return what queries find, and the cache with what is new."""
        seen = new if cache is None else cache.extended(new)
        keys, values = _from(seen, self.first)
        found = attention(query, keys, values, self.hidden, **how, is_causal=self.is_causal)
        return found, seen


class EachView(NamedTuple):
    """What a token of each of several texts looks at: all before it, or as many as a window has.

    Attributes:
        cosines: (N, 1, 1, 1, pairs), as of ``View``.
        sines: (N, 1, 1, 2, pairs).
        window: how many keys are seen; None for all.
    """

    cosines: Tensor[Float]
    sines: Tensor[Float]
    window: int | None

    def found(
        self, query: Tensor[Float], new: KeyValues, cache: Any, how: Any
    ) -> tuple[Tensor[Float], tuple[KeyValues, ...]]:
        """Return what the query of each text finds in its own cache, and the caches."""
        parts, kept = [], []
        for i, known in enumerate(cache):
            seen = known.extended(KeyValues(*(each[i : i + 1] for each in new)))
            first = 0 if self.window is None else max(seen.length - self.window, 0)
            parts.append(attention(query[i : i + 1], *_from(seen, first), **how, is_causal=True))
            kept.append(seen)
        return concat(parts, axis=0), tuple(kept)


AnyView = View | EachView


def view(of: Looks, call: Call, x: Tensor[Float]) -> View:
    """Return what layers look at in a call."""
    known, end, padding, positions = call
    window, first, hidden = of.window, 0, None
    if positions is not None:
        end = known
        keys, queries = arange(end, dtype=positions.dtype, device=x.device), positions[:, None]
        hidden = keys > queries
        if window is not None:
            hidden = hidden | (keys <= queries - window)
    elif window is not None:
        first = max(known + 1 - window, 0)
        if end - first > window:
            queries = arange(known, end, device=x.device)[:, None]
            hidden = arange(first, end, device=x.device) <= queries - window
    if padding is not None:
        filled = padding[:, None, None, first:]
        hidden = filled if hidden is None else hidden | filled
    sines, cosines = of.turns(x, known if positions is None else 0, end)
    if positions is not None:
        sines, cosines = take(sines, positions, axis=0), take(cosines, positions, axis=0)
    return View(*_whole(sines, cosines), first, hidden, positions is None)


def each_view(of: Looks, caches: tuple[KeyValues, ...], x: Tensor[Float]) -> EachView:
    """Return what a token behind each cache looks at."""
    rows = [of.turns(x, cache.length, cache.length + 1) for cache in caches]
    sines, cosines = (concat(each, axis=0)[:, None, None] for each in zip(*rows, strict=True))
    return EachView(*_whole(sines, cosines), of.window)


def _whole(sines: Tensor[Float], cosines: Tensor[Float]) -> tuple[Tensor[Float], Tensor[Float]]:
    """Cosines and sines of both halves of the columns."""
    return cosines[..., None, :], stack((-sines, sines), axis=-2)


def turned(x: Tensor[Float], cosines: Tensor[Float], sines: Tensor[Float]) -> Tensor[Float]:
    """Return x (N, heads, length, d), column i turned with column i + half; others stay."""
    half = cosines.shape[-1]
    size = 2 * half
    pairs = x if size == x.shape[-1] else x[..., :size]
    halves = pairs.reshape(*pairs.shape[:-1], 2, half)
    found = (halves * cosines + halves.flip(-2) * sines).reshape(pairs.shape)
    return found if size == x.shape[-1] else concat((found, x[..., size:]), axis=-1)


def _from(seen: Any, first: int) -> tuple[Tensor[Float], Tensor[Float]]:
    """Keys and values from a place on; those before another one may be gone."""
    at = first - getattr(seen, "start", 0)
    if not at:
        return seen.keys, seen.values
    return seen.keys[..., at:, :], seen.values[..., at:, :]
