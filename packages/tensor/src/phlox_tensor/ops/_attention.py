"""Attention in terms of other ops; ``contraction`` declares it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._tensor import Tensor
from . import binary, movement

if TYPE_CHECKING:
    from .._kinds import Bool


def _by_key_heads(x: Tensor, like: Tensor) -> Tensor:
    """(…, H, Q, n) as (…, Hkv, H / Hkv · Q, n): the queries that share a head follow each other."""
    heads, shared = x.shape[-3], like.shape[-3]
    if heads == shared:
        return x
    return x.reshape(*x.shape[:-3], shared, heads // shared * x.shape[-2], x.shape[-1])


def _hidden(scores: Tensor, mask: Tensor[Bool] | None, is_causal: bool) -> Tensor[Bool] | None:
    """True where a query may not look."""
    if not is_causal:
        return mask
    queries, keys = scores.shape[-2:]
    device, counts = scores.device, scores.device.default_int
    rows = Tensor[Any](device.ops.arange(keys - queries, 1, queries, counts), device)
    columns = Tensor[Any](device.ops.arange(0, 1, keys, counts), device)
    later = columns > rows.reshape(queries, 1)
    return later if mask is None else binary.logical_or(mask, later)


def _weights(
    capped: Tensor, mask: Tensor[Bool] | None, bias: Tensor | None, is_causal: bool
) -> Tensor:
    if not capped.shape[-1]:
        return capped
    hidden = _hidden(capped, mask, is_causal)
    scores = capped if hidden is None else hidden.where(-float("inf"), capped)
    return (scores if bias is None else scores + bias).softmax(axis=-1)


def _capped(query: Tensor, key: Tensor, scale: float, softcap: float | None) -> Tensor:
    scores = (_by_key_heads(query, key) @ key.mT) * scale
    scores = scores.reshape(*query.shape[:-1], key.shape[-2])
    return scores if softcap is None else (scores / softcap).tanh() * softcap


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor[Bool] | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> Tensor:
    """``softmax(scores) @ value``."""
    weights = _weights(_capped(query, key, scale, softcap), mask, bias, is_causal)
    out = _by_key_heads(weights, value) @ value
    return out.reshape(*query.shape[:-1], value.shape[-1])


def attention_backward(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor[Bool] | None,
    bias: Tensor | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The cotangents, from the scores computed again."""
    capped = _capped(query, key, scale, softcap)
    weights = _weights(capped, mask, bias, is_causal)
    shared = _by_key_heads(g, value)
    dvalue = _by_key_heads(weights, value).mT @ shared
    dweights = (shared @ value.mT).reshape(weights.shape)
    dscores = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True))
    dbias = g.zeros((0,)) if bias is None else _summed_to(dscores, bias.shape)
    if softcap is not None:
        dscores = dscores * (1 - (capped / softcap).square())
    pull = _by_key_heads(dscores * scale, key)
    dquery = (pull @ key).reshape(query.shape)
    return dquery, pull.mT @ _by_key_heads(query, key), dvalue, dbias


def _summed_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The sum over the axes along which ``shape`` was broadcast."""
    extra = x.ndim - len(shape)
    axes = [*range(extra)]
    axes += [extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1]
    return movement.reshape(x.sum(axis=axes) if axes else x, shape)
