"""Scaled dot-product attention."""

from __future__ import annotations

from typing import Any

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.kinds import Bool
from .._values.tensor import Tensor
from ..reference import attention as ref
from ..shapes import attention as shapes
from . import binary
from ._families import contraction
from .reduction import sum_to

_HEADS = "query: Float, key: Float, value: Float, mask: Bool?, bias: Float?"
_SCORES = "scale: float? = None, softcap: float? = None, is_causal: bool = False"
_HIDDEN = "a hidden key has weight 0, which is multiplied, or is left out"
_HEADS_CASES = (
    case((2, 3, 2), (2, 4, 2), (2, 4, 3), None, None),
    case((1, 3, 2), (1, 3, 2), (1, 3, 2), None, (3, 1), is_causal=True),
    case((4, 2, 3), (2, 3, 3), (2, 3, 2), (3,), None, is_causal=True, softcap=2.0),
    case((1, 4, 2), (1, 2, 2), (1, 2, 2), None, (1, 4, 2), is_causal=True, scale=0.3),
    case((2, 2, 3, 2), (2, 1, 4, 2), (2, 1, 4, 1), (2, 1, 3, 4), (2, 1, 4), softcap=5.0),
    case((2, 0, 3), (2, 4, 3), (2, 4, 2), None, None),
    case((2, 3, 3), (2, 0, 3), (2, 0, 2), None, None),
    case((2, 4, 37, 20), (2, 2, 70, 20), (2, 2, 70, 33), (37, 70), (4, 1, 70), is_causal=True),
    case((1, 1, 9, 8), (1, 1, 600, 8), (1, 1, 600, 8), None, None),
)


def _by_key_heads(x: Tensor, like: Tensor) -> Tensor:
    """(…, H, Q, n) as (…, Hkv, H / Hkv · Q, n): the queries that share a head follow each other."""
    heads, shared = x.shape[-3], like.shape[-3]
    if heads == shared:
        return x
    return x.reshape(*x.shape[:-3], shared, heads // shared * x.shape[-2], x.shape[-1])


def _hidden(scores: Tensor, mask: Tensor[Bool] | None, is_causal: bool) -> Tensor[Bool] | None:
    """True where a query may not look."""
    queries, keys = scores.shape[-2:]
    if not is_causal or queries == 1:  # which sees all keys
        return mask
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


@contraction.formula(
    f"{_HEADS}; {_SCORES} -> Float",
    numpy=ref.attention,
    shape=shapes.attention,
    prepare=shapes.prepare,
    work=shapes.work,
    unpromised={"bias": _HIDDEN, "value": _HIDDEN},
    ulp=64,
    atol=64,
    rounded=8,  # the formula rounds scores and weights
    cases=_HEADS_CASES,
    refuses=(
        refusal(ShapeError, (2, 3, 2), (2, 4, 3), (2, 4, 3), None, None),
        refusal(ShapeError, (3, 3, 2), (2, 4, 2), (2, 4, 2), None, None),
        refusal(ShapeError, (2, 3, 2), (2, 4, 2), (2, 4, 3), (5,), None),
    ),
    method=False,
    example=(
        "pt.attention(pt.ones((1, 1, 1, 2)), pt.ones((1, 1, 2, 2)), pt.asarray([[[[1.0, "
        "2.0], [3.0, 4.0]]]]))"
    ),
    doc="Scaled dot-product attention: ``softmax(scale · query @ keyᵀ) @ value`` of query (…, H, "
    "Q, D), key (…, Hkv, K, D) and value (…, Hkv, K, V). H is a multiple of Hkv: neighboring query "
    "heads share a head of key and value. Scores are scaled (1 / √D by default), capped "
    "(``softcap · tanh(s / softcap)``), hidden where mask is True or, if causal, where the key "
    "comes later than the query (the last query sees all keys), and shifted by bias; mask and bias "
    "broadcast to (…, H, Q, K). PyTorch's mask means the opposite, True for what is seen: give "
    "``~mask`` of one made for it. A query that sees nothing gives zeros. Vaswani et al., 2017.",
)
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


@contraction.formula(
    f"g: Float, {_HEADS}; {_SCORES} -> dquery: Float, dkey: Float, dvalue: Float, dbias: Float",
    numpy=ref.attention_backward,
    shape=shapes.attention_backward,
    prepare=shapes.prepare_backward,
    work=shapes.work_backward,
    unpromised=dict.fromkeys(("bias", "g", "key", "query", "value"), _HIDDEN),
    ulp=256,
    atol=512,
    rounded=48,  # the formula rounds scores, weights and their cotangents
    cases=tuple(
        case((*q[:-1], v[-1]), q, k, v, *rest, **attributes)
        for (q, k, v, *rest), attributes in _HEADS_CASES
    ),
    internal=True,
    doc="Cotangents of ``attention`` for query, key, value and bias, from scores computed again; "
    "that of an absent bias is empty.",
)
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
    dbias = g.zeros((0,)) if bias is None else sum_to(dscores, bias.shape)
    if softcap is not None:
        dscores = dscores * (1 - (capped / softcap).square())
    pull = _by_key_heads(dscores * scale, key)
    dquery = (pull @ key).reshape(query.shape)
    return dquery, pull.mT @ _by_key_heads(query, key), dvalue, dbias
