"""Attention and rotary positions."""

from __future__ import annotations

from functools import reduce
from math import inf, sqrt
from typing import Any, Final, Literal

import numpy as np

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ..read._types import to_type
from ._row import Row, row

T = Tensor[Any]


def by_heads(x: T, heads: int) -> T:
    """(batch, sequence, heads · size) as (batch, heads, sequence, size)."""
    batch, length, width = x.shape
    return x.reshape((batch, length, heads, width // heads)).permute_dims((0, 2, 1, 3))


def together(x: T) -> T:
    """(batch, heads, sequence, size) as (batch, sequence, heads · size)."""
    batch, heads, length, size = x.shape
    return x.permute_dims((0, 2, 1, 3)).reshape((batch, length, heads * size))


def shared(x: T, heads: int) -> T:
    """Heads of key or value, each for its group of query heads."""
    return x if x.shape[1] == heads else px.repeat(x, heads // x.shape[1], axis=1)


def _seen(queries: int, keys: int, past: Any, left: int, right: int, lengths: Any) -> Any:
    """True where a query may look: ``past`` keys come before the first query."""
    at = np.arange(queries)[:, None] + np.asarray(past).reshape(-1, 1, 1, 1)
    keys_at = np.arange(keys)
    seen = np.ones((1, 1, queries, keys), bool)
    if left >= 0:
        seen = seen & (keys_at >= at - left)
    if right >= 0:
        seen = seen & (keys_at <= at + right)
    if lengths is not None:
        seen = seen & (keys_at < np.asarray(lengths).reshape(-1, 1, 1, 1))
    return None if seen.all() else seen


def _bias(attn_mask: T | None, q: T, keys: int, seen: Any) -> T | None:
    """What is added to the scores: 0 or -inf, or what the mask says."""
    parts = []
    if attn_mask is not None:
        mask = attn_mask
        if mask.dtype.kind == "Bool":
            mask = mask.where(0.0, px.full(mask.shape, -inf, dtype=q.dtype, device=q.device))
        missing = keys - mask.shape[-1]
        if missing > 0:
            mask = mask.pad((*((0, 0),) * (mask.ndim - 1), (0, missing)), -inf)
        parts.append(mask.astype(q.dtype))
    if seen is not None:
        parts.append(px.asarray(np.where(seen, 0.0, -inf), dtype=q.dtype, device=q.device))
    return reduce(px.add, parts) if parts else None


def _plain_attention(
    q: T, k: T, v: T, mask: T | None, is_causal: int, scale: float | None, softcap: float
) -> T:
    words: dict[str, Any] = {} if scale is None else {"scale": scale}
    words |= {"softcap": softcap} if softcap else {}
    words |= {"is_causal": True} if is_causal else {}
    if mask is not None:
        words |= {"mask": ~mask} if mask.dtype.kind == "Bool" else {"bias": mask.astype(q.dtype)}
    return px.attention(q, k, v, **words)


def attention(
    Q: T,
    K: T,
    V: T,
    attn_mask: T | None = None,
    past_key: T | None = None,
    past_value: T | None = None,
    nonpad_kv_seqlen: T | None = None,
    *,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    outputs: int,
) -> Any:
    """``softmax(scale · Q Kᵀ + mask) V``, with what was before in front of keys and values."""
    flat = Q.ndim == 3
    if flat:
        if not q_num_heads or not kv_num_heads:
            raise OnnxError("Attention", "the numbers of heads are missing", got=f"rank {Q.ndim}")
        Q, K, V = by_heads(Q, q_num_heads), by_heads(K, kv_num_heads), by_heads(V, kv_num_heads)
    past: Any = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        K, V = px.concat([past_key, K], axis=2), px.concat([past_value, V], axis=2)
    lengths = None if nonpad_kv_seqlen is None else nonpad_kv_seqlen.numpy()
    if lengths is not None:
        past = lengths - Q.shape[2]
    whole = lengths is None and left_window_size < 0 and right_window_size < 0
    exact = softmax_precision is None or to_type(softmax_precision) is Q.dtype
    fits = attn_mask is None or attn_mask.shape[-1] == K.shape[2]
    # Where the last query sees all keys, causal is the same for both.
    level = not is_causal or Q.shape[2] == (K.shape[2] if past_key is None else 0)
    if whole and exact and fits and level and outputs == 1 and Q.dtype.itemsize > 2:
        out = _plain_attention(Q, K, V, attn_mask, is_causal, scale, softcap)
        return (together(out) if flat else out,)
    heads, keys = Q.shape[1], K.shape[2]
    root = sqrt(scale) if scale is not None else 1 / sqrt(sqrt(Q.shape[3]))
    q, k, v = Q * root, shared(K, heads) * root, shared(V, heads)
    scores = q @ k.mT
    seen = [scores]
    right = 0 if is_causal else right_window_size
    allowed = _seen(Q.shape[2], keys, past, left_window_size, right, lengths)
    bias = _bias(attn_mask, scores, keys, allowed)
    capped = scores if not softcap else (scores / softcap).tanh() * softcap
    seen.append(capped)
    masked = capped if bias is None else capped + bias
    seen.append(masked)
    wide = masked if softmax_precision is None else masked.astype(to_type(softmax_precision))
    weights = px.softmax(wide, axis=-1).astype(Q.dtype)
    if bias is not None:  # a query that sees nothing, whatever the scores
        weights = (bias.max(axis=-1, keepdims=True) == -inf).where(0.0, weights)
    seen.append(weights)
    out = weights @ v
    out = together(out) if flat else out
    return (out, K, V, seen[qk_matmul_output_mode])[: max(1, outputs)]


def flex_attention(
    Q: T,
    K: T,
    V: T,
    *,
    prob_mod: Any = None,
    scale: float | None = None,
    score_mod: Any = None,
    softmax_precision: int | None = None,
) -> T:
    """Attention whose scores and weights go through graphs of the file."""
    wide = px.float64 if Q.dtype is px.float64 else px.float32
    wide = wide if softmax_precision is None else to_type(softmax_precision)
    heads = Q.shape[1]
    scores = (Q @ shared(K, heads).mT) * (scale or 1 / sqrt(Q.shape[3]))
    scores = scores.astype(wide)
    if score_mod is not None:
        (scores,) = score_mod(scores)
    weights = px.softmax(scores, axis=-1)
    if prob_mod is not None:
        (weights,) = prob_mod(weights)
    return weights.astype(Q.dtype) @ shared(V, heads)


def rotated(x: T, cos: T, sin: T, interleaved: int, width: int) -> T:
    """The first ``width`` of the last axis turned by pairs; cos and sin broadcast to half of it."""
    turned, rest = x[..., :width], x[..., width:]
    if interleaved:
        pairs = turned.reshape((*turned.shape[:-1], width // 2, 2))
        a, b = pairs[..., 0], pairs[..., 1]
    else:
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    if interleaved:
        out = px.stack([real, imaginary], axis=-1).reshape(turned.shape)
    else:
        out = px.concat([real, imaginary], axis=-1)
    return px.concat([out, rest], axis=-1) if rest.shape[-1] else out


def rotary_embedding(
    X: T,
    cos_cache: T,
    sin_cache: T,
    position_ids: T | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> T:
    flat = X.ndim == 3
    x = by_heads(X, num_heads) if flat else X
    width = rotary_embedding_dim or x.shape[-1]
    cos, sin = cos_cache, sin_cache
    if position_ids is not None:
        cos, sin = cos.take(position_ids, axis=0), sin.take(position_ids, axis=0)
    cos, sin = (v[..., : width // 2].expand_dims(axis=1) for v in (cos, sin))
    out = rotated(x, cos, sin, interleaved, width)
    return together(out) if flat else out


def _of_rule(name: str, value: T | None, wanted: bool, rule: str) -> T | None:
    """An input of some rules; others do not look at it."""
    if wanted and value is None:
        raise OnnxError("LinearAttention", f"{name} is missing", got=f"update_rule={rule!r}")
    return value if wanted else None


def linear_attention(
    query: T,
    key: T,
    value: T,
    past_state: T | None = None,
    decay: T | None = None,
    beta: T | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: Literal["linear", "gated", "delta", "gated_delta"] = "gated_delta",
) -> tuple[T, T]:
    """A state (batch, heads, d_k, d_v) that each step writes to and reads; step by step."""
    decay = _of_rule("decay", decay, "gated" in update_rule, update_rule)
    beta = _of_rule("beta", beta, "delta" in update_rule, update_rule)
    q, k, v = (
        by_heads(x.to_full_precision(), heads)
        for x, heads in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    batch, _, length, size = k.shape
    gates = None if decay is None else by_heads(decay.to_full_precision(), kv_num_heads).exp()
    rates = None if beta is None else by_heads(beta.to_full_precision(), beta.shape[-1])
    if past_state is None:
        shape = (batch, kv_num_heads, size, v.shape[-1])
        state = px.full(shape, 0.0, dtype=q.dtype, device=q.device)
    else:
        state = past_state.to_full_precision()
    found = []
    for t in range(length):
        kt, vt = k[:, :, t, :, None], v[:, :, t, None, :]
        if gates is not None:
            state = state * gates[:, :, t, :, None]
        if rates is not None:
            vt = rates[:, :, t, :, None] * (vt - kt.mT @ state)
        state = state + kt * vt
        found.append(q[:, :, t, None, :] @ shared(state, q_num_heads))
    out = px.concat(found, axis=2) * (scale or 1 / sqrt(size))
    kept = query if past_state is None else past_state
    return together(out).astype(query.dtype), state.astype(kept.dtype)


def causal_conv(
    input: T,
    weight: T,
    bias: T | None = None,
    past_state: T | None = None,
    *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> tuple[T, T]:
    """Each channel with its own kernel over what was before; the end is the next state."""
    before = weight.shape[2] - 1
    if past_state is None:
        padded = input.pad(((0, 0), (0, 0), (before, 0)), 0.0)
    else:
        padded = px.concat([past_state, input], axis=2)
    out = px.conv1d(padded, weight, bias, 1, 0, 1, input.shape[1])
    out = out if activation == "none" else px.silu(out)
    return out, padded[:, :, padded.shape[2] - before :]


FLEX: Final = row(1, flex_attention)
ROWS: Final[dict[str, Row]] = {
    "Attention": row(25, attention),
    "CausalConvWithState": row(27, causal_conv, trained="weight bias"),
    "LinearAttention": row(27, linear_attention),
    "RotaryEmbedding": row(23, rotary_embedding),
}
