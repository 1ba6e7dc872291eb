"""Random tensors from phlox's own stream; a seed asks for the numbers of another library."""

from __future__ import annotations

from typing import Any, Final

import phlox_tensor as px
from phlox_tensor import Tensor

from ..read._types import to_type
from ._row import Ints, Row, row

T = Tensor[Any]


def normal(
    *,
    shape: Ints,
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
    device: Any,
) -> T:
    return (px.random.normal(shape, device=device) * scale + mean).astype(to_type(dtype))


def uniform(
    *,
    shape: Ints,
    dtype: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
    device: Any,
) -> T:
    return (px.random.uniform(shape, device=device) * (high - low) + low).astype(to_type(dtype))


def normal_like(
    input: T,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> T:
    out = px.random.normal(input.shape, device=input.device) * scale + mean
    return out.astype(input.dtype if dtype is None else to_type(dtype))


def uniform_like(
    input: T,
    *,
    dtype: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> T:
    out = px.random.uniform(input.shape, device=input.device) * (high - low) + low
    return out.astype(input.dtype if dtype is None else to_type(dtype))


def bernoulli(input: T, *, dtype: int | None = None, seed: float | None = None) -> T:
    drawn = px.random.uniform(input.shape, device=input.device) < input.astype(px.float32)
    return drawn.astype(input.dtype if dtype is None else to_type(dtype))


def multinomial(input: T, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> T:
    """Classes by unnormalized logarithms of their chances: the largest with Gumbel noise."""
    n, classes = input.shape
    drawn = px.random.uniform((n, sample_size, classes), device=input.device)
    noise = -(-(drawn.maximum(1e-20).log())).log()
    found = (input.astype(px.float32).expand_dims(axis=1) + noise).argmax(axis=2)
    return found.astype(to_type(dtype))


ROWS: Final[dict[str, Row]] = {
    "Bernoulli": row(22, bernoulli, draws=True),
    "Multinomial": row(22, multinomial, file_sized=True, draws=True),
    "RandomNormal": row(22, normal, file_sized=True, draws=True),
    "RandomNormalLike": row(22, normal_like, draws=True),
    "RandomUniform": row(22, uniform, file_sized=True, draws=True),
    "RandomUniformLike": row(22, uniform_like, draws=True),
}
