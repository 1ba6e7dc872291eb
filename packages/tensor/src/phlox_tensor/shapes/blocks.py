"""Shape rules of weights in blocks."""

from __future__ import annotations

from typing import Final

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Spec, Specs

# Form of llama.cpp -> numbers of a block, and its bytes.
FORMS: Final = {
    "BF16": (1, 2),
    "F16": (1, 2),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q4_K": (256, 144),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "Q8_0": (32, 34),
}


def _numbers(op: Op, blocks: Shape, form: str) -> Shape:
    """The shape of what blocks stand for."""
    if form not in FORMS:
        expected = ", ".join(FORMS)
        raise ArgumentError(op.name, "no such form", got=repr(form), expected=expected)
    size, nbytes = FORMS[form]
    if not blocks or blocks[-1] % nbytes:
        what, expected = "rows are no whole blocks", f"(…, a multiple of {nbytes}) of {form}"
        raise ShapeError(op.name, what, got=blocks, expected=expected)
    return (*blocks[:-1], blocks[-1] // nbytes * size)


def dequantize_blocks(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, bytes) to (…, numbers)."""
    form, dtype = attributes
    if dtype.kind != "Float":
        raise ArgumentError(op.name, "no floats", got=dtype, expected="such as float32")
    return [_numbers(op, specs[0].shape, form)]


def dequantize_words(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, words) to (…, numbers)."""
    return dequantize_blocks(op, (_bytes(specs[0]),), attributes)


def words_linear(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, in) times the transpose of (out, in) in words, plus (out,)."""
    return blocks_linear(op, (specs[0], _bytes(specs[1]), specs[2]), (*attributes, False))


def _bytes(words: Spec) -> Spec:
    shape = words.shape
    return words._replace(shape=(*shape[:-1], 4 * shape[-1]) if shape else shape)


def blocks_linear(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, in) times the transpose of (out, in) in blocks, plus (out,)."""
    form, _ = attributes
    x, blocks, bias = specs
    weight = _numbers(op, blocks.shape, form)
    if not x.shape or len(weight) != 2 or x.shape[-1] != weight[1]:
        raise ShapeError(
            op.name,
            "inner sizes differ",
            got=f"x {x.shape}, blocks of {weight}",
            expected="x (…, in), blocks of (out, in)",
        )
    if bias is not None and bias.shape != weight[:1]:
        raise ShapeError(op.name, "bias does not fit", got=bias.shape, expected=weight[:1])
    return [(*x.shape[:-1], weight[0])]
