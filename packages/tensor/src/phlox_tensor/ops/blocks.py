"""Weights in blocks of llama.cpp: converted to floats, and in products.

Source: github.com/ggml-org/ggml, src/ggml-common.h and ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan, prod
from typing import Any, Final

from .._data.conversion import asarray
from .._errors.classes import ArgumentError, ShapeError
from .._op.records import case, refusal
from .._values.dtype import DType, float32, int32
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..shapes import blocks as shapes
from . import binary, indexing, movement
from . import contraction as products
from ._families import contraction, quantization

_GROUP: Final = 32  # numbers of a row that share a scale
_STEPS: Final = tuple(2.0 ** (exponent - 25) for exponent in range(32))  # of a float16
_WIDE_STEPS: Final = tuple(2.0 ** (min(exponent, 254) - 127) for exponent in range(256))
Bytes = Tensor[Int]  # int32, 0 to 255, along the last axis those of a block


def _half(b: Bytes, at: int) -> Tensor:
    """The float16 that begins at a byte, (…, 1)."""
    bits = b[..., at : at + 1] | (b[..., at + 1 : at + 2] << 8)
    exponent, rest = (bits >> 10) & 31, (bits & 1023).astype(float32)
    steps = asarray(_STEPS, dtype=float32, device=b.device)
    normal = (rest + 1024.0) * indexing.take(steps, exponent, axis=0)
    found = binary.where(exponent == 0, rest * 2.0**-24, normal)
    found = binary.where(exponent == 31, binary.where(rest == 0.0, inf, nan), found)
    return binary.where(bits >> 15 == 1, -found, found)


def _bf16(b: Bytes) -> Tensor:
    bits = b[..., :1] | (b[..., 1:] << 8)
    exponent, rest = (bits >> 7) & 255, (bits & 127).astype(float32)
    steps = asarray(_WIDE_STEPS, dtype=float32, device=b.device)
    found = binary.where(exponent == 0, 2.0 * rest, rest + 128.0) * 2.0**-7
    found = found * indexing.take(steps, exponent, axis=0)
    found = binary.where(exponent == 255, binary.where(rest == 0.0, inf, nan), found)
    return binary.where(bits >> 15 == 1, -found, found)


def _floats(whole: Bytes) -> Tensor:
    return whole.astype(float32)


def _halves(b: Bytes) -> Bytes:
    """Low halves of all bytes, then the high ones."""
    return movement.concat((b & 15, b >> 4), axis=-1)


def _bits(b: Bytes, of: Sequence[int]) -> Bytes:
    """Bits of all bytes: all of the first that is asked for, then those of the next."""
    return movement.concat([(b >> i) & 1 for i in of], axis=-1)


def _fifth(b: Bytes) -> Bytes:
    """The bits of four bytes, one number each."""
    bits = movement.stack([(b >> i) & 1 for i in range(8)], axis=-1)
    return bits.reshape((*b.shape[:-1], 32)) << 4


def _q4_0(b: Bytes) -> Tensor:
    return _half(b, 0) * _floats(_halves(b[..., 2:]) - 8)


def _q4_1(b: Bytes) -> Tensor:
    return _half(b, 0) * _floats(_halves(b[..., 4:])) + _half(b, 2)


def _q5_0(b: Bytes) -> Tensor:
    return _half(b, 0) * _floats((_halves(b[..., 6:]) | _fifth(b[..., 2:6])) - 16)


def _q5_1(b: Bytes) -> Tensor:
    return _half(b, 0) * _floats(_halves(b[..., 8:]) | _fifth(b[..., 4:8])) + _half(b, 2)


def _q8_0(b: Bytes) -> Tensor:
    return _half(b, 0) * _floats((b[..., 2:] ^ 128) - 128)


def _parts(b: Bytes, whole: Bytes) -> Tensor:
    """Eight parts of 32 numbers, whose scales and least numbers have 6 bits each in 12 bytes."""
    first, second, rest = b[..., 4:8], b[..., 8:12], b[..., 12:16]
    scales = movement.concat((first & 63, (rest & 15) | ((first >> 2) & 48)), axis=-1)
    least = movement.concat((second & 63, (rest >> 4) | ((second >> 2) & 48)), axis=-1)
    factor, less = _half(b, 0) * _floats(scales), _half(b, 2) * _floats(least)
    parts = _floats(whole.reshape((*whole.shape[:-1], 8, 32)))
    return (factor[..., None] * parts - less[..., None]).reshape(whole.shape)


def _quarters(b: Bytes) -> Bytes:
    """Halves of 32 bytes at a time."""
    return _halves(b.reshape((*b.shape[:-1], 4, 32))).reshape((*b.shape[:-1], 256))


def _q4_k(b: Bytes) -> Tensor:
    return _parts(b, _quarters(b[..., 16:]))


def _q5_k(b: Bytes) -> Tensor:
    return _parts(b, _quarters(b[..., 48:]) | (_bits(b[..., 16:48], range(8)) << 4))


def _q6_k(b: Bytes) -> Tensor:
    front = b.shape[:-1]
    low = _halves(b[..., :128].reshape((*front, 2, 64))).reshape((*front, 2, 4, 32))
    rest = b[..., 128:192].reshape((*front, 2, 32))
    high = movement.stack([(rest >> i) & 3 for i in (0, 2, 4, 6)], axis=-2)
    scales = _half(b, 208) * _floats((b[..., 192:208] ^ 128) - 128)
    parts = _floats((low | (high << 4)) - 32).reshape((*front, 16, 16))
    return (scales[..., None] * parts).reshape((*front, 256))


def _f16(b: Bytes) -> Tensor:
    return _half(b, 0)


_WIDEN: Final[dict[str, Callable[[Bytes], Tensor]]] = {
    "BF16": _bf16,
    "F16": _f16,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q4_K": _q4_k,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
    "Q8_0": _q8_0,
}


def _near(x: Tensor) -> Tensor:
    """Rows as integers of 8 bits times a scale for each group."""
    parts = x.astype(float32).reshape((*x.shape[:-1], x.shape[-1] // _GROUP, _GROUP))
    scale = parts.abs().max(axis=-1, keepdims=True) / 127.0
    whole = (parts / binary.where(scale > 0.0, scale, inf)).round().clip(-127.0, 127.0)
    return (whole * scale).reshape(x.shape)


def _work(specs: Any, attributes: Any) -> int:
    """Each element of x meets each row of the weight."""
    del attributes
    return prod(specs[0].shape) * int(specs[1].shape[0])


# A float16 that begins with such bytes is no infinity.
_BYTES: Final = {"blocks": (0, 60)}


@quantization.formula(
    "blocks: Int; form: str = 'Q8_0', dtype: DType = 'float32' -> Float",
    shape=shapes.dequantize_blocks,
    domain=_BYTES,
    ulp=4,
    atol=4,
    cases=(
        case((3, 4), form="BF16"),
        case((2, 6), form="F16"),
        case((2, 36), form="Q4_0"),
        case((20,), form="Q4_1"),
        case((2, 1, 144), form="Q4_K"),
        case((2, 22), form="Q5_0"),
        case((2, 48), form="Q5_1"),
        case((1, 176), form="Q5_K"),
        case((2, 210), form="Q6_K"),
        case((3, 68), form="Q8_0"),
    ),
    refuses=(refusal(ShapeError, (2, 33)), refusal(ArgumentError, (2, 34), form="Q9")),
    method=False,
    example="pt.dequantize_blocks(pt.asarray([[0, 60] + [1, 255] * 16], dtype='uint8'))",
    doc="The numbers that blocks of llama.cpp stand for: rows of bytes become rows of numbers. A "
    "``form`` is Q4_0, Q4_1, Q5_0, Q5_1 or Q8_0 of 32 numbers, Q4_K, Q5_K or Q6_K of 256, or F16 "
    "or BF16, floats one by one. Integers of other types than uint8 are taken as bytes too, each "
    "as what its lowest 8 bits are.",
)
def dequantize_blocks(blocks: Tensor[Int], form: str, dtype: DType) -> Tensor:
    _, nbytes = shapes.FORMS[form]
    front, count = blocks.shape[:-1], blocks.shape[-1] // nbytes
    whole = (blocks.astype(int32) & 255).reshape((*front, count, nbytes))
    found = _WIDEN[form](whole)
    return found.reshape((*front, count * found.shape[-1])).astype(dtype)


@contraction.formula(
    "x: Float, blocks: Int, bias: Float?; form: str = 'Q8_0', rounded: bool = False -> Float",
    shape=shapes.blocks_linear,
    work=_work,
    domain=_BYTES,
    ulp=16,
    atol=512,  # sums of products up to 200
    cases=(
        case((3, 32), (5, 34), (5,)),
        case((2, 2, 64), (3, 36), None, form="Q4_0"),
        case((256,), (2, 144), (2,), form="Q4_K"),
        case((2, 5), (3, 10), (3,), form="BF16"),
        case((3, 7), (4, 14), None, form="F16", rounded=True),
    ),
    refuses=(refusal(ShapeError, (3, 32), (5, 33), None),),
    method=False,
    example="pt.blocks_linear(pt.ones((32,)), pt.asarray([[0, 60] + [1] * 32], dtype='uint8'), "
    "None)",
    doc="``x @ weight.mT + bias`` with a weight of shape (out, in) in blocks of a ``form`` as "
    "``dequantize_blocks`` has them, of which floats are made for the call alone. "
    "``rounded``: first, in float32, each 32 numbers of x become integers of 8 bits times a scale, "
    "as in llama.cpp; beside F16 and BF16 x stays as it is. Up to 32 such rows on ``Cpu``, "
    "with the byte products of AVX-512 all, are multiplied without floats of the weight in memory; "
    "more rows may differ from fewer in the last bits. The gradient is that of the product without "
    "rounding.",
)
def blocks_linear(
    x: Tensor, blocks: Tensor[Int], bias: Tensor | None, form: str, rounded: bool
) -> Tensor:
    wide = x.to_full_precision()
    weight = dequantize_blocks(blocks, form, dtype=wide.dtype)
    rounds = rounded and shapes.FORMS[form][0] > 1
    rows = _near(x).astype(wide.dtype) if rounds else wide
    more = None if bias is None else bias.astype(wide.dtype)
    return products.linear(rows, weight.mT, more).astype(x.dtype)


def _in_bytes(words: Tensor[Int]) -> Tensor[Int]:
    whole = words.astype(int32)
    found = movement.stack([(whole >> shift) & 255 for shift in (0, 8, 16, 24)], axis=-1)
    return found.reshape((*words.shape[:-1], 4 * words.shape[-1]))


@quantization.formula(
    "words: Int; form: str = 'Q8_0', dtype: DType = 'float32' -> Float",
    shape=shapes.dequantize_words,
    domain={"words": (0, 60)},
    ulp=4,
    atol=4,
    cases=(
        case((2, 9), form="Q4_0"),
        case((2, 1, 36), form="Q4_K"),
        case((1, 105), form="Q6_K"),
        case((3, 17), form="Q8_0"),
    ),
    refuses=(refusal(ShapeError, (2, 16)),),
    internal=True,
    doc="``dequantize_blocks`` of bytes that are four an int32, the first one lowest: for devices "
    "without uint8.",
)
def dequantize_words(words: Tensor[Int], form: str, dtype: DType) -> Tensor:
    return dequantize_blocks(_in_bytes(words), form, dtype=dtype)


@contraction.formula(
    "x: Float, words: Int, bias: Float?; form: str = 'Q8_0' -> Float",
    shape=shapes.words_linear,
    work=_work,
    domain={"words": (0, 60)},
    ulp=16,
    atol=512,
    cases=(
        case((3, 64), (5, 17), (5,)),
        case((2, 3, 64), (3, 9), None, form="Q4_0"),
        case((256,), (2, 36), (2,), form="Q4_K"),
        case((512,), (3, 105), None, form="Q6_K"),
    ),
    refuses=(refusal(ShapeError, (3, 32), (5, 17), None),),
    internal=True,
    doc="``blocks_linear``, not rounded, of bytes that are four an int32, as ``dequantize_words`` "
    "has them. Up to 4 rows on ``Wgpu`` are multiplied without floats of the weight.",
)
def words_linear(x: Tensor, words: Tensor[Int], bias: Tensor | None, form: str) -> Tensor:
    return blocks_linear(x, _in_bytes(words), bias, form)
