# ruff: noqa: E501 - one row of the table stands on one line
"""Rows of layers over sequences: positions, attention, transformers."""

from __future__ import annotations

from typing import Any

import numpy as np

from phlox import nn
from tests.layers.case import Array, Case, Weights, normal, rowwise, torch


def angles(length: int, pairs: int, base: float) -> Array:
    """Position · base^(-i / pairs)."""
    return np.asarray(np.arange(length)[:, None] * base ** (-np.arange(pairs) / pairs))


def waves(x: Array) -> Array:
    """What sinusoidal positions add to."""
    turn = angles(x.shape[-2], x.shape[-1] // 2, 10000.0)
    return np.asarray(x + np.stack([np.sin(turn), np.cos(turn)], -1).reshape(x.shape[-2:]))


def turned(
    x: Array, base: float = 10000.0, interleaved: bool = True, scaled: bool = False
) -> Array:
    """Rotation as a product of complex numbers."""
    half = x.shape[-1] // 2
    left, right = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turn = slowed(x.shape[-2], half, base) if scaled else angles(x.shape[-2], half, base)
    z = (left + 1j * right) * np.exp(1j * turn)
    return (
        np.stack([z.real, z.imag], -1).reshape(x.shape)
        if interleaved
        else np.concatenate([z.real, z.imag], -1)
    )


def slowed(length: int, pairs: int, base: float) -> Array:
    """Angles as Llama 3.1 has them, for a factor of 8 and 16 positions in training."""
    rates = angles(2, pairs, base)[1]
    long = 2 * np.pi / rates
    smooth = (16 / long - 1) / (4 - 1)
    between = (1 - smooth) * rates / 8 + smooth * rates
    found = np.where(long > 16, rates / 8, np.where(long < 4, rates, between))
    return np.asarray(np.arange(length)[:, None] * found)


def turned_twin(
    x: Any, base: float = 10000.0, interleaved: bool = True, scaled: bool = False
) -> Any:
    """The same in PyTorch, by matrices of rotation."""
    out = [x[..., i] for i in range(x.shape[-1])]
    half = x.shape[-1] // 2
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        turn = slowed(x.shape[-2], half, base) if scaled else angles(x.shape[-2], half, base)
        angle = x.new_tensor(turn[:, i])
        out[a], out[b] = (
            x[..., a] * angle.cos() - x[..., b] * angle.sin(),
            x[..., b] * angle.cos() + x[..., a] * angle.sin(),
        )
    return _stacked(out)


def _stacked(columns: list[Any]) -> Any:
    return torch().stack(columns, -1)


def heads_of(x: Array, count: int) -> Array:
    """(…, length, heads · size) as (…, heads, length, size)."""
    return x.reshape(*x.shape[:-1], count, -1).swapaxes(-3, -2)


def softmax(x: Array) -> Array:
    """Shares, for rows that are not hidden everywhere."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def attended(
    w: Weights,
    x: Array,
    memory: Array | None = None,
    *,
    heads: int = 2,
    shared: int = 0,
    causal: bool = False,
    hidden: Any = False,
    at: str = "",
    rotary: bool = False,
) -> Array:
    """Multi-head attention by its definition, whose parameters are at a path."""
    memory = x if memory is None else memory

    def mapped(name: str, a: Array, count: int) -> Array:
        return heads_of(a @ w[f"{at}{name}.weight"] + w.get(f"{at}{name}.bias", 0), count)

    q, k, v = (
        mapped("query", x, heads),
        mapped("key", memory, shared or heads),
        mapped("value", memory, shared or heads),
    )
    if rotary:
        q, k = turned(q), turned(k)
    k, v = (np.repeat(a, heads // (shared or heads), axis=-3) for a in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    later = np.triu(np.ones(scores.shape[-2:], bool), 1 + scores.shape[-1] - scores.shape[-2])
    weights = softmax(np.where(hidden | (later & causal), -np.inf, scores))
    found = (weights @ v).swapaxes(-3, -2)
    return np.asarray(
        found.reshape(*found.shape[:-2], -1) @ w[f"{at}output.weight"]
        + w.get(f"{at}output.bias", 0)
    )


def attended_twin(
    w: dict[str, Any],
    x: Any,
    memory: Any = None,
    *,
    heads: int = 2,
    shared: int = 0,
    causal: bool = False,
    at: str = "",
    rotary: bool = False,
) -> Any:
    """The same by PyTorch's own attention."""
    memory = x if memory is None else memory
    parts = [
        (a @ w[f"{at}{n}.weight"] + w.get(f"{at}{n}.bias", 0))
        .unflatten(-1, (c, -1))
        .transpose(-3, -2)
        for n, a, c in (
            ("query", x, heads),
            ("key", memory, shared or heads),
            ("value", memory, shared or heads),
        )
    ]
    q, k, v = (turned_twin(parts[0]), turned_twin(parts[1]), parts[2]) if rotary else parts
    attention = torch().nn.functional.scaled_dot_product_attention
    found = attention(q, k, v, is_causal=causal, enable_gqa=bool(shared))
    return found.transpose(-3, -2).flatten(-2) @ w[f"{at}output.weight"] + w.get(
        f"{at}output.bias", 0
    )


def packed(w: dict[str, Any], x: Any, memory: Any = None, *, at: str = "", mask: Any = None) -> Any:
    """The same by PyTorch's ``MultiheadAttention``, which takes one weight for all three maps."""
    t = torch()
    names = [f"{at}{n}" for n in ("query", "key", "value")]
    memory = x if memory is None else memory
    q, k = x.transpose(0, 1), memory.transpose(0, 1)
    weight = t.cat([w[f"{n}.weight"].T for n in names])
    bias = t.cat([w[f"{n}.bias"] for n in names])
    out = t.nn.functional.multi_head_attention_forward(
        q,
        k,
        k,
        x.shape[-1],
        2,
        weight,
        bias,
        None,
        None,
        False,
        0.0,
        w[f"{at}output.weight"].T,
        w[f"{at}output.bias"],
        training=False,
        need_weights=False,
        attn_mask=mask,
    )
    return out[0].transpose(0, 1)


def forwarded(w: Weights, x: Array, at: str = "") -> Array:
    """Two maps with the positive part between them."""
    inner = np.maximum(x @ w[f"{at}linear1.weight"] + w[f"{at}linear1.bias"], 0)
    return np.asarray(inner @ w[f"{at}linear2.weight"] + w[f"{at}linear2.bias"])


def encoded(w: Weights, x: Array, at: str = "", first: bool = False) -> Array:
    """An encoder layer."""
    if first:
        x = x + attended(w, rowwise(w, x, 1e-5, f"{at}norm1."), at=f"{at}self_attention.")
        return x + forwarded(w, rowwise(w, x, 1e-5, f"{at}norm2."), f"{at}feed_forward.")
    x = rowwise(w, x + attended(w, x, at=f"{at}self_attention."), 1e-5, f"{at}norm1.")
    return rowwise(w, x + forwarded(w, x, f"{at}feed_forward."), 1e-5, f"{at}norm2.")


def llama(w: Weights, x: Array, attend: Any = attended, m: Any = np) -> Any:
    """A layer in the manner of Llama, of NumPy or of PyTorch."""

    def unit(a: Any, at: str) -> Any:
        return a / m.sqrt((a**2).mean(-1)[..., None] + 1e-5) * w[f"{at}.weight"]

    x = x + attend(w, unit(x, "norm1"), shared=1, rotary=True, at="self_attention.")
    y = unit(x, "norm2")
    gate = y @ w["feed_forward.linear1.weight"]
    inner = gate / (1 + m.exp(-gate)) * (y @ w["feed_forward.factor.weight"])
    return x + inner @ w["feed_forward.linear2.weight"]


def decoded(w: Weights, x: Array, memory: Array, at: str = "", first: bool = False) -> Array:
    """A decoder layer."""
    if first:
        x = x + attended(w, rowwise(w, x, 1e-5, f"{at}norm1."), at=f"{at}self_attention.")
        x = x + attended(w, rowwise(w, x, 1e-5, f"{at}norm2."), memory, at=f"{at}cross_attention.")
        return x + forwarded(w, rowwise(w, x, 1e-5, f"{at}norm3."), f"{at}feed_forward.")
    x = rowwise(w, x + attended(w, x, at=f"{at}self_attention."), 1e-5, f"{at}norm1.")
    x = rowwise(w, x + attended(w, x, memory, at=f"{at}cross_attention."), 1e-5, f"{at}norm2.")
    return rowwise(w, x + forwarded(w, x, f"{at}feed_forward."), 1e-5, f"{at}norm3.")


_ATTENTIONS = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}


def renamed(w: dict[str, Any], at: str = "") -> dict[str, Any]:
    """The parameters of a transformer layer under PyTorch's names."""
    t = torch()
    new = {}
    for mine, name in _ATTENTIONS.items():
        if f"{at}{mine}.query.weight" in w:
            parts = [f"{at}{mine}.{n}" for n in ("query", "key", "value")]
            new[f"{at}{name}.in_proj_weight"] = t.cat([w[f"{p}.weight"].T for p in parts])
            new[f"{at}{name}.in_proj_bias"] = t.cat([w[f"{p}.bias"] for p in parts])
            new[f"{at}{name}.out_proj.weight"] = w[f"{at}{mine}.output.weight"].T
            new[f"{at}{name}.out_proj.bias"] = w[f"{at}{mine}.output.bias"]
    for n in (1, 2):
        new[f"{at}linear{n}.weight"] = w[f"{at}feed_forward.linear{n}.weight"].T
        new[f"{at}linear{n}.bias"] = w[f"{at}feed_forward.linear{n}.bias"]
    return new | {key: v for key, v in w.items() if key.startswith(f"{at}norm")}


def transformer(
    w: dict[str, Any], name: str, *inputs: Any, layers: int = 0, **settings: Any
) -> Any:
    """A transformer of PyTorch with these parameters."""
    t = torch()
    made = getattr(t.nn, f"Transformer{name}Layer")(
        4, 2, 6, 0.0, batch_first=True, dtype=t.float64, **settings
    )
    given = {} if layers else renamed(w)
    if layers:
        norm = t.nn.LayerNorm(4, dtype=t.float64)
        options = {"enable_nested_tensor": False} if name == "Encoder" else {}
        made = getattr(t.nn, f"Transformer{name}")(made, layers, norm, **options)
        given = {key: v for i in range(layers) for key, v in renamed(w, f"layers.{i}.").items()}
        given |= {"norm.weight": w["norm.weight"], "norm.bias": w["norm.bias"]}
    return t.func.functional_call(made, given, inputs)


def stacked(layer: Any, w: Weights, x: Array, *memory: Array) -> Array:
    """Two layers and a norm."""
    for i in range(2):
        x = layer(w, x, *memory, f"layers.{i}.", first=True)
    return rowwise(w, x, 1e-5, "norm.")


X, MEMORY, HEADS = normal(2, 3, 4), normal(2, 5, 4), normal(2, 3, 8)
ENCODER = nn.TransformerEncoderLayerConfig(4, 2, 6, dropout=0.0)
DECODER = nn.TransformerDecoderLayerConfig(4, 2, 6, dropout=0.0)
FIRST_E, FIRST_D = ENCODER.replace(norm_first=True), DECODER.replace(norm_first=True)
# fmt: off
CASES: dict[str, Case] = {
    "attention": Case(nn.MultiHeadAttentionConfig(4, 2), (X,), attended, lambda f, w, x: packed(w, x)),
    "attention-cross": Case(nn.MultiHeadAttentionConfig(4, 2), (X, MEMORY), attended, lambda f, w, x, m: packed(w, x, m)),
    "attention-grouped": Case(nn.MultiHeadAttentionConfig(8, 4, bias=False, n_heads_kv=2), (HEADS,), lambda w, x: attended(w, x, heads=4, shared=2), lambda f, w, x: attended_twin(w, x, heads=4, shared=2)),
    "attention-output-bias": Case(nn.MultiHeadAttentionConfig(4, 2, output_bias=False), (X,), attended, lambda f, w, x: attended_twin(w, x)),
    "attention-rotary": Case(nn.MultiHeadAttentionConfig(4, 2, rotary=nn.RotaryEncodingConfig(2)), (X,), lambda w, x: attended(w, x, rotary=True), lambda f, w, x: attended_twin(w, x, rotary=True)),
    "attention-sizes": Case(nn.MultiHeadAttentionConfig(4, 2, d_head=3, d_key=8), (X, HEADS), attended, lambda f, w, x, m: attended_twin(w, x, m)),
    "feed-forward-gated": Case(nn.FeedForwardConfig(4, 6, activation="tanh", gated=True), (X,), lambda w, x: (np.tanh(x @ w["linear1.weight"] + w["linear1.bias"]) * (x @ w["factor.weight"] + w["factor.bias"])) @ w["linear2.weight"] + w["linear2.bias"], lambda f, w, x: (f.linear(x, w["linear1.weight"].T, w["linear1.bias"]).tanh() * f.linear(x, w["factor.weight"].T, w["factor.bias"])) @ w["linear2.weight"] + w["linear2.bias"]),
    "feed-forward": Case(nn.FeedForwardConfig(4, 6), (X,), forwarded, lambda f, w, x: f.linear(f.relu(f.linear(x, w["linear1.weight"].T, w["linear1.bias"])), w["linear2.weight"].T, w["linear2.bias"])),
    "positions-learned": Case(nn.LearnedEncodingConfig(5, 4), (X,), lambda w, x: x + w["weight"][:3], lambda f, w, x: x + w["weight"][:3]),
    "positions-rotary": Case(nn.RotaryEncodingConfig(8), (HEADS,), lambda w, x: turned(x), lambda f, w, x: turned_twin(x)),
    "positions-rotary-halves": Case(nn.RotaryEncodingConfig(8, theta=100.0, interleaved=False), (HEADS,), lambda w, x: turned(x, 100.0, False), lambda f, w, x: turned_twin(x, 100.0, False)),
    "positions-rotary-scaled": Case(nn.RotaryEncodingConfig(8, theta=100.0, scaling=nn.RotaryScalingConfig(8.0, 16)), (HEADS,), lambda w, x: turned(x, 100.0, scaled=True), lambda f, w, x: turned_twin(x, 100.0, scaled=True)),
    "positions-sinusoidal": Case(nn.SinusoidalEncodingConfig(4), (X,), lambda w, x: waves(x), lambda f, w, x: x + x.new_tensor(waves(np.zeros((3, 4))))),
    "transformer-decoder": Case(nn.TransformerDecoderConfig(FIRST_D, 2, final_norm=True), (X, MEMORY), lambda w, x, m: stacked(decoded, w, x, m), lambda f, w, x, m: transformer(w, "Decoder", x, m, layers=2, norm_first=True)),
    "transformer-decoder-layer": Case(DECODER, (X, MEMORY), decoded, lambda f, w, x, m: transformer(w, "Decoder", x, m)),
    "transformer-decoder-layer-norm-first": Case(FIRST_D, (X, MEMORY), lambda w, x, m: decoded(w, x, m, first=True), lambda f, w, x, m: transformer(w, "Decoder", x, m, norm_first=True)),
    "transformer-encoder": Case(nn.TransformerEncoderConfig(FIRST_E, 2, final_norm=True), (X,), lambda w, x: stacked(encoded, w, x), lambda f, w, x: transformer(w, "Encoder", x, layers=2, norm_first=True)),
    "transformer-encoder-layer": Case(ENCODER, (X,), encoded, lambda f, w, x: transformer(w, "Encoder", x)),
    "transformer-encoder-layer-llama": Case(FIRST_E.replace(norm="rms", gated=True, activation="silu", bias=False, n_heads_kv=1, rotary=nn.RotaryEncodingConfig(2)), (X,), llama, lambda f, w, x: llama(w, x, attended_twin, torch())),
    "transformer-encoder-layer-norm-first": Case(FIRST_E, (X,), lambda w, x: encoded(w, x, first=True), lambda f, w, x: transformer(w, "Encoder", x, norm_first=True)),
}
# fmt: on
