"""Derivatives of softmax and normalization."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Tensor
from phlox_tensor.ops import rows as ops

from .._rule import Joint, Rule
from .._unchecked import unchecked
from .reduction import times

Cotangents = tuple["Tensor | None", ...]


def _channelwise(v: Tensor, x: Tensor) -> Tensor:
    """One value per channel, seen beside a batch (N, C, …)."""
    return v.reshape((-1, *(1,) * (x.ndim - 2)))


def _axes(x: Tensor) -> tuple[int, ...]:
    """All axes but that of the channels."""
    return (0, *range(2, x.ndim))


def _pull(g: Tensor, x: Tensor, mean: Tensor) -> Tensor:
    """``Σ g·(x - mean)`` of each channel, in full precision: float16 holds few such sums."""
    wide = x.to_full_precision() - _channelwise(mean.to_full_precision(), x)
    return (g.to_full_precision() * wide).sum(axis=_axes(g))


def _batch_norm_weight(g: Tensor, x: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
    scale = (var.to_full_precision() + epsilon).rsqrt()
    return (_pull(g, x, mean) * scale).astype(g.dtype)


def _batch_norm_mean(g: Tensor, weight: Tensor, var: Tensor, epsilon: float) -> Tensor:
    total = g.to_full_precision().sum(axis=_axes(g))
    scale = weight.to_full_precision() * (var.to_full_precision() + epsilon).rsqrt()
    return -(total * scale).astype(g.dtype)


def _batch_norm_var(
    g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, epsilon: float
) -> Tensor:
    scale = (var.to_full_precision() + epsilon).rsqrt()
    pull = _pull(g, x, mean) * weight.to_full_precision()
    return (pull * (scale * scale * scale * -0.5)).astype(g.dtype)


def _batch_norm_train(
    g_y: Tensor | None,
    g_mean: Tensor | None,
    g_var: Tensor | None,
    x: Tensor,
    weight: Tensor,
    mean: Tensor,
    var: Tensor,
    epsilon: float,
) -> Cotangents:
    """The backward op for y; ``g_mean / n`` and ``2·g_var·(x - mean) / n`` for the statistics."""
    dx = dweight = dbias = None
    if g_y is not None:
        dx, dweight, dbias = ops.batch_norm_backward(g_y, x, weight, mean, var, epsilon)
    count = x.size // x.shape[1] if x.size else 1
    if g_mean is not None:
        part = _channelwise(times(g_mean, 1 / count), x).broadcast_to(x.shape)
        dx = part if dx is None else dx + part
    if g_var is not None:
        part = (x - _channelwise(mean, x)) * _channelwise(times(g_var, 2 / count), x)
        dx = part if dx is None else dx + part
    return dx, dweight, dbias


RULES: Final[dict[str, Rule]] = {
    "batch_norm": (
        lambda g, weight, var, epsilon: g * _channelwise(weight * (var + epsilon).rsqrt(), g),
        _batch_norm_weight,
        lambda g: g.sum(axis=_axes(g)),
        _batch_norm_mean,
        _batch_norm_var,
    ),
    "batch_norm_train": Joint(_batch_norm_train),
    "cross_entropy": (
        lambda g, x, target: unchecked(ops.cross_entropy_backward, (g, x, target)),
        None,
    ),
    "layer_norm": Joint(
        lambda g, x, weight, epsilon: ops.layer_norm_backward(g, x, weight, epsilon)
    ),
    "log_softmax": lambda g, y, axis: unchecked(ops.log_softmax_backward, (g, y), axis),
    "rms_norm": Joint(lambda g, x, weight, epsilon: ops.rms_norm_backward(g, x, weight, epsilon)),
    "softmax": lambda g, y, axis: unchecked(ops.softmax_backward, (g, y), axis),
}
