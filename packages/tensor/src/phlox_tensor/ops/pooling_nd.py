"""Pools of lines (N, C, L) and volumes (N, C, D, H, W), power means, and pools to a given size."""

from __future__ import annotations

from functools import partial, reduce
from math import inf
from operator import add
from typing import Any, Final

import numpy as np

from .._data.conversion import asarray
from .._errors.classes import ShapeError
from .._op.declaration import Op
from .._op.records import case, refusal
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import pooling_nd as ref
from ..shapes import pooling_nd as shapes
from ..shapes._window import sizes
from . import movement, pooling
from ._families import window
from ._norms import root_of, scale_of

_MAX = (
    "kernel: {0}, stride: {0}? = None, padding: {0}Sides = 0, dilation: {0} = 1, "
    "ceil_mode: bool = False"
)
_AVERAGE = (
    "kernel: {0}, stride: {0}? = None, padding: {0}Sides = 0, ceil_mode: bool = False, "
    "count_include_pad: bool = True"
)
_LINE, _VOLUME = _MAX.format("Single"), _MAX.format("Triple")
_LINE_CASES: Final[dict[str, Any]] = {
    "cases": (
        case((2, 3, 7), kernel=2),
        case((2, 2, 7), kernel=3, stride=2, padding=(1, 0)),
        case((1, 2, 6), kernel=3, stride=2, dilation=2, ceil_mode=True),
    ),
    "refuses": (refusal(ShapeError, (1, 1, 2), kernel=3),),
}
_VOLUME_CASES: Final[dict[str, Any]] = {
    "cases": (
        case((2, 1, 2, 4, 2), kernel=2),
        case((1, 2, 4, 3, 3), kernel=(2, 3, 2), stride=(2, 1, 1), padding=((1, 0), (1, 1), (0, 1))),
        case((1, 1, 4, 3, 5), kernel=2, stride=3, dilation=(2, 1, 2), ceil_mode=True),
    ),
    "refuses": (refusal(ShapeError, (1, 1, 2, 2, 2), kernel=3),),
}
_max_pool = partial(
    window.formula, shape=shapes.max_pool, prepare=shapes.prepare_pool, method=False
)
_avg_pool = partial(
    window.formula,
    numpy=ref.avg_pool,
    shape=shapes.avg_pool,
    prepare=shapes.prepare_pool,
    linear=True,
    method=False,
)


def _in_rows(
    kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Any, ...]:
    """The attributes of a pool of lines for images of one row."""
    return (1, *kernel), (1, *stride), ((0, 0), *padding), (1, *dilation), ceil_mode


@_max_pool(
    f"x: Num; {_LINE} -> values: Num, indices: Int",
    numpy=ref.max_pool_with_indices,
    **_LINE_CASES,
    example="pt.max_pool1d_with_indices(pt.asarray([[[1.0, 2.0, 5.0, 3.0]]]), 2)",
    doc="Largest element of each window of lines (N, C, L) and its place in the line; nan wins, "
    "the first of equals wins.",
)
def max_pool1d_with_indices(x: Tensor, *attributes: Any) -> tuple[Tensor, Tensor[Int]]:
    images = x.expand_dims(axis=2)
    values, places = pooling.max_pool2d_with_indices(images, *_in_rows(*attributes))
    return values.squeeze(2), places.squeeze(2)


@_max_pool(
    f"x: Num; {_LINE} -> Num",
    numpy=ref.max_pool,
    **_LINE_CASES,
    example="pt.max_pool1d(pt.asarray([[[1.0, 2.0, 5.0, 3.0]]]), 2)",
    doc="Largest element of each window of lines (N, C, L); nan wins. The stride is the kernel "
    "where none is given.",
)
def max_pool1d(x: Tensor, *attributes: Any) -> Tensor:
    return pooling.max_pool2d(x.expand_dims(axis=2), *_in_rows(*attributes)).squeeze(2)


def _parts(
    kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The attributes of a pool of volumes, for images and for what lies behind one another."""
    plane = (kernel[1:], stride[1:], padding[1:], dilation[1:], ceil_mode)
    column = ((kernel[0], 1), (stride[0], 1), (padding[0], (0, 0)), (dilation[0], 1), ceil_mode)
    return plane, column


@_max_pool(
    f"x: Num; {_VOLUME} -> values: Num, indices: Int",
    numpy=ref.max_pool_with_indices,
    **_VOLUME_CASES,
    example="pt.max_pool3d_with_indices(pt.asarray([[[[[1.0, 2.0], [3.0, 4.0]]]]]), (1, 2, 2))",
    doc="Largest element of each window of volumes (N, C, D, H, W) and its place in the volume, "
    "``(slice·H + row)·W + column``; nan wins, the first of equals wins.",
)
def max_pool3d_with_indices(x: Tensor, *attributes: Any) -> tuple[Tensor, Tensor[Int]]:
    n, c, depth, height, width = x.shape
    plane, column = _parts(*attributes)
    images = x.reshape((n, c * depth, height, width))
    values, places = pooling.max_pool2d_with_indices(images, *plane)
    size = values.shape[2:]
    line = (n, c, depth, size[0] * size[1])
    best, chosen = pooling.max_pool2d_with_indices(values.reshape(line), *column)
    flat = (n, c, depth * line[3])
    wanted = chosen.reshape((n, c, chosen.shape[2] * line[3]))
    inside = places.reshape(flat).take_along_axis(wanted, axis=2)
    indices = inside + wanted // line[3] * (height * width)
    shape = (n, c, chosen.shape[2], *size)
    return best.reshape(shape), indices.reshape(shape)


@_max_pool(
    f"x: Num; {_VOLUME} -> Num",
    numpy=ref.max_pool,
    **_VOLUME_CASES,
    example=(
        "pt.max_pool3d(pt.asarray([[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, "
        "8.0]]]]]), (2, 1, 1))"
    ),
    doc="Largest element of each window of volumes (N, C, D, H, W); nan wins. The stride is the "
    "kernel where none is given.",
)
def max_pool3d(x: Tensor, *attributes: Any) -> Tensor:
    """The largest of each window of the images, then of those along the depth."""
    n, c, depth, height, width = x.shape
    plane, column = _parts(*attributes)
    values = pooling.max_pool2d(x.reshape((n, c * depth, height, width)), *plane)
    size = values.shape[2:]
    best = pooling.max_pool2d(values.reshape((n, c, depth, size[0] * size[1])), *column)
    return best.reshape((n, c, best.shape[2], *size))


@_avg_pool(
    f"x: Float; {_AVERAGE.format('Single')} -> Float",
    ulp=4,
    atol=4,
    cases=(
        case((2, 3, 7), kernel=2),
        case((2, 2, 7), kernel=3, stride=2, padding=1, count_include_pad=False),
        case((1, 2, 6), kernel=3, stride=2, ceil_mode=True),
    ),
    refuses=(refusal(ShapeError, (1, 1, 2), kernel=3),),
    example="pt.avg_pool1d(pt.asarray([[[1.0, 2.0, 3.0, 5.0]]]), 2)",
    doc="Mean of each window of lines (N, C, L). The stride is the kernel where none is given.",
)
def avg_pool1d(
    x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Tensor:
    how = ((1, *kernel), (1, *stride), ((0, 0), *padding), ceil_mode, count_include_pad)
    return pooling.avg_pool2d(x.expand_dims(axis=2), *how).squeeze(2)


@_avg_pool(
    f"x: Float; {_AVERAGE.format('Triple')} -> Float",
    ulp=8,
    atol=8,
    cases=(
        case((2, 1, 2, 4, 2), kernel=2),
        case((1, 1, 3, 2, 3), kernel=(2, 3, 2), stride=1, padding=1, count_include_pad=False),
        case((1, 1, 4, 3, 5), kernel=2, stride=3, ceil_mode=True),
    ),
    refuses=(refusal(ShapeError, (1, 1, 2, 2, 2), kernel=3),),
    example=(
        "pt.avg_pool3d(pt.asarray([[[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]]]), 2)"
    ),
    doc="Mean of each window of volumes (N, C, D, H, W). The stride is the kernel where none is "
    "given.",
)
def avg_pool3d(
    x: Tensor, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Tensor:
    """The means of the images, then along the depth: how many are counted is a product."""
    n, c, depth, height, width = x.shape
    images = x.to_full_precision().reshape((n, c * depth, height, width))
    plane = (kernel[1:], stride[1:], padding[1:], ceil_mode, count_include_pad)
    means = pooling.avg_pool2d(images, *plane)
    size = means.shape[2:]
    column = ((kernel[0], 1), (stride[0], 1), (padding[0], (0, 0)), ceil_mode, count_include_pad)
    out = pooling.avg_pool2d(means.reshape((n, c, depth, size[0] * size[1])), *column)
    return out.reshape((n, c, out.shape[2], *size)).astype(x.dtype)


def _along(x: Tensor, axis: int, room: tuple[int, int], step: int, starts: Any, n: int) -> Any:
    """What lies under each place of a window that moves along an axis, for all n windows."""
    low, high = room
    beyond = max(0, starts[-1] + (n - 1) * step + 1 - x.shape[axis] - low - high)
    if low or high or beyond:
        x = x.pad(((low, high + beyond), *((0, 0),) * (x.ndim - 1 - axis)), 0.0)
    shape = (*x.shape[:axis], n, *x.shape[axis + 1 :])
    steps = tuple(step if j == axis else 1 for j in range(x.ndim))
    for start in starts:
        first = tuple(start if j == axis else 0 for j in range(x.ndim))
        yield movement.slice_(x, first, shape, steps)


def _powers(parts: list[Tensor], p: float) -> Tensor:
    """The p-norm of several tensors place by place, as ``p_norm`` along an axis."""
    if p == 1:
        return reduce(add, parts)
    scale = scale_of(reduce(Tensor.maximum, parts))
    inside = [part / scale for part in parts]
    return root_of(reduce(add, [v.square() if p == 2 else v**p for v in inside]), p) * scale


def _lp_pool(
    x: Tensor,
    kernel: Any,
    p: float,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    dilation: Any,
    *,
    what: str,
) -> Tensor:
    """The norms along an axis, then those of them along the next one."""
    wide = x.to_full_precision().abs()
    if p == inf:
        flat = {1: max_pool1d, 2: pooling.max_pool2d, 3: max_pool3d}[len(kernel)]
        out: Tensor = flat(wide, kernel, stride, padding, dilation, ceil_mode)
        return out.astype(x.dtype)
    size = sizes(what, x.shape[2:], kernel, stride, padding, dilation, ceil_mode)
    for i, n in enumerate(size):
        starts = range(0, kernel[i] * dilation[i], dilation[i])
        wide = _powers(list(_along(wide, 2 + i, padding[i], stride[i], starts, n)), p)
    return wide.astype(x.dtype)


def _sides(sort: str) -> str:
    return "Sides" if sort == "Pair" else f"{sort}Sides"


_SHOWN = {
    1: "[[[3.0, 4.0, 6.0, 8.0, 5.0]]]",
    2: "[[[[3.0, 4.0, 0.0], [1.0, 2.0, 5.0]]]]",
    3: "[[[[[3.0, 4.0], [0.0, 1.0]], [[2.0, 5.0], [6.0, 7.0]]]]]",
}


def _power_pool(number: int, sort: str, over: str, *cases: Any) -> Op:
    name = f"lp_pool{number}d"
    return window(
        name,
        f"x: Float; kernel: {sort}, *, p: float = 2.0, stride: {sort}? = None, "
        f"padding: {_sides(sort)} = 0, ceil_mode: bool = False, dilation: {sort} = 1 -> Float",
        expand=partial(_lp_pool, what=name),
        numpy=ref.lp_pool,
        shape=shapes.lp_pool,
        refuses=(refusal(ShapeError, (2,), kernel=3),),
        prepare=shapes.prepare_lp_pool,
        ulp=16,
        atol=8,
        cases=cases,
        method=False,
        example=f"pt.{name}(pt.asarray({_SHOWN[number]}), 2)",
        doc=f"``(Σ |x|ᵖ)^(1/p)`` of each window of {over}; p may be infinite.",
    )


lp_pool1d = _power_pool(
    1, "Single", "lines (N, C, L)",
    case((2, 2, 5), kernel=2), case((1, 2, 5), kernel=3, stride=2, padding=1, p=3.0),
    case((1, 2, 6), kernel=3, dilation=2, padding=1),
)  # fmt: skip
lp_pool2d = _power_pool(
    2, "Pair", "images (N, C, H, W)",
    case((1, 2, 4, 4), kernel=2), case((1, 1, 4, 5), kernel=2, stride=3, ceil_mode=True, p=1.0),
    case((1, 1, 4, 4), kernel=2, p=inf), case((1, 1, 4, 5), kernel=2, stride=1, dilation=(2, 3)),
)  # fmt: skip
lp_pool3d = _power_pool(
    3, "Triple", "volumes (N, C, D, H, W)", case((1, 1, 2, 4, 2), kernel=(1, 2, 2)),
)  # fmt: skip


def _gathered(x: Tensor[Any], axis: int, count: int) -> tuple[Tensor[Any], Any]:
    """What each of ``count`` regions along an axis holds, on an axis after it, and how many."""
    first, last = shapes.regions(x.shape[axis], count)
    longest = int((last - first).max(initial=0))
    places = np.minimum(first[:, None] + np.arange(longest), last[:, None] - 1)
    indices = asarray(places.reshape(-1), dtype=x.device.default_int, device=x.device)
    taken = x.take(indices, axis=axis)
    shape = (*x.shape[:axis], count, longest, *x.shape[axis + 1 :])
    return taken.reshape(shape), last - first


def _adaptive(x: Tensor, size: Any, *, largest: bool) -> Tensor:
    out = x if largest else x.to_full_precision()
    for axis, count in enumerate(size, 2):
        n = out.shape[axis]
        if count == n:
            continue
        if n % count == 0:
            cut = out.reshape((*out.shape[:axis], count, n // count, *out.shape[axis + 1 :]))
            out = cut.max(axis=axis + 1) if largest else cut.mean(axis=axis + 1)
            continue
        cut, held = _gathered(out, axis, count)
        if largest:
            out = cut.max(axis=axis + 1)
            continue
        behind = (1,) * (out.ndim - 1 - axis)
        counts = asarray(held.reshape((count, *behind)), dtype=out.dtype, device=x.device)
        inside = np.arange(cut.shape[axis + 1]) < held[:, None]
        mask = asarray(inside.reshape((*inside.shape, *behind)), device=x.device)
        out = mask.where(cut, 0.0).sum(axis=axis + 1) / counts
    return out.astype(x.dtype)


def _adaptive_pool(number: int, sort: str, over: str, largest: bool, *cases: Any) -> Op:
    return window(
        f"adaptive_{'max' if largest else 'avg'}_pool{number}d",
        f"x: {'Num' if largest else 'Float'}; size: {sort} -> {'Num' if largest else 'Float'}",
        expand=partial(_adaptive, largest=largest),
        numpy=ref.adaptive_max if largest else ref.adaptive_avg,
        shape=shapes.adaptive,
        refuses=(refusal(ShapeError, (2,), size=1),),
        linear=not largest,
        ulp=0 if largest else 8,
        atol=0 if largest else 8,
        cases=cases,
        method=False,
        example=f"pt.adaptive_{'max' if largest else 'avg'}_pool{number}d("
        f"pt.asarray({_SHOWN[number]}), 2)",
        doc=f"{'Largest element' if largest else 'Mean'} of each of ``size`` equal regions of "
        f"{over}: region i of n elements is from ``floor(i·n / size)`` to ``ceil((i + 1)·n / "
        "size)``.",
    )


def _adaptive_with_indices(x: Tensor, size: Any) -> tuple[Tensor, Tensor[Int]]:
    """Axis by axis from the last one, so that the first of equals in the order of memory wins."""
    out, found, step = x, None, 1
    for axis in reversed(range(2, x.ndim)):
        n, count = x.shape[axis], size[axis - 2]
        first = shapes.regions(n, count)[0].reshape((count, 1, *(1,) * (x.ndim - 1 - axis)))
        cut, _ = _gathered(out, axis, count)
        chosen = cut.argmax(axis=axis + 1, keepdims=True)
        place = (chosen + asarray(first, dtype=chosen.dtype, device=x.device)) * step
        if found is not None:
            inside, _ = _gathered(found, axis, count)
            place = place + inside.take_along_axis(chosen, axis=axis + 1)
        out = cut.take_along_axis(chosen, axis=axis + 1).squeeze(axis + 1)
        found, step = place.squeeze(axis + 1), step * n
    assert found is not None  # there is one axis at least
    return out, found


def _adaptive_places(number: int, sort: str, over: str, *cases: Any) -> Op:
    return window(
        f"adaptive_max_pool{number}d_with_indices",
        f"x: Num; size: {sort} -> values: Num, indices: Int",
        expand=_adaptive_with_indices,
        numpy=ref.adaptive_max_with_indices,
        shape=shapes.adaptive_with_indices,
        refuses=(refusal(ShapeError, (2,), size=1),),
        cases=cases,
        method=False,
        example=f"pt.adaptive_max_pool{number}d_with_indices(pt.asarray({_SHOWN[number]}), 2)",
        doc=f"``adaptive_max_pool{number}d`` of {over}, and where in its line, image or volume "
        "each largest element lies, by number; nan wins, the first of equals wins.",
    )


_LINES = ("lines (N, C, L)", case((2, 2, 7), size=3), case((1, 2, 6), size=2))
_IMAGES = ("images (N, C, H, W)", case((1, 2, 5, 4), size=(2, 3)), case((1, 2, 2, 3), size=1))
_VOLUMES = ("volumes (N, C, D, H, W)", case((1, 1, 3, 5, 4), size=2))
adaptive_avg_pool1d = _adaptive_pool(1, "Single", _LINES[0], False, *_LINES[1:])
adaptive_avg_pool2d = _adaptive_pool(2, "Pair", _IMAGES[0], False, *_IMAGES[1:])
adaptive_avg_pool3d = _adaptive_pool(3, "Triple", _VOLUMES[0], False, *_VOLUMES[1:])
adaptive_max_pool1d = _adaptive_pool(1, "Single", _LINES[0], True, *_LINES[1:])
adaptive_max_pool2d = _adaptive_pool(2, "Pair", _IMAGES[0], True, *_IMAGES[1:])
adaptive_max_pool3d = _adaptive_pool(3, "Triple", _VOLUMES[0], True, *_VOLUMES[1:])
adaptive_max_pool1d_with_indices = _adaptive_places(1, "Single", *_LINES)
adaptive_max_pool2d_with_indices = _adaptive_places(2, "Pair", *_IMAGES)
adaptive_max_pool3d_with_indices = _adaptive_places(3, "Triple", *_VOLUMES)
