"""Shape rules of indexing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._errors.classes import ArgumentError, IndexOutOfRangeError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs
from ._broadcast import broadcast_shapes


@dataclass(slots=True)
class Region:
    """A basic index, read: one slice per axis, and where the axes of the result come from.

    Attributes:
        start, size, step: of the slice along each axis.
        layout: for each axis of the result the axis of the operand, or None for a new one.
    """

    start: list[int]
    size: list[int]
    step: list[int]
    layout: list[int | None]

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return tuple([1 if axis is None else self.size[axis] for axis in self.layout])


def region(shape: Shape, index: Any) -> Region:
    """Read an index of integers, slices, None and at most one ``...``.

    Raises:
        IndexOutOfRangeError: when an integer points outside its axis.
        ArgumentError: when there are more indices than axes, or a slice is malformed.
    """
    items = index if isinstance(index, tuple) else (index,)
    rank, used = len(shape), sum(item is not None and item is not Ellipsis for item in items)
    ellipses = sum(item is Ellipsis for item in items)
    if used > rank or ellipses > 1:
        got = used if used > rank else f"{ellipses} times '...'"
        raise ArgumentError(
            "getitem", "too many indices", got=got, expected=f"at most {rank}, one '...'"
        )
    out = Region([0] * rank, [*shape], [1] * rank, [])
    axis = 0
    for item in items:
        if item is None:
            out.layout.append(None)
        elif item is Ellipsis:
            out.layout.extend(range(axis, axis + rank - used))
            axis += rank - used
        else:
            _narrow(out, axis, item)
            axis += 1
    out.layout.extend(range(axis, rank))
    return out


def _narrow(out: Region, axis: int, item: Any) -> None:
    """Take an element or a slice of an axis."""
    n = out.size[axis]
    if not isinstance(item, slice):
        if not -n <= item < n:
            raise IndexOutOfRangeError(
                "getitem",
                f"index out of range on axis {axis}",
                got=item,
                expected=f"{-n} <= i < {n}",
            )
        out.start[axis], out.size[axis] = item % n, 1
        return
    try:
        first, last, stride = item.indices(n)
    except (TypeError, ValueError) as error:  # a bound that is no integer, a step of 0
        raise ArgumentError("getitem", str(error), got=item) from None
    out.size[axis] = len(range(first, last, stride))
    out.start[axis], out.step[axis] = first if out.size[axis] else 0, stride
    out.layout.append(axis)


def getitem(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """What the index leaves of the axes, and the new ones."""
    del op
    return [region(specs[0].shape, attributes[0]).shape]


UPDATES = ("add", "max", "min", "mul", "set")
# Words of other libraries, and of ``x.at[...]``.
_SYNONYMS = {"amax": "max", "amin": "min", "maximum": "max", "minimum": "min", "multiply": "mul",
             "prod": "mul", "sum": "add"}  # fmt: skip


def known_update(op: Op, update: str) -> None:
    """Refuse what is no update, with our word for it."""
    if update not in UPDATES:
        ours, expected = _SYNONYMS.get(update), ", ".join(UPDATES)
        hint = ours and f'update="{ours}"'
        raise ArgumentError(op.name, "unknown update", got=update, expected=expected, hint=hint)


def nonzero(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell; the mask is 1-d."""
    del attributes
    if len(specs[0].shape) != 1:
        raise ShapeError(
            op.name, "mask is not 1-d", got=specs[0].shape, expected="(n,)", hint="mask.flatten()"
        )
    return [(-1,)]


def masked_select(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size that only the values tell; the mask broadcasts to x."""
    del attributes
    x, mask = specs[0].shape, specs[1].shape
    if broadcast_shapes((x, mask), op.name) != x:
        raise ShapeError(op.name, "mask does not broadcast to x", got=mask, expected=x)
    return [(-1,)]


def take(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axis is replaced by the shape of the indices."""
    del op
    shape, indices, axis = specs[0].shape, specs[1].shape, attributes[0]
    return [(*shape[:axis], *indices, *shape[axis + 1 :])]


def take_along_axis(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of the indices, which agree with x on all other axes."""
    _along(op, specs, attributes[0])
    return [specs[1].shape]


def _along(op: Op, specs: Specs, axis: int) -> None:
    shape, indices = specs[0].shape, specs[1].shape
    if len(shape) != len(indices) or any(
        a != b for i, (a, b) in enumerate(zip(shape, indices, strict=True)) if i != axis
    ):
        raise ShapeError(
            op.name,
            "indices do not line up",
            got=f"x {shape}, indices {indices}",
            expected=f"equal sizes but along axis {axis}",
        )


def scatter(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of x; values have the shape of the indices."""
    axis, update = attributes
    _along(op, specs, axis)
    known_update(op, update)
    if specs[2].shape != specs[1].shape:
        raise ShapeError(
            op.name,
            "values and indices differ",
            got=f"{specs[2].shape} and {specs[1].shape}",
            expected="one shape",
        )
    return [specs[0].shape]


def index_add(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape of x; values replace the axis by the count of indices."""
    axis = attributes[0]
    shape, indices, values = (m.shape for m in specs)
    expected = (*shape[:axis], *indices, *shape[axis + 1 :])
    if len(indices) != 1 or values != expected:
        raise ShapeError(
            op.name,
            "values do not fit",
            got=f"indices {indices}, values {values}",
            expected=f"1-d indices, values {expected}",
        )
    return [shape]
