"""Derivative of attention."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Bool, Tensor, ops

from .._rule import Joint, Rule


def _attention(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor[Bool] | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Tensor | None, ...]:
    operands = (query, key, value, mask, bias)
    *parts, dbias = ops.attention_backward(g, *operands, scale, softcap, is_causal)
    return (*parts, None, None if bias is None else dbias)


RULES: Final[dict[str, Rule]] = {
    "attention": Joint(_attention),
}
