"""Order statistics, counts, moments and distances."""

from __future__ import annotations

from math import ceil, floor, inf, prod
from typing import Any

import numpy as np

from .._data.conversion import asarray
from .._data.creation import arange, ones, zeros
from .._errors.classes import ArgumentError, ShapeError
from .._op.records import Given, case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import statistics as ref
from ..shapes import statistics as shapes
from . import movement
from ._expansion import one_kernel
from ._families import contraction, reduction, row, scan, sort
from ._families import indexing as choosing
from ._moments import centered, ranged
from ._norms import p_norm, root_of, scale_of


def _negative(got: int) -> ArgumentError:
    return ArgumentError(
        "bincount", "a negative number has no count", got=got, expected="0 or more",
        hint="px.unique_counts(x)",
    )  # fmt: skip


def _counted(x: Any, minlength: int) -> Any:
    if x.size and x.min() < 0:
        raise _negative(int(x.min()))
    largest = int(x.max()) if x.size else 0
    shapes.check_counts(largest + 1, x.size, str(largest))
    return np.bincount(x.astype(np.intp), minlength=minlength).astype(np.int64)


@choosing.formula(
    "x: Whole; minlength: int = 0 -> Int",
    numpy=_counted,
    shape=shapes.bincount,
    measured=True,
    domain=(0, 5),
    cases=(case((7,)), case((3,), minlength=6), case((0,), minlength=2)),
    refuses=(
        refusal(ShapeError, (2, 2)),
        refusal(ArgumentError, Given([-1])),
        refusal(ShapeError, (2,), minlength=-1),
    ),
    method=False,
    example="pt.bincount(pt.asarray([0, 2, 2, 1, 2]))",
    doc="How often each number from 0 on occurs, 1-d, at least ``minlength`` counts in the default "
    "integer type; the largest is read on the host.",
)
def bincount(x: Tensor[Int], minlength: int) -> Tensor[Int]:
    if x.size and int(x.min()) < 0:
        raise _negative(int(x.min()))
    size = int(x.max()) + 1 if x.size else 0
    shapes.check_counts(size, x.size, str(size - 1))
    size = max(minlength, size)
    dtype, device = x.device.default_int, x.device
    counts: Tensor[Any] = zeros((size,), dtype=dtype, device=device)
    one: Tensor[Any] = ones((x.size,), dtype=dtype, device=device)
    return counts.index_add(x, one, axis=0)


@contraction.formula(
    "x1: Float, x2: Float; p: float = 2.0 -> Float",
    numpy=ref.cdist,
    shape=shapes.cdist,
    ulp=16,
    atol=16,
    cases=(
        case((3, 2), (2, 2)),
        case((2, 1, 2), (2, 2, 2), p=1.0),
        case((2, 2), (1, 2), p=3.0),
        case((1, 3), (2, 3), p=inf),
    ),
    refuses=(
        refusal(ShapeError, (2, 3), (2, 4)),
        refusal(ArgumentError, (2, 3), (2, 3), p=-1.0),
    ),
    method=False,
    example="pt.cdist(pt.asarray([[0.0, 0.0]]), pt.asarray([[3.0, 4.0], [1.0, 0.0]]))",
    doc="Distance of each row of x1 (…, n, d) from each of x2 (…, m, d) in the p-norm: (…, n, m).",
)
def cdist(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    gap = (x1.to_full_precision()[..., :, None, :] - x2.to_full_precision()[..., None, :, :]).abs()
    return p_norm(gap, (gap.ndim - 1,), p).astype(x1.dtype)


def _center(x: Tensor) -> Tensor:
    _, gaps = centered(x.reshape((1, -1)) if x.ndim < 2 else x, 1)
    return gaps


@contraction.formula(
    "x: Float -> Float",
    numpy=ref.corrcoef,
    shape=shapes.cov,
    ulp=32,
    atol=32,
    cases=(case((3, 5)), case((2, 4)), case((1, 4)), case((5,))),
    refuses=(refusal(ShapeError, (2, 2, 2)),),
    example="pt.corrcoef(pt.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]]))",
    doc="Correlation coefficients of the rows of x (variables, observations), held in [-1, 1].",
)
def corrcoef(x: Tensor) -> Tensor:
    rows = _center(x)
    if rows.shape[1]:  # parts of the largest gap, whose squares are in the range of the type
        rows = rows / scale_of(rows.abs().max(axis=1, keepdims=True))
    products = rows @ rows.mT
    size = rows.square().sum(axis=1).sqrt()
    out = (products / size[:, None] / size[None]).clip(-1.0, 1.0)
    return (out if x.ndim > 1 else out.reshape(())).astype(x.dtype)


@contraction.formula(
    "x: Float; correction: float = 1.0 -> Float",
    numpy=ref.cov,
    shape=shapes.cov,
    ulp=32,
    atol=64,
    cases=(
        case((3, 5)),
        case((2, 4), correction=0.0),
        case((2, 4), correction=0.5),
        case((1, 4)),
        case((6,)),
    ),
    refuses=(refusal(ShapeError, (2, 2, 2)),),
    example="pt.cov(pt.asarray([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]]))",
    doc="Covariances of the rows of x (variables, observations), divided by ``n - correction``.",
)
def cov(x: Tensor, correction: float) -> Tensor:
    rows, power = ranged(_center(x), 1)
    products = rows @ rows.mT / max(rows.shape[1] - correction, 0.0) / power / power.mT
    return (products if x.ndim > 1 else products.reshape(())).astype(x.dtype)


@row.formula(
    "x1: Float, x2: Float; axis: Axis = -1, epsilon: float = 1e-8 -> Float",
    numpy=ref.cosine_similarity,
    shape=shapes.cosine_similarity,
    ulp=16,
    atol=16,
    cases=(case((2, 3), (2, 3)), case((2, 2, 1), (2, 2, 1), axis=1)),
    refuses=(refusal(ShapeError, (2, 3), (4,)),),
    method=False,
    example="pt.cosine_similarity(pt.asarray([[1.0, 0.0]]), pt.asarray([[1.0, 1.0]]))",
    doc="``x1·x2 / (‖x1‖·‖x2‖)`` along an axis, with norms of at least ``epsilon``; x1 and x2 have "
    "one shape.",
)
def cosine_similarity(x1: Tensor, x2: Tensor, axis: int, epsilon: float) -> Tensor:
    """Of parts of the largest elements, since products leave the range long before cosines do."""
    parts: list[Tensor] = []
    norms: list[Tensor] = []
    for x in (x1.to_full_precision(), x2.to_full_precision()):
        size = x.abs()
        whole = size if x.shape[axis] else size.sum(axis=axis, keepdims=True)  # 0 of nothing
        scale = scale_of(whole.max(axis=axis, keepdims=True))
        parts.append(x / scale)
        least = (epsilon / scale).squeeze(axis)
        norms.append(root_of(parts[-1].square().sum(axis=axis), 2.0).maximum(least))
    return ((parts[0] * parts[1]).sum(axis=axis) / norms[0] / norms[1]).astype(x1.dtype)


def _cummax(x: Tensor[Any], axis: int, *, turned: bool = False) -> Any:
    """Hillis and Steele, 1986: each element meets the one 1, 2, 4, … places before it."""
    n = x.shape[axis]
    line = (n, *(1,) * (x.ndim - 1 - axis))
    places = arange(n, device=x.device).reshape(line).broadcast_to(x.shape)
    step = 1
    while step < n:
        rest = [(0, 0)] * (x.ndim - axis - 1)
        cut = (slice(None),) * axis + (slice(0, n - step),)
        before = x[cut].pad(((step, 0), *rest), 0)
        earlier = places[cut].pad(((step, 0), *rest), -1)
        better = (x <= before) if turned else (x >= before)
        stays = (earlier < 0) | better | x.isnan()
        x, places = stays.where(x, before), stays.where(places, earlier)
        step *= 2
    return x, places


cummax = scan(
    "cummax",
    "x: Num; axis: Axis = -1 -> values: Num, indices: Int",
    expand=_cummax,
    numpy=lambda x, axis: ref.running(x, axis, largest=True),
    shape=shapes.twice,
    cases=(case((5,)), case((4, 2), axis=0), case((2, 3, 2), axis=1), case((2, 0))),
    example="pt.cummax(pt.asarray([1.0, 3.0, 2.0]))",
    doc="Largest element so far along an axis, and where it is; nan wins, the last of equals wins.",
)
cummin = scan(
    "cummin",
    "x: Num; axis: Axis = -1 -> values: Num, indices: Int",
    expand=lambda x, axis: _cummax(x, axis, turned=True),
    numpy=lambda x, axis: ref.running(x, axis, largest=False),
    shape=shapes.twice,
    cases=(case((5,)), case((4, 2), axis=0), case((2, 3, 2), axis=1), case((2, 0))),
    example="pt.cummin(pt.asarray([3.0, 1.0, 2.0]))",
    doc="Smallest element so far along an axis, and where it is; nan wins, the last of equals "
    "wins.",
)


@row.formula(
    "x: Float; bins: int = 10, min: float? = None, max: float? = None -> counts: Int, edges: Float",
    numpy=ref.histogram,
    shape=shapes.histogram,
    ulp=4,
    atol=4,
    cases=(
        case((9,), bins=4, min=-2.0, max=2.0),
        case((2, 5), bins=3, min=-3.0, max=3.0),
        case((0,), bins=3),
        case((0,), bins=2, max=4.0),
    ),
    refuses=(
        refusal(ArgumentError, (2,), bins=0),
        refusal(ArgumentError, (2,), bins=2, min=1.0, max=0.0),
    ),
    method=False,
    example="pt.histogram(pt.asarray([0.0, 1.0, 1.5, 4.0]), bins=2)",
    doc="How many elements are in each of ``bins`` equal intervals from ``min`` to ``max`` (by "
    "default those of x, read on the host), the last with both its ends; and the edges.",
)
def histogram(
    x: Tensor, bins: int, low: float | None, high: float | None
) -> tuple[Tensor[Int], Tensor]:
    wide = x.to_full_precision().detach().reshape((x.size,))
    first = (float(wide.min()) if x.size else 0.0) if low is None else low
    last = (float(wide.max()) if x.size else 1.0) if high is None else high
    places = shapes.edges(first, last, bins)
    edges = asarray(places, dtype=x.dtype, device=x.device)
    first, last = float(places[0]), float(places[-1])
    ends = edges.to_full_precision()
    inside = (wide >= ends[0]) & (wide <= ends[-1])
    near = ((wide - first) * (bins / (last - first))).floor()
    place = inside.where(near, 0.0).clip(0.0, bins - 1.0).astype(x.device.default_int)
    # Rounding may put an element beside an edge; the edges decide.
    place = place - (inside & (wide < ends.take(place))).astype(place.dtype)
    above = inside & (wide >= ends.take(place + 1)) & (place != bins - 1)
    place = inside.where(place + above.astype(place.dtype), bins)
    counts: Tensor[Int] = place.zeros((bins + 1,)).index_add(place, place.zeros() + 1, axis=0)
    return counts[:bins], edges


def _lines(x: Tensor[Any], axis: tuple[int, ...]) -> Tensor[Any]:
    """The axes that are reduced as one, after the others."""
    others = tuple(i for i in range(x.ndim) if i not in axis)
    front = tuple(x.shape[i] for i in others)
    return x.permute_dims((*others, *axis)).reshape((*front, prod(x.shape[i] for i in axis)))


@one_kernel
def _mixed(first: Tensor, second: Tensor, last: Tensor, weight: float) -> Tensor:
    """A part of the way from one to the other, with no gap, which may be infinite, between.

    It is the last one where that is nan.
    """
    near, far = first.to_full_precision(), second.to_full_precision()
    mixed = near * (1 - weight) + far * weight
    out = (first == second).where(first, mixed.astype(first.dtype))
    return last.isnan().where(last, out)


def _between(
    x: Tensor, q: float, axis: tuple[int, ...], keepdims: bool, interpolation: str
) -> Tensor:
    lines = _lines(x, axis)
    n = lines.shape[-1]
    ordered = lines.sort(axis=-1)
    place = q * (n - 1)
    low, high = floor(place), ceil(place)
    if interpolation == "nearest":
        low = high = round(place)
    part = {"higher": 1.0, "linear": place - low, "lower": 0.0, "midpoint": 0.5}
    weight = part.get(interpolation, 0.0) if low != high else 0.0
    first, second = ordered[..., low], ordered[..., high]
    last = ordered[..., -1]  # nan is sorted after all
    if 0 < weight < 1:
        out = _mixed(first, second, last, weight)
    else:
        out = last.isnan().where(last, second if weight == 1 else first)
    return (
        out.reshape(tuple(1 if i in axis else m for i, m in enumerate(x.shape)))
        if keepdims
        else out
    )


_AXES = "axis: Axes = None, keepdims: bool = False"
median = reduction(
    "median",
    f"x: Float; {_AXES} -> Float",
    expand=lambda x, axis, keepdims: _between(x, 0.5, axis, keepdims, "linear"),
    numpy=lambda x, axis, keepdims: ref.quantile(x, 0.5, axis, keepdims, "linear"),
    shape=shapes.ordering,
    ulp=4,
    atol=2,
    doc="Middle element along the axes, or the mean of the two in the middle; nan wins.",
)


@sort.formula(
    "x: Num; axis: Axis = -1, keepdims: bool = False -> values: Num, indices: Int",
    numpy=ref.mode,
    shape=shapes.mode,
    cases=(
        case((9,)),
        case((3, 5), axis=0),
        case((2, 6), axis=1, keepdims=True),
        case((2, 3, 4), axis=1),
    ),
    refuses=(refusal(ShapeError, (2, 0)),),
    example="pt.mode(pt.asarray([1.0, 2.0, 2.0, 3.0]))",
    doc="Most frequent element along an axis, the smallest of several, and where it is first.",
)
def mode(x: Tensor[Any], axis: int, keepdims: bool) -> Any:
    order = x.argsort(axis=axis)
    ordered = x.take_along_axis(order, axis=axis)
    n = x.shape[axis]
    line = (n, *(1,) * (x.ndim - 1 - axis))
    places = arange(n, device=x.device).reshape(line).broadcast_to(x.shape)
    front = (slice(None),) * axis
    fresh = ordered[(*front, slice(1, n))] != ordered[(*front, slice(0, n - 1))]
    starts = places[(*front, slice(1, n))] * fresh.astype(places.dtype)
    starts = movement.concat([places[(*front, slice(0, 1))], starts], axis=axis)
    length = places - starts.cummax(axis=axis)[0]
    best = length.argmax(axis=axis, keepdims=True)
    begin = best - length.take_along_axis(best, axis=axis)
    values, indices = (each.take_along_axis(begin, axis=axis) for each in (ordered, order))
    return (values, indices) if keepdims else (values.squeeze(axis), indices.squeeze(axis))


quantile = reduction(
    "quantile",
    f"x: Float; q: float = 0.5, {_AXES}, interpolation: str = 'linear' -> Float",
    expand=_between,
    numpy=ref.quantile,
    shape=shapes.quantile,
    ulp=4,
    atol=2,
    cases=(
        case((7,), q=0.25),
        case((3, 4), q=0.9, axis=0, keepdims=True),
        case((2, 3, 2), q=0.3, axis=(0, 2), interpolation="nearest"),
        case((5,), q=0.3, interpolation="lower"),
        case((5,), q=0.3, interpolation="higher"),
        case((4,), q=0.3, interpolation="midpoint"),
        case((4,), q=1.0),
    ),
    refuses=(
        refusal(ArgumentError, (3,), q=1.5),
        refusal(ArgumentError, (3,), q=0.5, interpolation="middle"),
    ),
    function=False,
    method=False,
    doc="The value below which a part q of the elements along the axes lies; between two elements "
    "by ``interpolation``: linear, lower, higher, nearest or midpoint. nan where any element is.",
)


def _with_indices(x: Tensor[Any], axis: int, keepdims: bool, *, largest: bool) -> Any:
    place = (x.argmax if largest else x.argmin)(axis=axis, keepdims=True)
    values = x.take_along_axis(place, axis=axis)
    return (values, place) if keepdims else (values.squeeze(axis), place.squeeze(axis))


_CHOSEN = "x: Num; axis: Axis = -1, keepdims: bool = False -> values: Num, indices: Int"
_CHOSEN_CASES = (case((7,)), case((3, 4), axis=0), case((2, 3, 2), axis=1, keepdims=True))
max_with_indices = sort(
    "max_with_indices",
    _CHOSEN,
    expand=lambda x, axis, keepdims: _with_indices(x, axis, keepdims, largest=True),
    numpy=lambda x, axis, keepdims: ref.extreme(x, axis, keepdims, largest=True),
    shape=shapes.mode,
    cases=_CHOSEN_CASES,
    refuses=(refusal(ShapeError, (0,)),),
    example="pt.max_with_indices(pt.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)",
    doc="Largest element along an axis and where it is first; nan wins.",
)
min_with_indices = sort(
    "min_with_indices",
    _CHOSEN,
    expand=lambda x, axis, keepdims: _with_indices(x, axis, keepdims, largest=False),
    numpy=lambda x, axis, keepdims: ref.extreme(x, axis, keepdims, largest=False),
    shape=shapes.mode,
    cases=_CHOSEN_CASES,
    refuses=(refusal(ShapeError, (0,)),),
    example="pt.min_with_indices(pt.asarray([[1.0, 4.0], [3.0, 2.0]]), axis=1)",
    doc="Smallest element along an axis and where it is first; nan wins.",
)
_MOMENTS = "x: Float; axis: Axes = None, correction: float = 0.0, keepdims: bool = False"
var_mean = reduction(
    "var_mean",
    f"{_MOMENTS} -> var: Float, mean: Float",
    numpy=ref.var_mean,
    expand=lambda x, axis, correction, keepdims: (
        x.var(axis=axis, correction=correction, keepdims=keepdims),
        x.mean(axis=axis, keepdims=keepdims),
    ),
    shape=shapes.var_mean,
    ulp=16,
    atol=8,
    doc="``var`` and ``mean`` along the axes.",
)
