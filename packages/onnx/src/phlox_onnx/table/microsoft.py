"""Ops of the domain com.microsoft, which ONNX Runtime's tools put into files."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, Final

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Host, Row, row
from .attention import by_heads, rotated, shared, together
from .norm import rms_normalization

T = Tensor[Any]


def skip_layer_normalization(
    input: T,
    skip: T,
    gamma: T,
    beta: T | None = None,
    bias: T | None = None,
    *,
    epsilon: float = 1e-12,
) -> tuple[Any, ...]:
    """The norm of a sum; mean and deviation, which nothing reads, are absent."""
    total = input + skip
    total = total if bias is None else total + bias
    return px.layer_norm(total, gamma, beta, epsilon), None, None, total


def skip_simplified_layer_normalization(
    input: T, skip: T, gamma: T, bias: T | None = None, *, epsilon: float = 1e-12
) -> tuple[Any, ...]:
    total = input + skip
    total = total if bias is None else total + bias
    return rms_normalization(total, gamma, epsilon=epsilon), None, None, total


def embed_layer_normalization(
    input_ids: T,
    segment_ids: T | None,
    word_embedding: T,
    position_embedding: T,
    segment_embedding: T | None,
    gamma: T,
    beta: T,
    mask: T | None = None,
    position_ids: T | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
    outputs: int,
) -> tuple[Any, ...]:
    """Words, places and segments added up and normalized."""
    if mask_index_type not in (0, 1):
        got = f"mask_index_type={mask_index_type}"
        raise OnnxError("EmbedLayerNormalization", "such a mask has no row", got=got)
    length = input_ids.shape[1]
    at = px.arange(length, device=input_ids.device) if position_ids is None else position_ids
    total = word_embedding.take(input_ids, axis=0) + position_embedding.take(at, axis=0)
    if segment_embedding is not None and segment_ids is not None:
        total = total + segment_embedding.take(segment_ids, axis=0)
    seen = None if mask is None else mask.sum(axis=1).astype(px.int32)
    if seen is None and outputs > 1:
        seen = px.full((input_ids.shape[0],), 0, dtype=px.int32, device=input_ids.device)
    return px.layer_norm(total, gamma, beta, epsilon), seen, total


def _seen_by_length(mask: T, keys: int) -> T:
    """A mask that ONNX Runtime knows by its rank, as True for what is seen."""
    if mask.ndim == 1:
        line = px.arange(keys, device=mask.device).astype(mask.dtype)
        return (line < mask.expand_dims(axis=1)).reshape((-1, 1, 1, keys))
    seen = mask != 0
    if mask.ndim == 2:
        return seen.reshape((seen.shape[0], 1, 1, -1))
    return seen.expand_dims(axis=1) if mask.ndim == 3 else seen


def _attended(q: T, k: T, v: T, scale: float, bias: T | None, seen: T | None, causal: bool) -> T:
    """Scores that are hidden get the largest negative number, as ONNX Runtime does."""
    scores = (q @ k.mT) * scale
    if bias is not None:
        scores = scores + bias
    if seen is not None:
        scores = seen.where(scores, -10000.0)
    if causal:
        queries, keys = scores.shape[-2:]
        allowed = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        scores = px.asarray(allowed, device=q.device).where(scores, -inf)
    return px.softmax(scores, axis=-1) @ v


def multi_head_attention(
    query: T,
    key: T | None = None,
    value: T | None = None,
    bias: T | None = None,
    key_padding_mask: T | None = None,
    attention_bias: T | None = None,
    past_key: T | None = None,
    past_value: T | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float | None = None,
    unidirectional: int = 0,
) -> tuple[Any, ...]:
    if key is None or value is None:
        raise OnnxError("MultiHeadAttention", "packed query, key and value have no row")
    if mask_filter_value != -10000.0:
        raise OnnxError("MultiHeadAttention", "mask_filter_value has no row", got=mask_filter_value)
    if bias is not None:
        n, m = query.shape[-1], key.shape[-1] if key.ndim == 3 else query.shape[-1]
        query = query + bias[:n]
        if key.ndim == 3:
            key, value = key + bias[n : n + m], value + bias[n + m :]
    q, k, v = (by_heads(x, num_heads) if x.ndim == 3 else x for x in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = px.concat([past_key, k], axis=2), px.concat([past_value, v], axis=2)
    seen = None if key_padding_mask is None else _seen_by_length(key_padding_mask, k.shape[2])
    by = scale or 1 / sqrt(q.shape[-1])
    out = _attended(q, k, v, by, attention_bias, seen, bool(unidirectional))
    return together(out), k, v


def packed_attention(
    input: T,
    weights: T,
    bias: T | None = None,
    mask_index: T | None = None,
    past: T | None = None,
    attention_bias: T | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    qkv_hidden_sizes: tuple[int, ...] | None = None,
    scale: float | None = None,
    unidirectional: int = 0,
) -> tuple[Any, ...]:
    """Query, key and value from one product with the input."""
    if mask_filter_value != -10000.0:
        raise OnnxError("Attention", "mask_filter_value has no row", got=mask_filter_value)
    wide = input @ weights
    wide = wide if bias is None else wide + bias
    each = weights.shape[1] // 3
    sizes = qkv_hidden_sizes or (each, each, each)
    how: dict[str, Any] = {"scale": scale, "unidirectional": unidirectional}
    return attended_from(wide, sizes, num_heads, mask_index, past, attention_bias, **how)


def attended_from(
    wide: T,
    sizes: tuple[int, ...],
    heads: int,
    mask: T | None,
    past: T | None,
    bias: T | None,
    *,
    scale: float | None,
    unidirectional: int,
) -> tuple[Any, ...]:
    """Attention of query, key and value that lie side by side; and the last two, with the past."""
    q, k, v = (by_heads(x, heads) for x in px.split(wide, list(sizes), axis=2))
    if past is not None:
        k, v = px.concat([past[0], k], axis=2), px.concat([past[1], v], axis=2)
    seen = None if mask is None else _seen_by_length(mask, k.shape[2])
    by = scale or 1 / sqrt(q.shape[-1])
    out = _attended(q, k, v, by, bias, seen, bool(unidirectional))
    return together(out), px.stack([k, v], axis=0)


def _turned(x: T, first: Any, cos: T, sin: T, interleaved: int) -> T:
    """Rotary positions that start at a place of their own in each batch."""
    at = np.asarray(first).reshape(-1, 1) + np.arange(x.shape[2])
    places = px.asarray(at, dtype=x.device.default_int, device=x.device)
    c, s = (v.take(places, axis=0).expand_dims(axis=1) for v in (cos, sin))
    return rotated(x, c, s, interleaved, 2 * cos.shape[1])


def group_query_attention(
    query: T,
    key: T | None,
    value: T | None,
    past_key: T | None,
    past_value: T | None,
    seqlens_k: Host,
    total_sequence_length: Host,
    cos_cache: T | None = None,
    sin_cache: T | None = None,
    *,
    do_rotary: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
) -> tuple[Any, ...]:
    """Causal attention with a cache; ``seqlens_k`` are the lengths of all that is seen, less 1."""
    if smooth_softmax:
        raise OnnxError("GroupQueryAttention", "smooth_softmax has no row")
    if key is None or value is None:
        size = query.shape[2] // (num_heads + 2 * kv_num_heads)
        cut = [num_heads * size, kv_num_heads * size, kv_num_heads * size]
        query, key, value = px.split(query, cut, axis=2)
    q, k, v = by_heads(query, num_heads), by_heads(key, kv_num_heads), by_heads(value, kv_num_heads)
    lengths = seqlens_k.reshape(-1).astype(np.int64) + 1
    new = q.shape[2]
    first = np.maximum(lengths - new, 0)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise OnnxError("GroupQueryAttention", "the caches of cos and sin are missing")
        q = _turned(q, first, cos_cache, sin_cache, rotary_interleaved)
        k = _turned(k, first, cos_cache, sin_cache, rotary_interleaved)
    have = 0 if past_key is None else past_key.shape[2]
    total = max(int(total_sequence_length.reshape(-1)[0]), have)
    k, v = (_cached(old, x, first, total) for old, x in ((past_key, k), (past_value, v)))
    at = first[:, None] + np.arange(new)
    seen = np.arange(total) <= at[:, :, None]
    if local_window_size > 0:
        seen &= np.arange(total) > at[:, :, None] - local_window_size
    mask = px.asarray(seen[:, None], device=q.device)
    scores = (q @ shared(k, num_heads).mT) * (scale or 1 / sqrt(q.shape[-1]))
    if softcap:
        scores = (scores / softcap).tanh() * softcap
    weights = px.softmax(mask.where(scores, -inf), axis=-1)
    return together(weights @ shared(v, num_heads)), k, v


def _cached(past: T | None, x: T, first: Any, total: int) -> T:
    """New rows behind those of the cache, in each batch where its sequence ends."""
    batch, heads, new, size = x.shape
    out = px.full((batch, heads, total, size), 0.0, dtype=x.dtype, device=x.device)
    if past is not None and past.shape[2]:
        grown = total - past.shape[2]
        out = past.pad(((0, 0), (0, 0), (0, grown), (0, 0)), 0.0) if grown else past
        held = np.arange(total) < np.asarray(first)[:, None]  # what is behind is of nobody
        mask = px.asarray(held[:, None, :, None], device=x.device)
        out = mask.where(out, 0.0)
    at = (np.asarray(first)[:, None] + np.arange(new)).reshape(batch, 1, new, 1)
    places = px.asarray(np.broadcast_to(at, x.shape), dtype=x.device.default_int, device=x.device)
    return out.scatter(places, x, axis=2)


def microsoft_rotary_embedding(
    input: T,
    position_ids: T,
    cos_cache: T,
    sin_cache: T,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> T:
    """One position is that of the first row; else there is one for each."""
    if is_packed_batching or scale != 1:
        got = f"is_packed_batching={is_packed_batching}, scale={scale}"
        raise OnnxError("RotaryEmbedding", "such positions have no row", got=got)
    width = rotary_embedding_dim or 2 * cos_cache.shape[1]
    flat = input.ndim == 3
    heads = num_heads or (input.shape[2] // width if flat else 0)
    x = by_heads(input, heads) if flat else input
    length = x.shape[2]
    at = position_ids
    if at.size == 1:
        at = at.reshape((1, 1)) + px.arange(length, device=x.device).astype(at.dtype)
    cos, sin = (v.take(at, axis=0).expand_dims(axis=1) for v in (cos_cache, sin_cache))
    out = rotated(x, cos, sin, interleaved, width)
    return together(out) if flat else out


# Of packed weights.
BITS: Final = (2, 4, 8)


def matmul_n_bits(
    A: T,
    B: Host,
    scales: T,
    zero_points: Host | None = None,
    g_idx: Host | None = None,
    bias: T | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
) -> T:
    """Weights of 2, 4 or 8 bits in blocks along K, unpacked at each call."""
    if bits not in BITS or g_idx is not None:
        got = f"{bits} bits" if g_idx is None else "g_idx"
        expected = "2, 4 or 8 bits, blocks in order"
        raise OnnxError("MatMulNBits", "such weights have no row", got=got, expected=expected)
    whole = unpacked(B, zero_points, (N, K), bits, block_size)
    off = px.asarray(whole, dtype=scales.dtype, device=A.device)
    weight = (off * scales.reshape((N, -1, 1))).reshape((N, -1))[:, :K]
    out = A @ weight.astype(A.dtype).mT
    return out if bias is None else out + bias


def unpacked(
    data: Host, zero_points: Host | None, shape: tuple[int, int], bits: int, block_size: int
) -> Host:
    """How far weights (rows, blocks, block) are from their zero points, in units of the scales."""
    rows, columns = shape
    blocks = -(-columns // block_size)
    whole = _in_bytes(data.reshape(rows, -1), bits).reshape(rows, blocks, block_size)
    if zero_points is None:
        zero: Any = float(1 << (bits - 1))
    elif zero_points.dtype == np.uint8:
        per = -(-blocks * bits // 8)
        zero = _in_bytes(zero_points.reshape(rows, per), bits)[:, :blocks, None]
    else:
        zero = zero_points.reshape(rows, blocks, 1)
    return whole.astype(np.float32) - np.asarray(zero, np.float32)


def _in_bytes(data: Host, bits: int) -> Host:
    """The numbers in each byte, the low one first."""
    parts = [data >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    return np.stack(parts, axis=-1).reshape(data.shape[0], -1)


ROWS: Final[dict[str, Row]] = {
    "Attention": row(1, packed_attention, trained="weights bias"),
    "EmbedLayerNormalization": row(
        1,
        embed_layer_normalization,
        trained="word_embedding position_embedding segment_embedding gamma beta",
    ),
    "GroupQueryAttention": row(1, group_query_attention),
    "MatMulNBits": row(1, matmul_n_bits, trained="scales bias"),
    "MultiHeadAttention": row(1, multi_head_attention, trained="bias"),
    "RotaryEmbedding": row(1, microsoft_rotary_embedding),
    "SkipLayerNormalization": row(1, skip_layer_normalization, trained="gamma beta bias"),
    "SkipSimplifiedLayerNormalization": row(
        1, skip_simplified_layer_normalization, trained="gamma bias"
    ),
}
