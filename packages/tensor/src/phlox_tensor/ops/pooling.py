"""Pools: the largest element or the mean of each window."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from .._errors.classes import ArgumentError, ShapeError
from .._op.records import IndexSample, case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import pooling as ref
from ..shapes import pooling as shapes
from ..shapes._window import overhang, window_sizes
from ._families import window
from ._windows import Pair, Sides, added, padded, views

_POOL = "kernel: Pair, stride: Pair? = None, padding: Sides = 0"
_MAX = f"{_POOL}, dilation: Pair = 1, ceil_mode: bool = False"
_MAX_CASES = (
    case((2, 3, 8, 6), kernel=2),
    case((2, 3, 7, 9), kernel=3, stride=2, padding=1),
    case((1, 2, 9, 9), kernel=(2, 3), stride=1, dilation=2),
    case((1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
)


@window.formula(
    f"x: Num; {_MAX} -> values: Num, indices: Int",
    numpy=ref.max_pool2d_with_indices,
    shape=shapes.max_pool2d,
    prepare=shapes.prepare_pool,
    cases=_MAX_CASES,
    refuses=(refusal(ShapeError, (1, 1, 2, 2), kernel=3),),
    method=False,
    example=(
        "pt.max_pool2d_with_indices(pt.asarray([[[[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]]]]), "
        "2, stride=1)"
    ),
    doc="Largest element of each window of (N, C, H, W) and its place in the plane, ``row·W + "
    "column``; nan wins, the first of equals wins.",
)
def max_pool2d_with_indices(
    x: Tensor, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, ceil_mode: bool
) -> tuple[Tensor, Tensor[Int]]:
    shape, device = x.shape, x.device
    size = window_sizes("max_pool2d", shape[2:], kernel, stride, padding, dilation, ceil_mode)
    extra = overhang(shape[2:], kernel, stride, padding, dilation, size)
    count = shape[2] * shape[3]
    numbers: Any = Tensor(device.ops.arange(0, 1, count, device.default_int), device)
    # Each place of the window with the number of the pixel under it, -1 for the margin.
    places = padded(numbers.reshape((1, 1, *shape[2:])), padding, -1, extra)
    best = x.zeros((*shape[:2], *size))
    index = numbers.zeros((1, 1, *size)) - 1
    window = (kernel, stride, dilation, size)
    for view, place in zip(
        views(padded(x, padding, 0, extra), *window), views(places, *window), strict=True
    ):
        larger = (view > best) | (view.not_equal(view) & best.equal(best))
        wins = (place >= 0) & ((index < 0) | larger)
        best, index = wins.where(view, best), wins.where(place, index)
    return best, index.broadcast_to(best.shape)


@window.formula(
    f"x: Num; {_MAX} -> Num",
    numpy=lambda *args: ref.max_pool2d_with_indices(*args)[0],
    shape=shapes.max_pool2d,
    prepare=shapes.prepare_pool,
    cases=_MAX_CASES,
    refuses=(
        refusal(ShapeError, (1, 1, 2, 2), kernel=3),
        refusal(ArgumentError, (1, 1, 4, 4), kernel=2, padding=2),
        refusal(ArgumentError, (1, 1, 4, 4), kernel=0),
        refusal(ShapeError, (2, 2), kernel=1),
    ),
    method=False,
    example="pt.max_pool2d(pt.asarray([[[[1.0, 2.0, 3.0], [6.0, 5.0, 4.0]]]]), 2, stride=1)",
    doc="Largest element of each window of (N, C, H, W); nan wins. The stride is the kernel where "
    "none is given.",
)
def max_pool2d(x: Tensor, *attributes: Any) -> Tensor:
    return max_pool2d_with_indices(x, *attributes)[0]


@window.formula(
    "g: Float, indices: Int; input_shape: Shape -> Float",
    numpy=ref.max_pool2d_backward,
    shape=shapes.max_pool2d_backward,
    linear=True,
    ulp=4,
    atol=8,
    cases=(
        case((2, 3, 2, 4), IndexSample((2, 3, 2, 4), -12), input_shape=(2, 3, 3, 4)),
        case((1, 1, 1, 1), IndexSample((1, 1, 1, 1), -9), input_shape=(1, 1, 3, 3)),
    ),
    internal=True,
    doc="Cotangent of ``max_pool2d``: each g goes to the place that won.",
)
def max_pool2d_backward(g: Tensor, indices: Tensor[Int], input_shape: tuple[int, ...]) -> Tensor:
    n, c, h, w = input_shape
    empty = g.zeros((n, c, h * w))
    flat = empty.scatter(indices.reshape(n, c, -1), g.reshape(n, c, -1), axis=2, update="add")
    return flat.reshape(input_shape)


_AVERAGE = f"{_POOL}, ceil_mode: bool = False, count_include_pad: bool = True"


def _total(parts: list[Tensor]) -> Tensor:
    return reduce(add, parts)


def _divisors(
    x: Tensor, shape: tuple[int, ...], padding: Sides, extra: Pair, counted: bool, *window: Pair
) -> Tensor:
    """How many elements each window averages over."""
    ones = padded(x.zeros((1, 1, *shape[2:])) + 1, padding, 1.0 if counted else 0.0)
    around = padded(ones, ((0, 0), (0, 0)), 0.0, extra)
    return _total(list(views(around, *window)))


@window.formula(
    f"x: Float; {_AVERAGE} -> Float",
    numpy=ref.avg_pool2d,
    shape=shapes.avg_pool2d,
    linear=True,
    prepare=shapes.prepare_pool,
    ulp=4,
    atol=4,
    cases=(
        case((2, 3, 8, 6), kernel=2),
        case((2, 3, 7, 9), kernel=3, stride=2, padding=1),
        case((2, 3, 7, 9), kernel=3, stride=2, padding=1, count_include_pad=False),
        case((1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
    ),
    refuses=(
        refusal(ShapeError, (1, 1, 2, 2), kernel=3),
        refusal(ArgumentError, (1, 1, 4, 4), kernel=2, stride=0),
    ),
    method=False,
    example="pt.avg_pool2d(pt.asarray([[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]]), 2, stride=1)",
    doc="Mean of each window of (N, C, H, W). The stride is the kernel where none is given.",
)
def avg_pool2d(
    x: Tensor,
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    size = window_sizes("avg_pool2d", x.shape[2:], kernel, stride, padding, (1, 1), ceil_mode)
    extra = overhang(x.shape[2:], kernel, stride, padding, (1, 1), size)
    wide, window = x.to_full_precision(), (kernel, stride, (1, 1), size)
    parts = list(views(padded(wide, padding, 0.0, extra), *window))
    counts = _divisors(wide, x.shape, padding, extra, count_include_pad, *window)
    return (_total(parts) / counts).astype(x.dtype)


@window.formula(
    f"g: Float; input_shape: Shape, {_AVERAGE} -> Float",
    numpy=ref.avg_pool2d_backward,
    shape=shapes.avg_pool2d_backward,
    linear=True,
    prepare=lambda specs, attributes, backend: (
        attributes[0],
        *shapes.prepare_pool(specs, attributes[1:], backend),
    ),
    ulp=4,
    atol=8,
    cases=(
        case((2, 3, 4, 3), input_shape=(2, 3, 8, 6), kernel=2),
        case((2, 3, 4, 5), input_shape=(2, 3, 7, 9), kernel=3, stride=2, padding=1),
        case(
            (2, 3, 4, 5),
            input_shape=(2, 3, 7, 9),
            kernel=3,
            stride=2,
            padding=1,
            count_include_pad=False,
        ),
        case((1, 2, 3, 3), input_shape=(1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
    ),
    internal=True,
    doc="Cotangent of ``avg_pool2d``: each g is shared out over its window.",
)
def avg_pool2d_backward(
    g: Tensor,
    input_shape: tuple[int, ...],
    kernel: Pair,
    stride: Pair,
    padding: Sides,
    ceil_mode: bool,
    count_include_pad: bool,
) -> Tensor:
    size: Pair = g.shape[2:]  # type: ignore[assignment]
    extra = overhang(input_shape[2:], kernel, stride, padding, (1, 1), size)
    wide, window = g.to_full_precision(), (kernel, stride, (1, 1))
    share = wide / _divisors(wide, input_shape, padding, extra, count_include_pad, *window, size)
    parts = [share] * (kernel[0] * kernel[1])
    return added(parts, input_shape, padding, *window, extra=extra).astype(g.dtype)
