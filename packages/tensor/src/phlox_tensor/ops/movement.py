"""Views and data movement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._op import case
from .._tensor import Tensor
from ..reference import movement as ref
from ..shapes import indexing as index_shapes
from ..shapes import movement as shapes
from ..shapes._equal import same
from ..shapes.indexing import region
from ._families import movement, view, view_by_index

if TYPE_CHECKING:
    from collections.abc import Sequence

broadcast_to = view(
    "broadcast_to",
    "x: Any; shape: Shape -> Any",
    numpy=np.broadcast_to,
    shape=shapes.broadcast_to,
    linear=True,
    cases=(case((3, 1), shape=(2, 3, 4)), case((), shape=(2, 2)), case((1,), shape=(0,))),
    doc="The tensor seen with a larger shape: sizes of 1 repeat, axes are added in front.",
)


def _add_slices(
    parts: Sequence[Tensor], shape: tuple[int, ...], start: tuple[int, ...], step: tuple[int, ...]
) -> Tensor:
    rank = len(shape)
    starts = [start[i * rank : (i + 1) * rank] for i in range(len(parts))]
    steps = [step[i * rank : (i + 1) * rank] for i in range(len(parts))]
    joined = _joined(parts, shape, starts, steps)
    if joined is not None:
        return joined
    out = parts[0].zeros(shape)
    for part, first, stride in zip(parts, starts, steps, strict=True):
        before = slice_(out, first, part.shape, stride)
        out = slice_scatter(out, before + part, first, part.shape, stride)
    return out


def _joined(
    parts: Sequence[Tensor], shape: tuple[int, ...], starts: list[Any], steps: list[Any]
) -> Tensor | None:
    """The parts one after the other with zeros between them, where they lie so along an axis."""
    partial = {i for part in parts for i, n in enumerate(shape) if part.shape[i] != n}
    if len(partial) != 1 or any(s != 1 for stride in steps for s in stride):
        return None
    (axis,) = partial
    out, end = [], 0
    for i in sorted(range(len(parts)), key=lambda i: starts[i][axis]):
        first = starts[i][axis]
        if first < end:
            return None
        if first > end:
            out.append(parts[i].zeros((*shape[:axis], first - end, *shape[axis + 1 :])))
        out.append(parts[i])
        end = first + parts[i].shape[axis]
    if end < shape[axis]:
        out.append(parts[0].zeros((*shape[:axis], shape[axis] - end, *shape[axis + 1 :])))
    return concat(out, axis)


add_slices = movement(
    "add_slices",
    "*parts: Num; shape: Shape, start: Integers, step: Integers -> Num",
    expand=_add_slices,
    numpy=ref.add_slices,
    shape=shapes.add_slices,
    linear=True,
    ulp=4,
    atol=8,
    signed_zeros=False,
    cases=(
        case([(2, 5), (1, 5)], shape=(4, 5), start=(1, 0, 3, 0), step=(1, 1, 1, 1)),
        case([(2, 5), (2, 5)], shape=(4, 5), start=(0, 0, 1, 0), step=(1, 1, 1, 1)),
        case([(3, 5), (7, 1)], shape=(7, 5), start=(0, 4, 0, 2), step=(3, -1, 1, 1)),
        case([(0,), (2,)], shape=(3,), start=(0, 1), step=(1, 1)),
        case([(), ()], shape=(), start=(), step=()),
    ),
    internal=True,
    doc="Zeros of a shape to which parts are added, each at a slice of the part's own shape: "
    "``start`` and ``step`` name an axis of the first part after the other, then the next part.",
)


def _concat(xs: Sequence[Tensor], axis: int) -> Tensor:
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    out, start = xs[0].zeros(shape), [0] * len(shape)
    for x in xs:
        out = slice_scatter(out, x, tuple(start), x.shape, (1,) * len(shape))
        start[axis] += x.shape[axis]
    return out


concat = movement(
    "concat",
    "*xs: Any; axis: int = 0 -> Any",
    expand=_concat,
    numpy=lambda xs, axis: np.concatenate(xs, axis=axis),
    shape=shapes.concat,
    linear=True,
    prepare=shapes.prepare_concat,
    cases=(
        case([(2, 3), (1, 3)], axis=0),
        case([(2, 3), (2, 0), (2, 2)], axis=-1),
        case([(4,)], axis=0),
    ),
    method=False,
    doc="Tensors one after the other along an axis.",
)
contiguous = movement(
    "contiguous",
    "x: Any -> Any",
    expand=lambda x: x,
    numpy=np.copy,
    shape=same,
    linear=True,
    cases=(case((2, 3)), case((33, 70)), case(()), case((0, 2))),
    doc="The same elements, row by row in memory where a backend keeps them in another order: a "
    "permuted tensor that is read often is faster after one copy.",
)


def _getitem(x: Tensor, index: Any) -> Tensor:
    found = region(x.shape, index)
    out = x
    if (found.start, found.size, found.step) != ([0] * x.ndim, [*x.shape], [1] * x.ndim):
        out = slice_(x, tuple(found.start), tuple(found.size), tuple(found.step))
    return out if found.layout == [*range(x.ndim)] else reshape(out, found.shape)


getitem = view_by_index(
    "getitem",
    "x: Any; index: Index -> Any",
    expand=_getitem,
    numpy=lambda x, index: x[index],
    shape=index_shapes.getitem,
    linear=True,
    internal=True,
    cases=(
        case((4, 5), index=(slice(1, 3),)),
        case((4, 5), index=(2,)),
        case((2, 3, 4), index=(Ellipsis, -1, None)),
        case((7, 5), index=(slice(None, None, -3), None, slice(4, 4))),
        case((2, 0), index=(1, Ellipsis)),
        case((), index=(None,)),
    ),
    doc="The view that integers, slices, None and ``...`` ask for; ``x[...]`` is the spelling.",
)


def _flip(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    start = tuple(n - 1 if i in axis and n else 0 for i, n in enumerate(x.shape))
    step = tuple(-1 if i in axis else 1 for i in range(x.ndim))
    return slice_(x, start, x.shape, step)


flip = view(
    "flip",
    "x: Any; axis: Axes = None -> Any",
    expand=_flip,
    numpy=np.flip,
    shape=same,
    linear=True,
    cases=(case((2, 3)), case((2, 3), axis=1), case((4, 1, 2), axis=(0, 2)), case(())),
    doc="Elements in reverse order along the axes, all of them without an axis.",
)


def _pad(x: Tensor, padding: tuple[tuple[int, int], ...], value: float) -> Tensor:
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, padding, strict=True))
    filled: Tensor = Tensor(x.device.ops.full(shape, value, x.dtype), x.device)
    start = tuple(before for before, _ in padding)
    return slice_scatter(filled, x, start, x.shape, (1,) * x.ndim)


pad = movement(
    "pad",
    "x: Any; padding: Margins, value: Scalar = 0 -> Any",
    expand=_pad,
    numpy=ref.pad,
    shape=shapes.pad,
    prepare=shapes.prepare_pad,
    cases=(
        case((2, 3), padding=((1, 2),), value=1),
        case((2, 3), padding=((0, 1), (2, 0))),
        case((0, 2), padding=((1, 1), (0, 0)), value=1),
    ),
    doc="The tensor with a margin of ``value``: pairs (before, after) for the last axes.",
)
permute_dims = view(
    "permute_dims",
    "x: Any; axes: AxisOrder -> Any",
    numpy=np.transpose,
    shape=shapes.permute_dims,
    linear=True,
    cases=(case((2, 3, 4), axes=(2, 0, 1)), case((2, 3), axes=(-1, 0)), case((), axes=())),
    doc="The axes in a new order.",
)
reshape = view(
    "reshape",
    "x: Any; shape: Shape -> Any",
    numpy=np.reshape,
    shape=shapes.reshape,
    linear=True,
    prepare=shapes.prepare_reshape,
    cases=(
        case((2, 6), shape=(3, 4)),
        case((2, 6), shape=(-1,)),
        case((1,), shape=()),
        case((0, 3), shape=(3, 0, 2)),
    ),
    doc="The elements, row by row, under a new shape; one size may be -1.",
)
slice_ = view(
    "slice",
    "x: Any; start: Integers, size: Integers, step: Integers -> Any",
    numpy=ref.slice_,
    shape=shapes.slice_,
    linear=True,
    cases=(
        case((4, 5), start=(1, 0), size=(2, 5), step=(1, 1)),
        case((7, 5), start=(0, 4), size=(3, 5), step=(3, -1)),
        case((4, 5), start=(0, 0), size=(0, 2), step=(1, 2)),
    ),
    method=False,
    doc="Every ``step``-th element from ``start``, ``size`` of them along each axis; ``x[...]`` is "
    "the usual spelling.",
)
slice_scatter = movement(
    "slice_scatter",
    "x: Any, values: Any; start: Integers, size: Integers, step: Integers -> Any",
    numpy=ref.slice_scatter,
    shape=shapes.slice_scatter,
    linear=True,
    cases=(
        case((4, 5), (2, 5), start=(1, 0), size=(2, 5), step=(1, 1)),
        case((7, 5), (3, 5), start=(0, 4), size=(3, 5), step=(3, -1)),
        case((4,), (0,), start=(0,), size=(0,), step=(1,)),
    ),
    method=False,
    doc="A copy of x with ``values`` in place of a slice; ``x.at[...].set`` is the usual spelling.",
)
