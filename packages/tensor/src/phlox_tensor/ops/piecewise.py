"""Activations in pieces: relu and its kin, thresholds, shrinkage."""

from __future__ import annotations

import numpy as np

from .._errors.classes import ShapeError
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import activation as ref
from ..reference._precision import in_float64
from ..shapes import activation as shapes
from ._expansion import widely
from ._families import elementwise, row

hard_shrink = elementwise(
    "hard_shrink",
    "x: Float; threshold: float = 0.5 -> Float",
    numpy=in_float64(lambda x, t: np.where(np.abs(x) <= t, 0.0, x)),
    expand=lambda x, threshold: ((x >= -threshold) & (x <= threshold)).where(0.0, x),
    cases=(case((33,)), case((2, 3), threshold=1.5)),
    doc="x, but 0 from ``-threshold`` to ``threshold``.",
)


@elementwise.formula(
    "x: Float; alpha: float = 0.16666666666666666, beta: float = 0.5 -> Float",
    numpy=in_float64(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)),
    ulp=2,
    atol=2,
    cases=(case((33,)), case((2, 3), alpha=0.2)),
    doc="Straight lines for the sigmoid: ``alpha·x + beta`` held between 0 and 1. The slope is "
    "that of PyTorch and of ``hard_swish``, 1/6; that of Burn and ONNX is 0.2.",
)
@widely
def hard_sigmoid(x: Tensor, alpha: float, beta: float) -> Tensor:
    return (alpha * x + beta).clip(0.0, 1.0)


@elementwise.formula(
    "x: Float -> Float",
    numpy=in_float64(lambda x: np.maximum(x, -3) * np.clip(x + 3, 0, 6) / 6),
    domain=(-5, 5),
    ulp=4,
    atol=4,
    doc="Straight lines for ``silu``: ``x·min(max(x + 3, 0), 6) / 6``. Howard et al., 2019.",
)
@widely
def hard_swish(x: Tensor) -> Tensor:
    return x.maximum(-3.0) * (x + 3).clip(0.0, 6.0) * (1 / 6)


hard_tanh = elementwise(
    "hard_tanh",
    "x: Float; min: float = -1.0, max: float = 1.0 -> Float",
    numpy=in_float64(np.clip),
    expand=lambda x, low, high: x.clip(low, high),
    signed_zeros=False,
    cases=(case((33,)), case((2, 3), min=0, max=2)),
    doc="x held between ``min`` and ``max``; nan stays nan.",
)


@elementwise.formula(
    "x: Float; slope: float = 0.01 -> Float",
    numpy=in_float64(lambda x, slope: np.where(x > 0, x, slope * x)),
    ulp=1,
    doc="Leaky rectified linear unit: x above 0, ``slope·x`` below. Maas et al., 2013.",
)
def leaky_relu(x: Tensor, slope: float) -> Tensor:
    return (x >= 0).where(x, x * slope)


@row.formula(
    "x: Float, slope: Float -> Float",
    numpy=ref.prelu,
    shape=shapes.prelu,
    ulp=1,
    cases=(case((2, 3, 4), (3,)), case((4, 5), (1,)), case((7,), ())),
    refuses=(refusal(ShapeError, (2, 3), (2,)),),
    example="pt.prelu(pt.asarray([-2.0, 1.0]), pt.asarray([0.25]))",
    doc="``leaky_relu`` with learned slopes: one, or one per channel (axis 1). He et al., 2015.",
)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    line = slope.reshape((-1, *(1,) * max(x.ndim - 2, 0)))
    return (x > 0).where(x, x * line)


@elementwise.formula(
    "x: Num -> Num",
    numpy=lambda x: np.maximum(x, 0),
    signed_zeros=False,
    doc="Rectified linear unit: ``max(x, 0)``; nan stays nan. Nair and Hinton, 2010.",
)
def relu(x: Tensor) -> Tensor:
    return x.maximum(0)


relu6 = elementwise(
    "relu6",
    "x: Num -> Num",
    numpy=lambda x: np.clip(x, 0, 6),
    expand=lambda x: x.clip(0, 6),
    signed_zeros=False,
    domain=(-3, 9),
    doc="``relu`` that ends at 6: ``min(max(x, 0), 6)``; nan stays nan. Krizhevsky, 2010.",
)


@elementwise.formula(
    "x: Float; threshold: float = 0.5, bias: float = 0.5 -> Float",
    numpy=in_float64(lambda x, t, b: np.where(x < -t, x + b, np.where(x > t, x - b, x * 0 + 0.0))),
    ulp=1,
    atol=1,
    cases=(case((33,)), case((2, 3), threshold=1.5, bias=0.25)),
    doc="0 from ``-threshold`` to ``threshold``, beyond it x moved towards 0 by ``bias``.",
)
@widely
def shrink(x: Tensor, threshold: float, bias: float) -> Tensor:
    near = (x >= -threshold) & (x <= threshold)
    return near.where(0.0, (x < 0).where(x + bias, x - bias))


soft_shrink = elementwise(
    "soft_shrink",
    "x: Float; threshold: float = 0.5 -> Float",
    expand=widely(lambda x, threshold: (x - threshold).relu() - (-x - threshold).relu()),
    numpy=in_float64(lambda x, threshold: x - np.clip(x, -threshold, threshold)),
    ulp=1,
    atol=1,
    cases=(case((33,)), case((2, 3), threshold=1.5)),
    doc="x moved towards 0 by ``threshold``, and 0 where that would cross it.",
)


threshold = elementwise(
    "threshold",
    "x: Float; threshold: float = 0.0, value: float = 0.0 -> Float",
    numpy=in_float64(lambda x, threshold, value: np.where(x <= threshold, value, x)),
    expand=lambda x, threshold, value: (x <= threshold).where(value, x),
    cases=(case((33,), threshold=0.5), case((2, 3), threshold=-1, value=2.5)),
    doc="x above ``threshold``, ``value`` elsewhere; nan stays nan.",
)


thresholded_relu = elementwise(
    "thresholded_relu",
    "x: Float; alpha: float = 1.0 -> Float",
    numpy=in_float64(lambda x, alpha: np.where(x <= alpha, 0.0, x)),
    expand=lambda x, alpha: (x <= alpha).where(0.0, x),
    cases=(case((33,)), case((2, 3), alpha=0.5)),
    doc="x above ``alpha``, else 0; nan stays nan. Konda et al., 2014.",
)
