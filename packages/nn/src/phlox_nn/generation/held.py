"""Keys and values in less memory: the latest alone, or integers of 8 bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from phlox_tensor import ArgumentError, Float, Tensor, append, int8

from ..layers.attention import KeyValues

_MOST = 127.0  # of an integer of 8 bits with both signs


@dataclass(frozen=True)
class Held:
    """Keys and values of which the first may be gone, stored as they are or as integers.

    Attributes:
        stored: (…, heads, length, d_head), keys and values.
        scales: (…, heads, length, 1), of integers, those of a position and head; None for floats.
        start: how many positions are gone.
    """

    stored: tuple[Tensor[Any], Tensor[Any]]
    scales: tuple[Tensor[Float], Tensor[Float]] | None
    start: int

    @property
    def length(self) -> int:
        """The number of positions, those that are gone included."""
        return self.start + self.stored[0].shape[-2]

    @property
    def keys(self) -> Tensor[Float]:
        """Keys from ``start`` on."""
        return self._floats(0)

    @property
    def values(self) -> Tensor[Float]:
        """Values from ``start`` on."""
        return self._floats(1)

    def extended(self, new: KeyValues) -> Self:
        """Return these positions followed by new ones, as ``KeyValues.extended``."""
        more = _stored(new, self.scales is not None)
        pairs = zip(self.stored, more.stored, strict=True)
        keys, values = (append(old, one, axis=-2) for old, one in pairs)
        if self.scales is None or more.scales is None:
            return replace(self, stored=(keys, values))
        scales = zip(self.scales, more.scales, strict=True)
        of_keys, of_values = (append(old, one, axis=-2) for old, one in scales)
        return replace(self, stored=(keys, values), scales=(of_keys, of_values))

    def part(self, first: int, end: int) -> Self:
        """Return the positions from one to before another."""
        a, b = first - self.start, end - self.start
        keys, values = (each[..., a:b, :] for each in self.stored)
        scales = self.scales
        if scales is not None:
            scales = scales[0][..., a:b, :], scales[1][..., a:b, :]
        return replace(self, stored=(keys, values), scales=scales, start=first)

    def _floats(self, which: int) -> Tensor[Float]:
        if self.scales is None:
            return self.stored[which]
        scale = self.scales[which]
        return self.stored[which].astype(scale.dtype) * scale


def held(cache: Any, window: int | None, bits: int | None) -> Any:
    """Return keys and values with no more of them than a window asks for, in so many bits.

    Twice the window may stay, so that few steps copy.
    """
    if bits is None and not isinstance(cache, Held) and (window is None or _few(cache, window)):
        return cache
    known = cache if isinstance(cache, Held) else _stored(cache, bits is not None)
    if window is None or _few(known, window):
        return known
    return known.part(known.length - window, known.length)


def cut(cache: Any, length: int) -> Any:
    """Return keys and values of the first positions."""
    if isinstance(cache, Held):
        return cache.part(cache.start, length)
    return KeyValues(cache.keys[..., :length, :], cache.values[..., :length, :])


def reaches(cache: Any, length: int, window: int | None) -> bool:
    """Whether all is there that the next of so many positions looks at."""
    start = getattr(cache, "start", 0)
    return not start or (window is not None and start <= length + 1 - window)


def check_bits(bits: int | None, device: Any) -> None:
    """Refuse bits that keys and values are not stored in.

    Raises:
        ArgumentError: naming what is.
    """
    if bits not in (None, 8) or (bits == 8 and int8 not in device.dtypes):
        got = f"{bits} bits on {device}"
        expected = "None, or 8 on a device with int8"
        raise ArgumentError("generate", "no cache of such numbers", got=got, expected=expected)


def _few(cache: Any, window: int) -> bool:
    return cache.length - getattr(cache, "start", 0) <= 2 * window


def _stored(new: Any, integers: bool) -> Held:
    pair = new.keys, new.values
    if not integers:
        return Held(pair, None, 0)
    # The largest of a row becomes 127; a row of zeros stays one.
    scales = [(each.abs().max(axis=-1, keepdims=True) / _MOST).maximum(1e-30) for each in pair]
    keys, values = (
        (each / scale).round().astype(int8) for each, scale in zip(pair, scales, strict=True)
    )
    return Held((keys, values), (scales[0], scales[1]), 0)
