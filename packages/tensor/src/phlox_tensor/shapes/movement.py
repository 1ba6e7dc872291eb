"""Shape rules of views and of data movement."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from .._attributes import normalize_axis
from .._dtype import number_for
from .._errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .._backend import Backend
    from .._op import Attributes, Op, Shape, Specs


def prepare_reshape(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Fill in the one size given as -1."""
    del backend
    (shape,) = attributes
    old = specs[0].shape
    if shape.count(-1) == 1:
        known = prod(n for n in shape if n != -1)
        if known and prod(old) % known == 0:
            shape = tuple(prod(old) // known if n == -1 else n for n in shape)
    return (shape,)


def reshape(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The number of elements stays."""
    shape, old = attributes[0], specs[0].shape
    if any(n < 0 for n in shape) or prod(shape) != prod(old):
        raise ShapeError(
            op.name,
            "number of elements differs",
            got=f"{old} -> {shape}",
            expected=f"a shape of {prod(old)} elements, with at most one -1",
        )
    return [shape]


def permute_dims(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axes in their new order."""
    del op
    return [tuple(specs[0].shape[i] for i in attributes[0])]


def broadcast_to(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Sizes of 1 grow, axes are added in front."""
    shape, old = attributes[0], specs[0].shape
    offset = len(shape) - len(old)
    fits = offset >= 0 and all(n in (1, shape[offset + i]) for i, n in enumerate(old))
    if not fits or any(n < 0 for n in shape):
        raise ShapeError(op.name, "shape does not broadcast", got=f"{old} -> {shape}")
    return [shape]


def slice_(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The sizes asked for, each inside the axis."""
    start, size, step = attributes
    shape = specs[0].shape
    if not len(start) == len(size) == len(step) == len(shape):
        raise ShapeError(op.name, "one start, size, step per axis", got=f"rank {len(shape)}")
    for n, first, count, stride in zip(shape, start, size, step, strict=True):
        if count < 0 or stride == 0:
            raise ArgumentError(op.name, "malformed slice", got=f"size {count}, step {stride}")
        last = first + (count - 1) * stride
        if count and not (0 <= first < n and 0 <= last < n):
            raise ShapeError(op.name, "slice leaves the axis", got=f"{first}..{last} of {n}")
    return [size]


def slice_scatter(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The first operand's shape; the second fits the slice."""
    (region,) = slice_(op, specs[:1], attributes)
    if specs[1].shape != region:
        raise ShapeError(
            op.name, "values do not fit the slice", got=specs[1].shape, expected=region
        )
    return [specs[0].shape]


def add_slices(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape asked for, in which every part fits at its slice."""
    shape, start, step = attributes
    rank, parts = len(shape), specs[0]
    if not len(start) == len(step) == rank * len(parts):
        expected = f"{len(parts)} times {rank}"
        raise ShapeError(op.name, "one start and step per part and axis", expected=expected)
    whole = parts[0]._replace(shape=shape)
    for i, part in enumerate(parts):
        place = slice(i * rank, (i + 1) * rank)
        if len(part.shape) != rank:
            raise ShapeError(op.name, "a part of another rank", got=part.shape, expected=rank)
        slice_(op, [whole], (start[place], part.shape, step[place]))
    return [shape]


def prepare_concat(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axis from the front."""
    del backend
    items = specs[0]
    if not items:
        raise ArgumentError("concat", "no tensors", expected="at least one")
    return (normalize_axis(attributes[0], "concat", len(items[0].shape)),)


def concat(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Sizes add up along the axis and are equal elsewhere."""
    items, axis = specs[0], attributes[0]
    first = items[0].shape
    for item in items[1:]:
        if len(item.shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(item.shape, first, strict=True)) if i != axis
        ):
            raise ShapeError(
                op.name,
                "shapes differ beside the axis",
                got=" and ".join(str(m.shape) for m in items),
                expected=f"equal sizes but along axis {axis}",
            )
    total = sum(item.shape[axis] for item in items)
    return [(*first[:axis], total, *first[axis + 1 :])]


def prepare_pad(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Bring the value into the type of the tensor."""
    del backend
    padding, value = attributes
    return padding, number_for(value, specs[0].dtype, "pad")


def pad(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Each axis grows by its margins."""
    del op
    pairs = zip(specs[0].shape, attributes[0], strict=True)
    return [tuple(n + before + after for n, (before, after) in pairs)]
