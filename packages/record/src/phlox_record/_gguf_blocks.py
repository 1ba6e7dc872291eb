"""Blocks of GGUF files: groups of numbers that share scales, widened to float32 and back.

Source: github.com/ggml-org/ggml, src/ggml-common.h and ggml-quants.c. Bytes are little-endian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[Any]"  # of uint8, which NumPy's types lose in arithmetic
Floats: TypeAlias = "NDArray[Any]"  # of float32, likewise

_NIBBLES: Final = np.array([[[0], [4]]], np.uint8)  # shifts of low and high half of a byte
_PAIRS: Final = np.array([[[0], [2], [4], [6]]], np.uint8)
_AT_ONCE: Final = 1 << 14  # blocks, so that what lies between stays in a cache
# The points of IQ4_NL, and those of MXFP4, twice the numbers of e2m1.
_NONLINEAR: Final = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
_FOUR_BITS: Final = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


class Blocks(NamedTuple):
    """A form of blocks.

    Attributes:
        name: as llama.cpp has it.
        size: how many numbers a block has.
        nbytes: how many bytes.
        widen: blocks (n, nbytes) as numbers (n, size); None for a form that is not read.
        narrow: the way back; None for a form that is not written.
    """

    name: str
    size: int
    nbytes: int
    widen: Callable[[Bytes], Floats] | None = None
    narrow: Callable[[Floats], Bytes] | None = None


def widened(raw: Bytes, form: Blocks) -> Floats:
    """Return the numbers of blocks that follow each other."""
    assert form.widen is not None
    blocks = raw.reshape(-1, form.nbytes)
    found = np.empty((len(blocks), form.size), np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # scales may be infinite
        for start in range(0, len(blocks), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            found[part] = form.widen(blocks[part])
    return found.reshape(-1)


def narrowed(numbers: Floats, form: Blocks) -> Bytes:
    """Return blocks of numbers, a multiple of the size of one."""
    assert form.narrow is not None
    rows = numbers.reshape(-1, form.size)
    parts = [form.narrow(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]
    return np.concatenate([np.zeros((0, form.nbytes), np.uint8), *parts])


def _half(columns: Bytes) -> Floats:
    """The float16 in two columns of bytes, (n, 1)."""
    return np.ascontiguousarray(columns).view("<f2").astype(np.float32)


def _halves(packed: Bytes) -> Bytes:
    """Low and then high halves of 16 bytes, (n, 32)."""
    return ((packed[:, None, :] >> _NIBBLES) & 15).reshape(len(packed), -1)


def _fifth_bits(packed: Bytes) -> Bytes:
    """The bits of 4 bytes, (n, 32)."""
    return np.unpackbits(packed, axis=-1, bitorder="little")


def _q4_0(b: Bytes) -> Floats:
    return _half(b[:, :2]) * (_halves(b[:, 2:]).astype(np.float32) - 8)


def _q4_1(b: Bytes) -> Floats:
    return _half(b[:, :2]) * _halves(b[:, 4:]).astype(np.float32) + _half(b[:, 2:4])


def _q5_0(b: Bytes) -> Floats:
    whole = _halves(b[:, 6:]) | (_fifth_bits(b[:, 2:6]) << 4)
    return _half(b[:, :2]) * (whole.astype(np.float32) - 16)


def _q5_1(b: Bytes) -> Floats:
    whole = _halves(b[:, 8:]) | (_fifth_bits(b[:, 4:8]) << 4)
    return _half(b[:, :2]) * whole.astype(np.float32) + _half(b[:, 2:4])


def _q8_0(b: Bytes) -> Floats:
    return b[:, 2:].view(np.int8).astype(np.float32) * _half(b[:, :2])


def _q8_k(b: Bytes) -> Floats:
    scale = np.ascontiguousarray(b[:, :4]).view("<f4")
    return b[:, 4:260].view(np.int8).astype(np.float32) * scale


def _iq4_nl(b: Bytes) -> Floats:
    return _half(b[:, :2]) * _NONLINEAR[_halves(b[:, 2:])]


def _iq4_xs(b: Bytes) -> Floats:
    count = len(b)
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16)
    low = ((b[:, 4:8, None] >> np.array([0, 4], np.uint8)) & 15).reshape(count, 8)
    scales = (low | ((high & 3) << 4).astype(np.uint8)).astype(np.float32) - 32
    points = _NONLINEAR[
        ((b[:, 8:].reshape(count, 8, 1, 16) >> _NIBBLES) & 15).reshape(count, 8, 32)
    ]
    return ((_half(b[:, :2]) * scales)[:, :, None] * points).reshape(count, 256)


def _mxfp4(b: Bytes) -> Floats:
    exponent = b[:, :1].astype(np.uint32)
    small = np.uint32(0x00200000) << np.minimum(exponent, 1)
    bits = np.where(exponent < 2, small, (exponent - np.uint32(1)) << np.uint32(23))
    return bits.astype(np.uint32).view(np.float32) * _FOUR_BITS[_halves(b[:, 1:])]


def _q2_k(b: Bytes) -> Floats:
    count = len(b)
    scales, packed = b[:, :16], b[:, 16:80]
    scale = (_half(b[:, 80:82]) * (scales & 15).astype(np.float32))[:, :, None]
    least = (_half(b[:, 82:84]) * (scales >> 4).astype(np.float32))[:, :, None]
    whole = (packed.reshape(count, 2, 1, 32) >> _PAIRS) & 3
    return (scale * whole.reshape(count, 16, 16).astype(np.float32) - least).reshape(count, 256)


def _q3_k(b: Bytes) -> Floats:
    count = len(b)
    low = ((b[:, None, 96:104] >> _NIBBLES) & 15).reshape(count, 16)
    high = ((b[:, None, 104:108] >> _PAIRS) & 3).reshape(count, 16)
    scales = (low | (high << 4)).astype(np.float32) - 32
    whole = ((b[:, 32:96].reshape(count, 2, 1, 32) >> _PAIRS) & 3).reshape(count, 16, 16)
    bits = b[:, None, :32] >> np.arange(8, dtype=np.uint8)[None, :, None]
    without = ((bits & 1) ^ 1).reshape(count, 16, 16)  # 4 less where the bit is not set
    numbers = whole.astype(np.float32) - 4 * without.astype(np.float32)
    return ((_half(b[:, 108:110]) * scales)[:, :, None] * numbers).reshape(count, 256)


def _scales_and_least(b: Bytes) -> tuple[Floats, Floats]:
    """Scale and least number of 8 parts, of 6 bits each in 12 bytes, (n, 8, 1)."""
    first, second, rest = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    scales = np.concatenate([first & 63, (rest & 15) | ((first >> 2) & 48)], axis=-1)
    least = np.concatenate([second & 63, (rest >> 4) | ((second >> 2) & 48)], axis=-1)
    both = _half(b[:, :2]) * scales.astype(np.float32), _half(b[:, 2:4]) * least.astype(np.float32)
    return both[0][:, :, None], both[1][:, :, None]


def _q4_k(b: Bytes) -> Floats:
    count = len(b)
    scales, least = _scales_and_least(b)
    whole = ((b[:, 16:].reshape(count, 4, 1, 32) >> _NIBBLES) & 15).reshape(count, 8, 32)
    return (scales * whole.astype(np.float32) - least).reshape(count, 256)


def _q5_k(b: Bytes) -> Floats:
    count = len(b)
    scales, least = _scales_and_least(b)
    low = ((b[:, 48:].reshape(count, 4, 1, 32) >> _NIBBLES) & 15).reshape(count, 8, 32)
    high = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    return (scales * (low | (high << 4)).astype(np.float32) - least).reshape(count, 256)


def _q6_k(b: Bytes) -> Floats:
    count = len(b)
    low = ((b[:, :128].reshape(count, 2, 1, 64) >> _NIBBLES) & 15).reshape(count, 8, 32)
    high = ((b[:, 128:192].reshape(count, 2, 1, 32) >> _PAIRS) & 3).reshape(count, 8, 32)
    whole = (low | (high << 4)).astype(np.float32) - 32
    scales = _half(b[:, 208:210]) * b[:, 192:208].view(np.int8).astype(np.float32)
    return (scales[:, :, None] * whole.reshape(count, 16, 16)).reshape(count, 256)


def _inverse(scale: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(scale == 0, np.float32(0), np.float32(1) / scale)


def _as_half(numbers: Floats) -> Bytes:
    with np.errstate(over="ignore"):
        return numbers.astype("<f2").view(np.uint8)


def _in_halves(whole: Bytes) -> Bytes:
    return whole[:, :16] | (whole[:, 16:] << 4)


def _of_largest(x: Floats, bits: int) -> tuple[Floats, Bytes]:
    """Scale by the number that is farthest from 0, and whole numbers from 0 on."""
    half = 1 << (bits - 1)
    farthest = np.take_along_axis(x, np.abs(x).argmax(axis=-1)[:, None], axis=-1)
    scale = farthest / np.float32(-half)
    whole = np.trunc(x * _inverse(scale) + np.float32(half + 0.5))
    return scale, whole.astype(np.uint8).clip(0, 2 * half - 1)


def _of_range(x: Floats, bits: int) -> tuple[Floats, Floats, Bytes]:
    """Scale and least number by the range, and whole numbers from 0 on."""
    top, least = (1 << bits) - 1, x.min(axis=-1, keepdims=True)
    scale = (x.max(axis=-1, keepdims=True) - least) / np.float32(top)
    whole = np.trunc((x - least) * _inverse(scale) + np.float32(0.5))
    return scale, least, whole.astype(np.uint8).clip(0, top)


def _to_q4_0(x: Floats) -> Bytes:
    scale, whole = _of_largest(x, 4)
    return np.concatenate([_as_half(scale), _in_halves(whole)], axis=-1)


def _to_q4_1(x: Floats) -> Bytes:
    scale, least, whole = _of_range(x, 4)
    return np.concatenate([_as_half(scale), _as_half(least), _in_halves(whole)], axis=-1)


def _to_q5_0(x: Floats) -> Bytes:
    scale, whole = _of_largest(x, 5)
    fifth = np.packbits(whole >> 4, axis=-1, bitorder="little")
    return np.concatenate([_as_half(scale), fifth, _in_halves(whole & 15)], axis=-1)


def _to_q5_1(x: Floats) -> Bytes:
    scale, least, whole = _of_range(x, 5)
    fifth = np.packbits(whole >> 4, axis=-1, bitorder="little")
    parts = [_as_half(scale), _as_half(least), fifth, _in_halves(whole & 15)]
    return np.concatenate(parts, axis=-1)


def _to_q8_0(x: Floats) -> Bytes:
    scale = np.abs(x).max(axis=-1, keepdims=True) / np.float32(127)
    exact = x * _inverse(scale)
    away = np.abs(exact)  # halves are rounded away from 0, as in C
    floor = np.floor(away)
    whole = np.sign(exact) * (floor + np.floor(2 * (away - floor)))
    return np.concatenate([_as_half(scale), whole.astype(np.int8).view(np.uint8)], axis=-1)


# Number of the type in a file -> its blocks; those without a way to widen are known by name alone.
BLOCKS: Final[dict[int, Blocks]] = {
    2: Blocks("Q4_0", 32, 18, _q4_0, _to_q4_0),
    3: Blocks("Q4_1", 32, 20, _q4_1, _to_q4_1),
    6: Blocks("Q5_0", 32, 22, _q5_0, _to_q5_0),
    7: Blocks("Q5_1", 32, 24, _q5_1, _to_q5_1),
    8: Blocks("Q8_0", 32, 34, _q8_0, _to_q8_0),
    9: Blocks("Q8_1", 32, 40),
    10: Blocks("Q2_K", 256, 84, _q2_k),
    11: Blocks("Q3_K", 256, 110, _q3_k),
    12: Blocks("Q4_K", 256, 144, _q4_k),
    13: Blocks("Q5_K", 256, 176, _q5_k),
    14: Blocks("Q6_K", 256, 210, _q6_k),
    15: Blocks("Q8_K", 256, 292, _q8_k),
    16: Blocks("IQ2_XXS", 256, 66),
    17: Blocks("IQ2_XS", 256, 74),
    18: Blocks("IQ3_XXS", 256, 98),
    19: Blocks("IQ1_S", 256, 50),
    20: Blocks("IQ4_NL", 32, 18, _iq4_nl),
    21: Blocks("IQ3_S", 256, 110),
    22: Blocks("IQ2_S", 256, 82),
    23: Blocks("IQ4_XS", 256, 136, _iq4_xs),
    29: Blocks("IQ1_M", 256, 56),
    34: Blocks("TQ1_0", 256, 54),
    35: Blocks("TQ2_0", 256, 66),
    39: Blocks("MXFP4", 32, 17, _mxfp4),
    40: Blocks("NVFP4", 64, 36),
    41: Blocks("Q1_0", 128, 18),
}
# Types whose numbers stand alone -> the element type.
PLAIN: Final[dict[int, str]] = {
    0: "float32",
    1: "float16",
    24: "int8",
    25: "int16",
    26: "int32",
    27: "int64",
    28: "float64",
    30: "bfloat16",
}


def form_of(name: Any) -> tuple[int, Blocks] | None:
    """Return the number and the blocks of a form that can be written, by its name."""
    found = {b.name: (code, b) for code, b in BLOCKS.items() if b.narrow is not None}
    return found.get(name.upper()) if isinstance(name, str) else None


WRITTEN: Final = tuple(b.name for b in BLOCKS.values() if b.narrow is not None)
