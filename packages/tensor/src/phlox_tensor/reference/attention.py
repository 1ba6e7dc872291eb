"""Attention by its definition, all scores at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._precision import widen
from .rows import softmax

Array = np.ndarray[Any, Any]


def _over_heads(x: Array, heads: int) -> Array:
    """The heads of key or value repeated for the query heads that share them."""
    return np.repeat(x, heads // max(x.shape[-3], 1), axis=-3)


def _over_groups(dx: Array, heads: int) -> Array:
    """The sum over the query heads that share a head of key or value."""
    if not heads:
        return np.zeros((*dx.shape[:-3], 0, *dx.shape[-2:]), dx.dtype)
    split = (*dx.shape[:-3], heads, dx.shape[-3] // heads, *dx.shape[-2:])
    return np.asarray(np.sum(dx.reshape(split), axis=-3))


def _capped(query: Array, key: Array, scale: float, softcap: float | None) -> Array:
    scores = np.matmul(query, np.swapaxes(key, -1, -2)) * query.dtype.type(scale)
    return scores if softcap is None else np.tanh(scores / softcap) * softcap


def _weights(capped: Array, mask: Array | None, bias: Array | None, is_causal: bool) -> Array:
    scores = capped if mask is None else np.where(mask, -np.inf, capped)
    if is_causal:
        queries, keys = scores.shape[-2:]
        later = np.arange(keys) > np.arange(queries)[:, None] + (keys - queries)
        scores = np.where(later, -np.inf, scores)
    if bias is not None:
        scores = scores + widen(bias)
    return softmax(scores.astype(capped.dtype), -1)


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> Array:
    heads = query.shape[-3]
    keys, values = (_over_heads(widen(x), heads) for x in (key, value))
    weights = _weights(_capped(widen(query), keys, scale, softcap), mask, bias, is_causal)
    return np.matmul(weights, values).astype(query.dtype)


def attention_backward(
    g: Array,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    bias: Array | None,
    scale: float,
    softcap: float | None,
    is_causal: bool,
) -> tuple[Array, Array, Array, Array]:
    heads, shared = query.shape[-3], key.shape[-3]
    wide, out = widen(query), widen(g)
    keys, values = (_over_heads(widen(x), heads) for x in (key, value))
    capped = _capped(wide, keys, scale, softcap)
    weights = _weights(capped, mask, bias, is_causal)
    dvalue = np.matmul(np.swapaxes(weights, -1, -2), out)
    dweights = np.matmul(out, np.swapaxes(values, -1, -2))
    inner = np.sum(weights * dweights, axis=-1, keepdims=True)
    dscores = weights * (dweights - inner)
    dbias = np.zeros(0) if bias is None else _summed_to(dscores, bias.shape)
    if softcap is not None:
        dscores = dscores * (1 - (capped / softcap) ** 2)
    dscores = dscores * wide.dtype.type(scale)
    dquery = np.matmul(dscores, keys)
    dkey = np.matmul(np.swapaxes(dscores, -1, -2), wide)
    results = (dquery, _over_groups(dkey, shared), _over_groups(dvalue, shared), dbias)
    dquery, dkey, dvalue, dbias = (x.astype(query.dtype) for x in results)
    return dquery, dkey, dvalue, dbias


def _summed_to(x: Array, shape: tuple[int, ...]) -> Array:
    """The sum over the axes along which ``shape`` was broadcast."""
    extra = x.ndim - len(shape)
    axes = [*range(extra)]
    axes += [extra + i for i, n in enumerate(shape) if n == 1 and x.shape[extra + i] != 1]
    return np.asarray(np.sum(x, axis=tuple(axes))).reshape(shape)
