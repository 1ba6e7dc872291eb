"""Normalizations and dropout."""

from __future__ import annotations

from math import prod
from typing import Any, Final, Literal

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ..read._types import to_type
from ._row import Row, Scalar, row
from .axes import axis_of
from .unchanged import untrained

T = Tensor[Any]


def along_channels(v: T, X: T) -> T:
    """A vector as it lies along axis 1 of a tensor."""
    return v.reshape((-1, *(1,) * (X.ndim - 2)))


def batch_normalization(
    X: T,
    scale: T,
    B: T,
    input_mean: T,
    input_var: T,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """In training the statistics are those of the batch, and running ones come out."""
    if not training_mode:
        return px.batch_norm(X, scale, B, mean=input_mean, var=input_var, epsilon=epsilon)
    axes = tuple(i for i in range(X.ndim) if i != 1)
    mean, var = X.mean(axis=axes), X.var(axis=axes)
    out = px.batch_norm(X, scale, B, mean=mean, var=var, epsilon=epsilon)
    running = [
        old * momentum + new * (1 - momentum) for old, new in ((input_mean, mean), (input_var, var))
    ]
    return out, *running


def _standardized(X: T, axes: tuple[int, ...], epsilon: float) -> tuple[T, T, T]:
    mean = X.mean(axis=axes, keepdims=True)
    off = X - mean
    inverse = (off.square().mean(axis=axes, keepdims=True) + epsilon).rsqrt()
    return off * inverse, mean, inverse


def instance_normalization(input: T, scale: T, B: T, *, epsilon: float = 1e-5) -> T:
    out, _, _ = _standardized(input, tuple(range(2, input.ndim)), epsilon)
    return out * along_channels(scale, input) + along_channels(B, input)


def layer_normalization(
    X: T,
    Scale: T,
    B: T | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int,
) -> Any:
    """Over all axes from one on; statistics in float32 by default."""
    last = axis in (-1, X.ndim - 1)
    rows = Scale.shape == X.shape[-1:] and (B is None or B.shape == Scale.shape)
    if outputs == 1 and last and rows:
        return px.layer_norm(X, Scale, B, epsilon)
    axes = tuple(range(axis_of("LayerNormalization", axis, X.ndim), X.ndim))
    wide = X.astype(to_type(stash_type))
    out, mean, inverse = _standardized(wide, axes, epsilon)
    out = out.astype(X.dtype) * Scale
    out = out if B is None else out + B
    return (out, mean, inverse)[: max(1, outputs)]


def rms_normalization(
    X: T, scale: T, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> T:
    axes = tuple(range(axis_of("RMSNormalization", axis, X.ndim), X.ndim))
    wide = X.astype(to_type(stash_type))
    inverse = (wide.square().mean(axis=axes, keepdims=True) + epsilon).rsqrt()
    return (wide * inverse).astype(X.dtype) * scale


def simplified_layer_normalization(
    X: T, scale: T, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> T:
    """RMSNormalization under the name that ONNX Runtime's exporter gave it."""
    return rms_normalization(X, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)


def group_normalization(
    X: T, scale: T, bias: T, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1
) -> T:
    """Scales per channel; those per group, from before version 21, are repeated."""
    n, c = X.shape[:2]
    grouped = X.astype(to_type(stash_type)).reshape(
        (n, num_groups, prod(X.shape[1:]) // num_groups)
    )
    out, _, _ = _standardized(grouped, (2,), epsilon)
    out = out.reshape(X.shape).astype(X.dtype)
    if scale.shape[0] != c:
        scale, bias = (px.repeat(v, c // num_groups) for v in (scale, bias))
    return out * along_channels(scale, X) + along_channels(bias, X)


def lp_normalization(input: T, *, axis: int = -1, p: Literal[1, 2] = 2) -> T:
    powers = input.abs() if p == 1 else input.square()
    total = powers.sum(axis=axis, keepdims=True)
    norm = total if p == 1 else total.sqrt()
    none = norm == 0
    return none.where(0.0, input / none.where(1.0, norm))


def mean_variance_normalization(X: T, *, axes: tuple[int, ...] = (0, 2, 3)) -> T:
    off = X - X.mean(axis=axes, keepdims=True)
    return off / (off.square().mean(axis=axes, keepdims=True).sqrt() + 1e-9)


def lrn(X: T, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> T:
    """Each element by a power of the squares of its neighbors among the channels."""
    if size < 1:
        raise OnnxError("LRN", "a window of nothing", got=f"size={size}", expected="1 or more")
    channels = X.shape[1]
    # Beyond the channels there is nothing, however far the file lets the window reach.
    low, high = min((size - 1) // 2, channels), min(size // 2, channels)
    squares = X.square().pad(((low, high), *((0, 0),) * (X.ndim - 2)), 0.0)
    total = squares[:, 0:channels]
    for i in range(1, low + high + 1):
        total = total + squares[:, i : i + channels]
    return X / (total * (alpha / size) + bias) ** beta


def dropout(
    data: T,
    ratio: Scalar | None = None,
    training_mode: Scalar | None = None,
    *,
    seed: int | None = None,
    outputs: int,
) -> Any:
    """Elements are dropped where the file asks for training; ``seed`` is that of another source."""
    share = 0.5 if ratio is None else float(ratio)
    if training_mode and share > 0:
        kept = px.random.uniform(data.shape, device=data.device) >= share
        out = kept.where(data * (1 / (1 - share)), 0.0)
    else:
        kept, out = px.full(data.shape, True, device=data.device), data
    return (out, kept)[: max(1, outputs)]


ROWS: Final[dict[str, Row]] = {
    "BatchNormalization": row(15, batch_normalization, trained="scale B"),
    "Dropout": row(22, dropout, draws=True, same=untrained),
    "GroupNormalization": row(21, group_normalization, trained="scale bias"),
    "InstanceNormalization": row(22, instance_normalization, trained="scale B"),
    "LRN": row(13, lrn),
    "LayerNormalization": row(17, layer_normalization, trained="Scale B"),
    "LpNormalization": row(22, lp_normalization),
    "MeanVarianceNormalization": row(13, mean_variance_normalization),
    "RMSNormalization": row(23, rms_normalization, trained="scale"),
    "SimplifiedLayerNormalization": row(1, simplified_layer_normalization, trained="scale"),
}
