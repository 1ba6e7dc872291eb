"""Shape rules of attention."""

from __future__ import annotations

from math import prod, sqrt

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Spec, Specs
from ._equal import cotangent

HEADS_RANK = 3


def prepare(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The scale is 1 / sqrt(D) where none is given."""
    del backend
    scale, softcap, is_causal = attributes
    if softcap is not None and not softcap > 0:
        raise ArgumentError(
            "attention", "softcap is not positive", got=softcap, expected="a number > 0 or None"
        )
    if scale is None:
        shape = specs[0].shape
        scale = 1 / sqrt(max(shape[-1], 1)) if shape else 1.0
    return (scale, softcap, is_causal)


def prepare_backward(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """As for the op itself, whose operands follow the cotangent."""
    return prepare(specs[1:], attributes, backend)


def _fits_scores(op: Op, spec: Spec | None, name: str, scores: Shape) -> None:
    """Whether a mask or bias broadcasts to the scores."""
    if spec is None:
        return
    own = (1,) * (len(scores) - len(spec.shape)) + tuple(spec.shape)
    if len(own) != len(scores) or any(n not in (1, m) for n, m in zip(own, scores, strict=True)):
        raise ShapeError(
            op.name,
            f"{name} does not broadcast to the scores",
            got=spec.shape,
            expected=f"{scores}, or 1 along some of its axes",
        )


def attention(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(…, H, Q, V)."""
    del attributes
    query, key, value, mask, bias = specs
    q, k, v = query.shape, key.shape, value.shape
    got = f"query {q}, key {k}, value {v}"
    if min(len(q), len(k), len(v)) < HEADS_RANK:
        raise ShapeError(
            op.name,
            "operands without heads",
            got=got,
            expected="query (…, heads, queries, size)",
            hint="x[None] for a single head",
        )
    if q[:-3] != k[:-3] or q[:-3] != v[:-3]:
        raise ShapeError(
            op.name,
            "batches differ",
            got=got,
            expected="equal axes in front of the heads",
            hint="key.broadcast_to(...)",
        )
    if q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(
            op.name,
            "sizes differ",
            got=got,
            expected="query (…, H, Q, D), key (…, Hkv, K, D), value (…, Hkv, K, V)",
        )
    if k[-3] != v[-3] or (q[-3] % k[-3] if k[-3] else q[-3]):
        raise ShapeError(
            op.name,
            "heads do not fit",
            got=got,
            expected="as many heads of value as of key, and a multiple of them of query",
        )
    scores = (*q[:-1], k[-2])
    _fits_scores(op, mask, "mask", scores)
    _fits_scores(op, bias, "bias", scores)
    return [(*q[:-1], v[-1])]


def attention_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shapes of query, key, value and bias; g has that of the result."""
    g, query, key, value, _, bias = specs
    (result,) = attention(op, specs[1:], attributes)
    cotangent(op, g.shape, result)
    return [query.shape, key.shape, value.shape, (0,) if bias is None else bias.shape]


def work(specs: Specs, attributes: Attributes) -> int:
    """The scores, and the weighted values."""
    del attributes
    query, key, value = (s.shape for s in specs[:3])
    return prod(query[:-1]) * int(key[-2]) * int(query[-1] + value[-1])


def work_backward(specs: Specs, attributes: Attributes) -> int:
    """The scores again, and the cotangents of weights, query, key and value."""
    del attributes
    query, key, value = (s.shape for s in specs[1:4])
    return prod(query[:-1]) * int(key[-2]) * int(3 * query[-1] + 2 * value[-1])
