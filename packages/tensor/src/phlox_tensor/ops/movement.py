"""Views and data movement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Op, Restated, ShapeRule
from .._op.records import case, refusal
from .._values.tensor import Tensor
from ..reference import movement as ref
from ..shapes import indexing as index_shapes
from ..shapes import movement as shapes
from ..shapes._equal import same
from ..shapes.indexing import region
from ._families import movement, view, view_by_index
from ._joined import joined

broadcast_to = view(
    "broadcast_to",
    "x: Any; shape: Shape -> Any",
    numpy=np.broadcast_to,
    shape=shapes.broadcast_to,
    linear=True,
    cases=(case((3, 1), shape=(2, 3, 4)), case((), shape=(2, 2)), case((1,), shape=(0,))),
    refuses=(refusal(ShapeError, (2,), shape=(3,)),),
    example="pt.broadcast_to(pt.asarray([1, 2]), (3, 2))",
    doc="The tensor seen with a larger shape: sizes of 1 repeat, axes are added in front.",
)


@movement.formula(
    "*parts: Num; shape: Shape, start: Integers, step: Integers -> Num",
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
def add_slices(
    parts: Sequence[Tensor], shape: tuple[int, ...], start: tuple[int, ...], step: tuple[int, ...]
) -> Tensor:
    rank = len(shape)
    starts = [start[i * rank : (i + 1) * rank] for i in range(len(parts))]
    steps = [step[i * rank : (i + 1) * rank] for i in range(len(parts))]
    found = joined(parts, shape, starts, steps)
    if found is not None:
        return concat(*found)
    out = parts[0].zeros(shape)
    for part, first, stride in zip(parts, starts, steps, strict=True):
        before = slice_(out, first, part.shape, stride)
        out = slice_scatter(out, before + part, first, part.shape, stride)
    return out


@movement.formula(
    "*xs: Any; axis: int = 0 -> Any",
    numpy=lambda xs, axis: np.concatenate(xs, axis=axis),
    shape=shapes.concat,
    linear=True,
    prepare=shapes.prepare_concat,
    cases=(
        case([(2, 3), (1, 3)], axis=0),
        case([(2, 3), (2, 0), (2, 2)], axis=-1),
        case([(4,)], axis=0),
    ),
    refuses=(refusal(ShapeError, [(2, 3), (2, 4)], axis=0),),
    method=False,
    function=False,
    example="pt.concat([pt.asarray([1, 2]), pt.asarray([3])])",
    doc="Tensors one after the other along an axis.",
)
def concat(xs: Sequence[Tensor], axis: int) -> Tensor:
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    out, start = xs[0].zeros(shape), [0] * len(shape)
    for x in xs:
        out = slice_scatter(out, x, tuple(start), x.shape, (1,) * len(shape))
        start[axis] += x.shape[axis]
    return out


contiguous = movement(
    "contiguous",
    "x: Any -> Any",
    expand=lambda x: x,
    numpy=np.copy,
    shape=same,
    linear=True,
    cases=(case((2, 3)), case((33, 70)), case(()), case((0, 2))),
    example="pt.contiguous(pt.asarray([[1, 2], [3, 4]]).mT)",
    doc="The same elements, row by row in memory where a backend keeps them in another order: a "
    "permuted tensor that is read often is faster after one copy.",
)


@view_by_index.formula(
    "x: Any; index: Index -> Any",
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
def getitem(x: Tensor, index: Any) -> Tensor:
    """A basic index as a slice and a reshape, as far as it needs them."""
    found = region(x.shape, index)
    out = x
    if (found.start, found.size, found.step) != ([0] * x.ndim, [*x.shape], [1] * x.ndim):
        out = slice_(x, tuple(found.start), tuple(found.size), tuple(found.step))
    return out if found.layout == [*range(x.ndim)] else reshape(out, found.shape)


@view.formula(
    "x: Any; axis: Axes = None -> Any",
    numpy=np.flip,
    shape=same,
    linear=True,
    cases=(case((2, 3)), case((2, 3), axis=1), case((4, 1, 2), axis=(0, 2)), case(())),
    refuses=(refusal(ShapeError, (2,), axis=1),),
    example="pt.flip(pt.asarray([1, 2, 3]))",
    doc="Elements in reverse order along the axes, all of them without an axis.",
)
def flip(x: Tensor, axis: tuple[int, ...]) -> Tensor:
    start = tuple(n - 1 if i in axis and n else 0 for i, n in enumerate(x.shape))
    step = tuple(-1 if i in axis else 1 for i in range(x.ndim))
    return slice_(x, start, x.shape, step)


@movement.formula(
    "x: Any; padding: Margins, value: Scalar = 0 -> Any",
    numpy=ref.pad,
    shape=shapes.pad,
    prepare=shapes.prepare_pad,
    cases=(
        case((2, 3), padding=((1, 2),), value=1),
        case((2, 3), padding=((0, 1), (2, 0))),
        case((0, 2), padding=((1, 1), (0, 0)), value=1),
    ),
    refuses=(refusal(ArgumentError, (2,), padding=((-3, 0),), value=0.0),),
    example="pt.pad(pt.asarray([1, 2]), ((1, 2),))",
    doc="The tensor with a margin of ``value``: pairs (before, after) for the last axes.",
)
def pad(x: Tensor, padding: tuple[tuple[int, int], ...], value: float) -> Tensor:
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, padding, strict=True))
    filled: Tensor = Tensor(x.device.ops.full(shape, value, x.dtype), x.device)
    start = tuple(before for before, _ in padding)
    return slice_scatter(filled, x, start, x.shape, (1,) * x.ndim)


permute_dims = view(
    "permute_dims",
    "x: Any; axes: AxisOrder -> Any",
    numpy=np.transpose,
    shape=shapes.permute_dims,
    linear=True,
    cases=(case((2, 3, 4), axes=(2, 0, 1)), case((2, 3), axes=(-1, 0)), case((), axes=())),
    refuses=(refusal(ShapeError, (2, 3), axes=(0, 0)),),
    example="pt.permute_dims(pt.asarray([[1, 2], [3, 4]]), (1, 0))",
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
    refuses=(refusal(ShapeError, (2, 3), shape=(4,)),),
    function=False,
    example="pt.reshape(pt.asarray([1, 2, 3, 4]), (2, 2))",
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
    refuses=(refusal(ShapeError, (2,), start=(0,), size=(3,), step=(1,)),),
    method=False,
    example="pt.slice(pt.asarray([1, 2, 3, 4]), (0,), (2,), (2,))",
    doc="Every ``step``-th element from ``start``, ``size`` along each axis; ``x[...]`` says it.",
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
    refuses=(refusal(ShapeError, (2, 3), (2, 2), start=(0, 2), size=(2, 2), step=(1, 1)),),
    method=False,
    example="pt.slice_scatter(pt.asarray([1, 2, 3, 4]), pt.asarray([0, 0]), (1,), (2,), (1,))",
    doc="A copy of x with ``values`` in place of a slice; ``x.at[...].set`` is the usual spelling.",
)


def _at_once(op: Op, x: Tensor, *attributes: Any) -> Tensor:
    """Apply an op to attributes that need no preparation, without its checks."""
    return Tensor(getattr(x.device.ops, op.name)(x.primitive, *attributes), x.device)


def _reshaped(rule: ShapeRule) -> Restated:
    """The expansion of an op that gives its elements another shape."""
    return Restated(reshape, lambda x, attributes: (rule(reshape, (x,), attributes)[0],))


def _permuted(order: Callable[..., tuple[int, ...]]) -> Restated:
    """The expansion of an op that gives the axes another order, from their number."""
    return Restated(permute_dims, lambda x, attributes: (order(len(x.shape), *attributes),))


def _in_shape(rule: ShapeRule) -> Callable[..., Any]:
    """The reference of such an op."""
    return lambda x, *attributes: np.reshape(x, rule(reshape, (x,), attributes)[0])


expand_dims = view(
    "expand_dims",
    "x: Any; axis: Integers = 0 -> Any",
    numpy=np.expand_dims,
    expand=_reshaped(shapes.expand_dims),
    shape=shapes.expand_dims,
    prepare=shapes.prepare_expand_dims,
    cases=(
        case((2, 3), axis=1),
        case((), axis=0),
        case((2, 3), axis=(0, -1)),
        case((2,), axis=()),
    ),
    refuses=(refusal(ShapeError, (2,), axis=3),),
    example="pt.expand_dims(pt.asarray([1, 2]), 1)",
    doc="The tensor with axes of size 1 more, at the places ``axis`` of the result.",
)
flatten = view(
    "flatten",
    "x: Any; start_axis: int = 0, end_axis: int = -1 -> Any",
    numpy=_in_shape(shapes.flatten),
    expand=_reshaped(shapes.flatten),
    shape=shapes.flatten,
    prepare=shapes.prepare_flatten,
    cases=(case((2, 3, 4)), case((2, 3, 4), start_axis=1), case((2, 0, 4), end_axis=1), case(())),
    refuses=(refusal(ShapeError, (2, 3), start_axis=2),),
    example="pt.flatten(pt.asarray([[1, 2], [3, 4]]))",
    doc="The axes from ``start_axis`` to ``end_axis``, both included, as one.",
)
matrix_transpose = view(
    "matrix_transpose",
    "x: Any -> Any",
    numpy=lambda x: np.swapaxes(x, -1, -2),
    expand=_permuted(lambda rank: shapes.swapped(rank, -1, -2)),
    shape=shapes.matrix_transpose,
    cases=(case((2, 3)), case((4, 2, 3)), case((0, 3))),
    refuses=(refusal(ShapeError, (2,)),),
    example="pt.matrix_transpose(pt.asarray([[1, 2], [3, 4]]))",
    doc="The last two axes swapped; ``x.mT``.",
)
moveaxis = view(
    "moveaxis",
    "x: Any; source: Integers, destination: Integers -> Any",
    numpy=np.moveaxis,
    expand=_permuted(shapes.moved),
    shape=shapes.moveaxis,
    prepare=shapes.prepare_moveaxis,
    cases=(
        case((2, 3, 4), source=0, destination=-1),
        case((2, 3, 4), source=(2, 0), destination=(0, 1)),
    ),
    refuses=(refusal(ShapeError, (2, 3), source=2, destination=0),),
    example="pt.moveaxis(pt.asarray([[[1, 2], [3, 4]]]), 0, -1)",
    doc="The tensor with axes moved to new places; the others keep their order.",
)
squeeze = view(
    "squeeze",
    "x: Any; axis: Axes? = None -> Any",
    numpy=np.squeeze,
    expand=_reshaped(shapes.squeeze),
    shape=shapes.squeeze,
    prepare=shapes.prepare_squeeze,
    cases=(case((2, 1, 3, 1)), case((2, 1, 3, 1), axis=1), case((2, 3)), case((1, 0), axis=(0,))),
    refuses=(refusal(ShapeError, (2,), axis=0),),
    example="pt.squeeze(pt.asarray([[1, 2]]), 0)",
    doc="The tensor without axes of size 1: those given, or all.",
)
swapaxes = view(
    "swapaxes",
    "x: Any; axis1: Axis, axis2: Axis -> Any",
    numpy=np.swapaxes,
    expand=_permuted(shapes.swapped),
    shape=shapes.swapaxes,
    cases=(case((2, 3, 4), axis1=0, axis2=2), case((2, 3), axis1=-1, axis2=-1)),
    refuses=(refusal(ShapeError, (2, 3), axis1=0, axis2=2),),
    example="pt.swapaxes(pt.asarray([[1, 2], [3, 4]]), 0, 1)",
    doc="The tensor with two axes swapped.",
)


def _cut(x: Any, sizes: Sequence[int], axis: int) -> Any:
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def cut_into(x: Tensor, sizes: Sequence[int], axis: int) -> tuple[Tensor, ...]:
    """Slices of the given sizes, one after the other."""
    shape = x.shape
    before, after, steps = (0,) * axis, (0,) * (len(shape) - axis - 1), (1,) * len(shape)
    out, start = [], 0
    for size in sizes:
        wanted = (*shape[:axis], size, *shape[axis + 1 :])
        out.append(_at_once(slice_, x, (*before, start if size else 0, *after), wanted, steps))
        start += size
    return tuple(out)


chunk = view(
    "chunk",
    "x: Any; chunks: int, axis: Axis = 0 -> *parts: Any",
    numpy=lambda x, chunks, axis: _cut(x, shapes.chunk_sizes(x.shape[axis], chunks), axis),
    expand=lambda x, chunks, axis: cut_into(x, shapes.chunk_sizes(x.shape[axis], chunks), axis),
    shape=shapes.chunk,
    prepare=shapes.prepare_chunk,
    cases=(case((7, 2), chunks=3), case((2, 4), chunks=2, axis=-1), case((0, 2), chunks=2)),
    refuses=(refusal(ArgumentError, (2,), chunks=0),),
    example="pt.chunk(pt.asarray([1, 2, 3, 4, 5]), 2)",
    doc="At most ``chunks`` parts along an axis; the last may be smaller.",
)
split = view(
    "split",
    "x: Any; sections: Sections, axis: Axis = 0 -> *parts: Any",
    numpy=_cut,
    expand=cut_into,
    shape=shapes.split,
    prepare=shapes.prepare_split,
    cases=(case((6, 2), sections=3), case((2, 5), sections=(2, 0, 3), axis=1)),
    refuses=(refusal(ShapeError, (3,), sections=2),),
    example="pt.split(pt.asarray([1, 2, 3, 4]), [1, 3])",
    doc="Parts along an axis: as many equal ones as ``sections`` says, or of the given sizes.",
)


@view.formula(
    "x: Any; axis: Axis = 0 -> *parts: Any",
    numpy=lambda x, axis: tuple(np.moveaxis(x, axis, 0)),
    shape=shapes.unstack,
    cases=(case((3, 2)), case((2, 3, 4), axis=1), case((2,), axis=-1), case((2, 0))),
    refuses=(refusal(ShapeError, ()),),
    example="pt.unstack(pt.asarray([[1, 2], [3, 4]]))",
    doc="The tensors along an axis, without it.",
)
def unstack(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    parts = cut_into(x, (1,) * x.shape[axis], axis)
    return tuple(_at_once(reshape, part, shape) for part in parts)


@movement.formula(
    "*xs: Any; axis: int = 0 -> Any",
    numpy=np.stack,
    shape=shapes.stack,
    prepare=shapes.prepare_stack,
    refuses=(refusal(ShapeError, [(2,), (3,)]),),
    method=False,
    cases=(case([(2, 3), (2, 3)], axis=1), case([(2,)] * 3, axis=-1), case([()], axis=0)),
    example="pt.stack([pt.asarray([1, 2]), pt.asarray([3, 4])])",
    doc="Tensors of one shape joined along a new axis.",
)
def stack(xs: Sequence[Tensor], axis: int) -> Tensor:
    shape = xs[0].shape
    wide = (*shape[:axis], 1, *shape[axis:])
    return concat([_at_once(reshape, x, wide) for x in xs], axis)
