"""Derivatives of weights in blocks."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Int, Tensor, dequantize_blocks
from phlox_tensor.ops.blocks import dequantize_words

from .._rule import Rule, none
from .contraction import linear_bias


def _linear_x(g: Tensor, blocks: Tensor[Int], form: str) -> Tensor:
    """``g @ weight``; the rounding of x is passed as if it were not there (Bengio et al., 2013)."""
    return g @ dequantize_blocks(blocks, form, dtype=g.dtype)


def _words_x(g: Tensor, words: Tensor[Int], form: str) -> Tensor:
    return g @ dequantize_words(words, form, dtype=g.dtype)


RULES: Final[dict[str, Rule]] = {
    "blocks_linear": (_linear_x, None, linear_bias),
    "dequantize_blocks": none("what it takes are integers"),
    "dequantize_words": none("what it takes are integers"),
    "words_linear": (_words_x, None, linear_bias),
}
