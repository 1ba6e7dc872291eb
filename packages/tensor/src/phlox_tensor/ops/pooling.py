"""Pools: the largest element or the mean of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._op import IndexSample, case
from ..reference import pooling as ref
from ..shapes import pooling as shapes
from ._families import window

if TYPE_CHECKING:
    from .._kinds import Int
    from .._tensor import Tensor

_POOL = "kernel: Pair, stride: Pair? = None, padding: Sides = 0"
_MAX = f"{_POOL}, dilation: Pair = 1, ceil_mode: bool = False"
_MAX_CASES = (
    case((2, 3, 8, 6), kernel=2),
    case((2, 3, 7, 9), kernel=3, stride=2, padding=1),
    case((1, 2, 9, 9), kernel=(2, 3), stride=1, dilation=2),
    case((1, 2, 7, 7), kernel=3, stride=2, ceil_mode=True),
)
max_pool2d_with_indices = window(
    "max_pool2d_with_indices",
    f"x: Num; {_MAX} -> values: Num, indices: Int",
    numpy=ref.max_pool2d_with_indices,
    shape=shapes.max_pool2d,
    prepare=shapes.prepare_pool,
    cases=_MAX_CASES,
    method=False,
    doc="Largest element of each window of (N, C, H, W) and its place in the plane, ``row·W + "
    "column``; nan wins, the first of equals wins.",
)


def _max_pool2d(x: Tensor, *attributes: Any) -> Tensor:
    return max_pool2d_with_indices(x, *attributes)[0]


max_pool2d = window(
    "max_pool2d",
    f"x: Num; {_MAX} -> Num",
    expand=_max_pool2d,
    shape=shapes.max_pool2d,
    prepare=shapes.prepare_pool,
    cases=_MAX_CASES,
    method=False,
    doc="Largest element of each window of (N, C, H, W); nan wins. The stride is the kernel where "
    "none is given.",
)


def _max_pool2d_backward(g: Tensor, indices: Tensor[Int], input_shape: tuple[int, ...]) -> Tensor:
    n, c, h, w = input_shape
    empty = g.zeros((n, c, h * w))
    flat = empty.scatter(indices.reshape(n, c, -1), g.reshape(n, c, -1), axis=2, update="add")
    return flat.reshape(input_shape)


max_pool2d_backward = window(
    "max_pool2d_backward",
    "g: Float, indices: Int; input_shape: Shape -> Float",
    expand=_max_pool2d_backward,
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
_AVERAGE = f"{_POOL}, ceil_mode: bool = False, count_include_pad: bool = True"
avg_pool2d = window(
    "avg_pool2d",
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
    method=False,
    doc="Mean of each window of (N, C, H, W). The stride is the kernel where none is given.",
)
avg_pool2d_backward = window(
    "avg_pool2d_backward",
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
