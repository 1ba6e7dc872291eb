"""Softmax and normalization: several passes over a row in one op, for backends to fuse."""

from __future__ import annotations

from math import inf

from .._errors.classes import IndexOutOfRangeError, ShapeError
from .._op.records import Given, IndexSample, case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import rows as ref
from ..shapes import _equal
from ..shapes import rows as shapes
from ..shapes._equal import same
from ._expansion import widely
from ._families import row
from ._moments import centered, ranged

_ROW_CASES = (case((3, 5), axis=-1), case((4, 3, 2), axis=1), case((6,), axis=0))
_PAIR_CASES = (case((3, 5), (3, 5), axis=-1), case((4, 3, 2), (4, 3, 2), axis=1))


def _channelwise(v: Tensor, x: Tensor) -> Tensor:
    return v.reshape(-1, *(1,) * (x.ndim - 2))


@row.formula(
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.softmax,
    shape=same,
    ulp=8,
    atol=4,
    cases=_ROW_CASES,
    refuses=(refusal(ShapeError, (2, 3), axis=2),),
    example="pt.softmax(pt.asarray([0.0, 0.0, 1.0]))",
    doc="``eˣ / Σ eˣ`` along an axis; a row of -inf gives zeros.",
)
def softmax(x: Tensor, axis: int) -> Tensor:
    top = x.max(axis=axis, keepdims=True).detach()
    # A row of -inf has no largest element to shift by; it becomes a row of zeros.
    e = (x - (top == -inf).where(0.0, top)).exp()
    total = e.sum(axis=axis, keepdims=True)
    return e / (total == 0).where(1.0, total)


@row.formula(
    "g: Float, y: Float; axis: Axis = -1 -> Float",
    numpy=ref.softmax_backward,
    shape=_equal.alike,
    ulp=16,
    atol=64,
    cases=_PAIR_CASES,
    internal=True,
    doc="Cotangent of ``softmax``: ``y·(g - Σ g·y)``.",
)
def softmax_backward(g: Tensor, y: Tensor, axis: int) -> Tensor:
    return y * (g - (g * y).sum(axis=axis, keepdims=True))


@row.formula(
    "x: Float; axis: Axis = -1 -> Float",
    numpy=ref.log_softmax,
    shape=same,
    ulp=8,
    atol=8,
    cases=_ROW_CASES,
    refuses=(refusal(ShapeError, (2, 3), axis=2),),
    example="pt.log_softmax(pt.asarray([0.0, 0.0, 1.0]))",
    doc="Logarithm of ``softmax``: ``x - ln Σ eˣ`` along an axis.",
)
@widely
def log_softmax(x: Tensor, axis: int) -> Tensor:
    """From the largest element: far from 0 the logarithm of the sum itself would be rounded."""
    if not x.shape[axis]:
        return x
    top = x.max(axis=axis, keepdims=True).detach()
    gaps = x - (top == -inf).where(0.0, top)
    total = gaps.logsumexp(axis=axis, keepdims=True)
    return gaps - (total == -inf).where(0.0, total)


@row.formula(
    "g: Float, y: Float; axis: Axis = -1 -> Float",
    numpy=ref.log_softmax_backward,
    shape=_equal.alike,
    unpromised={"y": "an infinity is the logarithm of no share"},
    ulp=16,
    atol=256,
    cases=_PAIR_CASES,
    internal=True,
    doc="Cotangent of ``log_softmax``: ``g - eʸ·Σ g``.",
)
def log_softmax_backward(g: Tensor, y: Tensor, axis: int) -> Tensor:
    return g - y.exp() * g.sum(axis=axis, keepdims=True)


def _normal(gaps: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """``gaps / √(mean gaps² + epsilon)``, and what they are multiplied by for it."""
    part, power = ranged(gaps, -1)
    scale = (part.square().mean(axis=-1, keepdims=True) + power * power * epsilon).rsqrt()
    return part * scale, scale * power


@row.formula(
    "x: Float, weight: Float?, bias: Float?; epsilon: float = 1e-5 -> Float",
    numpy=ref.layer_norm,
    shape=shapes.row_norm,
    ulp=32,
    atol=64,
    cases=(
        case((3, 5), (5,), (5,)),
        case((2, 3, 4), None, None, epsilon=1e-3),
        case((2, 7), (7,), None),
    ),
    refuses=(refusal(ShapeError, (2, 3), (2,), None),),
    method=False,
    example="pt.layer_norm(pt.asarray([[1.0, 2.0, 3.0]]))",
    doc="Each row over the last axis shifted and scaled to mean 0 and variance 1, then "
    "``·weight + bias``. Ba et al., 2016.",
)
@widely
def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, epsilon: float) -> Tensor:
    _, gaps = centered(x, -1)
    y, _ = _normal(gaps, epsilon)
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias


@row.formula(
    "g: Float, x: Float, weight: Float?; epsilon: float = 1e-5 "
    "-> dx: Float, dweight: Float, dbias: Float",
    numpy=ref.layer_norm_backward,
    shape=shapes.row_norm_backward,
    ulp=64,
    atol=256,
    cases=(case((3, 5), (3, 5), (5,)), case((2, 3, 4), (2, 3, 4), None, epsilon=1e-3)),
    internal=True,
    doc="Cotangents of ``layer_norm`` for x, weight and bias.",
)
@widely
def layer_norm_backward(
    g: Tensor, x: Tensor, weight: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    _, gaps = centered(x, -1)
    normal, scale = _normal(gaps, epsilon)
    inner = g if weight is None else g * weight
    _, distances = centered(inner, -1)
    dx = scale * (distances - normal * (inner * normal).mean(axis=-1, keepdims=True))
    rows = tuple(range(x.ndim - 1))
    return dx, (g * normal).sum(axis=rows), g.sum(axis=rows)


@row.formula(
    "x: Float, weight: Float?; epsilon: float = 1e-5 -> Float",
    numpy=ref.rms_norm,
    shape=shapes.row_norm,
    ulp=32,
    atol=64,
    cases=(case((3, 5), (5,)), case((2, 3, 4), None, epsilon=1e-3)),
    refuses=(refusal(ShapeError, (2, 3), (2,)),),
    method=False,
    example="pt.rms_norm(pt.asarray([[3.0, 4.0]]))",
    doc="Each row over the last axis divided by its root mean square, "
    "``x / √(mean x² + epsilon)``, then ``·weight``. Zhang and Sennrich, 2019.",
)
@widely
def rms_norm(x: Tensor, weight: Tensor | None, epsilon: float) -> Tensor:
    y, _ = _normal(x, epsilon)
    return y if weight is None else y * weight


@row.formula(
    "g: Float, x: Float, weight: Float?; epsilon: float = 1e-5 -> dx: Float, dweight: Float",
    numpy=ref.rms_norm_backward,
    shape=shapes.row_norm_backward,
    ulp=64,
    atol=256,
    cases=(case((3, 5), (3, 5), (5,)), case((2, 3, 4), (2, 3, 4), None, epsilon=1e-3)),
    internal=True,
    doc="Cotangents of ``rms_norm`` for x and weight.",
)
@widely
def rms_norm_backward(
    g: Tensor, x: Tensor, weight: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor]:
    normal, scale = _normal(x, epsilon)
    inner = g if weight is None else g * weight
    dx = scale * (inner - normal * (inner * normal).mean(axis=-1, keepdims=True))
    return dx, (g * normal).sum(axis=tuple(range(x.ndim - 1)))


@row.formula(
    "x: Float, target: Int -> Float",
    numpy=ref.cross_entropy,
    shape=shapes.cross_entropy,
    ulp=8,
    atol=16,
    cases=(
        case((3, 5), IndexSample((3,), 5)),
        case((2, 3, 4), IndexSample((2, 3), 4)),
        case((6,), IndexSample((), 6)),
    ),
    refuses=(
        refusal(IndexOutOfRangeError, (2, 3), Given([0, 3])),
        refusal(ShapeError, (2, 3), Given([0])),
    ),
    method=False,
    example="pt.cross_entropy(pt.asarray([[0.0, 0.0], [2.0, 0.0]]), pt.asarray([0, 1]))",
    doc="``-ln softmax(x)[target]`` of each row over the last axis. x: (…, C), target: (…). "
    "A negative target counts from the end, as in ``take``; one outside of ``[-C, C)`` raises "
    "IndexOutOfRangeError.",
)
def cross_entropy(x: Tensor, target: Tensor[Int]) -> Tensor:
    return -x.log_softmax(axis=-1).take_along_axis(target[..., None], axis=-1).squeeze(-1)


@row.formula(
    "g: Float, x: Float, target: Int -> Float",
    numpy=ref.cross_entropy_backward,
    shape=shapes.cross_entropy_backward,
    unpromised={"g": "an infinity times a share of 0 is nan, or the share is left out"},
    ulp=16,
    atol=16,
    cases=(
        case((3,), (3, 5), IndexSample((3,), 5)),
        case((2, 3), (2, 3, 4), IndexSample((2, 3), 4)),
        case((), (6,), IndexSample((), 6)),
    ),
    refuses=(refusal(IndexOutOfRangeError, (2,), (2, 3), Given([0, 3])),),
    internal=True,
    doc="Cotangent of ``cross_entropy`` for x: ``g·(softmax(x) - one_hot(target))``.",
)
def cross_entropy_backward(g: Tensor, x: Tensor, target: Tensor[Int]) -> Tensor:
    share = g[..., None]
    return (x.softmax(axis=-1) * share).scatter(target[..., None], -share, axis=-1, update="add")


@row.formula(
    "x: Float, weight: Float, bias: Float, *, mean: Float, var: Float; *, epsilon: float = 1e-5 "
    "-> Float",
    numpy=ref.batch_norm,
    shape=shapes.batch_norm,
    domain={"var": (0.5, 2.0)},
    ulp=32,
    atol=64,
    cases=(
        case((4, 3, 2, 2), (3,), (3,), (3,), (3,)),
        case((5, 2), (2,), (2,), (2,), (2,), epsilon=1e-3),
    ),
    refuses=(refusal(ShapeError, (2, 3), (2,), (3,), (3,), (3,)),),
    method=False,
    example=(
        "pt.batch_norm(pt.asarray([[1.0, 2.0], [3.0, 4.0]]), pt.asarray([1.0, 1.0]), "
        "pt.asarray([0.0, 0.0]), mean=pt.asarray([2.0, 3.0]), var=pt.asarray([1.0, 4.0]), "
        "epsilon=0.0)"
    ),
    doc="Each channel (axis 1) shifted and scaled by given mean and variance, then "
    "``·weight + bias``. Ioffe and Szegedy, 2015.",
)
@widely
def batch_norm(
    x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, var: Tensor, epsilon: float
) -> Tensor:
    scale = weight * (var + epsilon).rsqrt()
    return (x - _channelwise(mean, x)) * _channelwise(scale, x) + _channelwise(bias, x)


@row.formula(
    "x: Float, weight: Float, bias: Float; epsilon: float = 1e-5 "
    "-> y: Float, mean: Float, var: Float",
    numpy=ref.batch_norm_train,
    shape=shapes.batch_norm,
    unpromised={"x": "means are sums, or sums of distances to one element"},
    ulp=32,
    atol=64,
    cases=(case((4, 3, 2, 2), (3,), (3,)), case((5, 2), (2,), (2,), epsilon=1e-3)),
    refuses=(refusal(ShapeError, (2, 3), (2,), (3,)),),
    method=False,
    example=(
        "pt.batch_norm_train(pt.asarray([[1.0, 2.0], [3.0, 6.0]]), pt.asarray([1.0, "
        "1.0]), pt.asarray([0.0, 0.0]), epsilon=0.0)"
    ),
    doc="``batch_norm`` by the batch's own mean and (biased) variance, which are results too.",
)
@widely
def batch_norm_train(
    x: Tensor, weight: Tensor, bias: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = (0, *range(2, x.ndim))
    mean, gaps = centered(x, axes)
    part, power = ranged(gaps, axes)
    var = part.square().mean(axis=axes, keepdims=True)
    scale = _channelwise(weight, x) * (var + power * power * epsilon).rsqrt()
    y = part * scale + _channelwise(bias, x)
    return y, mean.reshape(-1), (var / power / power).reshape(-1)


@row.formula(
    "g: Float, x: Float, weight: Float, mean: Float, var: Float; epsilon: float = 1e-5 "
    "-> dx: Float, dweight: Float, dbias: Float",
    numpy=ref.batch_norm_backward,
    shape=shapes.batch_norm_backward,
    domain={"var": (0.5, 2.0)},
    ulp=64,
    atol=256,
    cases=(
        case((4, 3, 2, 2), (4, 3, 2, 2), (3,), (3,), (3,)),
        case((5, 2), (5, 2), (2,), (2,), (2,), epsilon=1e-3),
    ),
    internal=True,
    doc="Cotangents of ``batch_norm_train`` for x, weight and bias, from the y result.",
)
@widely
def batch_norm_backward(
    g: Tensor, x: Tensor, weight: Tensor, mean: Tensor, var: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    axes = (0, *range(2, x.ndim))
    scale = (var + epsilon).rsqrt()
    gaps = x - _channelwise(mean, x)
    rest = gaps.mean(axis=axes, keepdims=True)  # what rounding took from the mean
    rest = (rest.abs() <= _channelwise(mean, x).abs() / 256).where(rest, 0.0)
    normal = (gaps - rest) * _channelwise(scale, x)
    _, inner = centered(g, axes)
    dx = inner - normal * (g * normal).mean(axis=axes, keepdims=True)
    return _channelwise(weight * scale, x) * dx, (g * normal).sum(axis=axes), g.sum(axis=axes)
