"""Random numbers by counter: Philox 4x32-10 (Salmon et al., SC 2011)."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_M0: Final = np.uint64(0xD2511F53)
_M1: Final = np.uint64(0xCD9E8D57)
_W0: Final = 0x9E3779B9
_W1: Final = 0xBB67AE85
_ROUNDS: Final = 10
_MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)


def philox(blocks: Array, key: int) -> Array:
    """Four words for each 64-bit block counter: uint32 of shape (len(blocks), 4)."""
    c0, c1 = blocks & _MASK, blocks >> _HALF
    c2 = c3 = np.zeros_like(blocks)
    k0, k1 = key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF
    for _ in range(_ROUNDS):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (
            (p1 >> _HALF) ^ c1 ^ np.uint64(k0),
            p1 & _MASK,
            (p0 >> _HALF) ^ c3 ^ np.uint64(k1),
            p0 & _MASK,
        )
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1).astype(np.uint32)


def bits(count: int, key: int, counter: int) -> Array:
    """The first ``count`` words of the stream that starts at block ``counter``."""
    blocks = np.uint64(counter) + np.arange((count + 3) // 4, dtype=np.uint64)
    return philox(blocks, key).reshape(-1)[:count]


def _unit(words: Array, dtype: Any) -> Array:
    """Uniforms in [0, 1) that the type holds exactly."""
    if dtype.name == "float64":
        high = (words[0::2] >> np.uint32(5)).astype(np.float64)
        low = (words[1::2] >> np.uint32(6)).astype(np.float64)
        return (high * 67108864.0 + low) * 2.0**-53
    drop = {"float32": 8, "float16": 21, "bfloat16": 24}[dtype.name]
    return (words >> np.uint32(drop)).astype(np.float32) * np.float32(2.0 ** (drop - 32))


def uniform(
    shape: tuple[int, ...], low: float, high: float, dtype: Any, key: int, counter: int
) -> Array:
    count = prod(shape)
    words = bits(count * (2 if dtype.name == "float64" else 1), key, counter)
    unit = _unit(words, dtype)
    scale = unit.dtype.type
    return (scale(low) + unit * scale(high - low)).astype(dtype.numpy).reshape(shape)


def normal(
    shape: tuple[int, ...], mean: float, std: float, dtype: Any, key: int, counter: int
) -> Array:
    """Box and Muller, 1958, on pairs of uniforms."""
    count = prod(shape)
    pairs = (count + 1) // 2
    if dtype.name == "float64":
        unit = _unit(bits(pairs * 4, key, counter), dtype)
    else:
        words = bits(pairs * 2, key, counter)
        unit = (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    scale = unit.dtype.type
    radius = np.sqrt(scale(-2.0) * np.log(scale(1.0) - unit[0::2]))
    angle = scale(2.0 * np.pi) * unit[1::2]
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[:count]
    return (scale(mean) + scale(std) * z).astype(dtype.numpy).reshape(shape)
