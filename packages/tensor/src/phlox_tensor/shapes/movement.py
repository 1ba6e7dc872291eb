"""Shape rules of views and of data movement."""

from __future__ import annotations

from math import prod

from .._device.backend import Backend
from .._errors.classes import ArgumentError, ShapeError
from .._op.attributes import normalize_axis
from .._op.declaration import Attributes, Op, Shape, Specs
from .._values.dtype import number_for


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
    """The requested sizes, each within its axis."""
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
    """The requested shape, in which every part fits at its slice."""
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


def prepare_expand_dims(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axes from the front of the result."""
    del backend
    rank = len(specs[0].shape) + len(attributes[0])
    axes = sorted(normalize_axis(axis, "expand_dims", rank) for axis in attributes[0])
    if len({*axes}) < len(axes):
        raise ShapeError("expand_dims", "axis repeats", got=attributes[0], expected="each once")
    return (tuple(axes),)


def expand_dims(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """A size of 1 more for each axis."""
    del op
    shape = [*specs[0].shape]
    for axis in attributes[0]:  # they ascend
        shape.insert(axis, 1)
    return [tuple(shape)]


def prepare_squeeze(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Fill in the axes of size 1."""
    del backend
    shape, axes = specs[0].shape, attributes[0]
    if axes is None:
        return (tuple(i for i, n in enumerate(shape) if n == 1),)
    if any(shape[i] != 1 for i in axes):
        raise ShapeError("squeeze", "axis is not of size 1", got=f"{shape}, axis {axes}")
    return (axes,)


def squeeze(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The sizes that stay."""
    del op
    return [tuple(n for i, n in enumerate(specs[0].shape) if i not in attributes[0])]


def prepare_flatten(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axes from the front; a 0-d tensor counts as one of one element."""
    del backend
    rank = max(len(specs[0].shape), 1)
    names = ("start_axis", "end_axis")
    first, last = (
        normalize_axis(axis, "flatten", rank, name)
        for axis, name in zip(attributes, names, strict=True)
    )
    if last < first:
        raise ArgumentError("flatten", "end before start", got=attributes)
    return first, last


def flatten(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axes in between are one."""
    del op
    shape = specs[0].shape or (1,)
    first, last = attributes
    return [(*shape[:first], prod(shape[first : last + 1]), *shape[last + 1 :])]


def prepare_moveaxis(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axes from the front."""
    del backend
    rank = len(specs[0].shape)
    source, destination = (
        tuple(normalize_axis(axis, "moveaxis", rank, name) for axis in axes)
        for axes, name in zip(attributes, ("source", "destination"), strict=True)
    )
    if len(source) != len(destination):
        expected = "as many sources as destinations"
        raise ArgumentError("moveaxis", "axes do not pair up", got=attributes, expected=expected)
    if any(len({*axes}) < len(axes) for axes in (source, destination)):
        raise ShapeError("moveaxis", "axes repeat", got=attributes, expected="each axis once")
    return source, destination


def moved(rank: int, source: Shape, destination: Shape) -> Shape:
    """The order of axes in which those at ``source`` stand at ``destination``."""
    order = [i for i in range(rank) if i not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return tuple(order)


def moveaxis(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The sizes in their new order."""
    del op
    shape = specs[0].shape
    return [tuple(shape[i] for i in moved(len(shape), *attributes))]


def swapped(rank: int, axis1: int, axis2: int) -> Shape:
    """The order of axes in which two are swapped."""
    order = [*range(rank)]
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tuple(order)


def swapaxes(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Two sizes swapped."""
    del op
    shape = specs[0].shape
    return [tuple(shape[i] for i in swapped(len(shape), *attributes))]


def matrix_transpose(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The last two sizes swapped."""
    del attributes
    shape = specs[0].shape
    if len(shape) < 2:
        raise ShapeError(op.name, "not a matrix", got=shape, expected="(…, n, m)")
    return [(*shape[:-2], shape[-1], shape[-2])]


def prepare_stack(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Count the axis from the front of the result."""
    del backend
    return (normalize_axis(attributes[0], "stack", len(specs[0][0].shape) + 1),)


def stack(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """An axis more, as long as there are tensors."""
    items, axis = specs[0], attributes[0]
    shape = items[0].shape
    if any(item.shape != shape for item in items):
        got = " and ".join(str(item.shape) for item in items)
        raise ShapeError(op.name, "shapes differ", got=got, expected="one shape")
    return [(*shape[:axis], len(items), *shape[axis:])]


def prepare_split(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The size of each part."""
    del backend
    sections, axis = attributes
    n = specs[0].shape[axis]
    if isinstance(sections, int):
        if sections < 1 or n % sections:
            raise ShapeError("split", "not divisible", got=f"{n} into {sections}")
        return (n // sections,) * sections, axis
    if sum(sections) != n or any(size < 0 for size in sections):
        raise ShapeError("split", "sizes do not add up", got=sections, expected=n)
    return sections, axis


def split(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Each part has its size along the axis."""
    del op
    (sizes, axis), shape = attributes, specs[0].shape
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def prepare_chunk(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """There is a part, and none beyond the elements."""
    del backend
    chunks, axis = attributes
    if chunks < 1:
        raise ArgumentError("chunk", "no parts", got=chunks, expected="chunks >= 1")
    return min(chunks, max(specs[0].shape[axis], 1)), axis


def chunk_sizes(n: int, chunks: int) -> Shape:
    """Equal sizes but for the last."""
    size = -(-n // chunks) or 1
    return tuple(min(size, n - i) for i in range(0, n, size)) or (0,)


def chunk(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Equal sizes along the axis but for the last."""
    chunks, axis = attributes
    return split(op, specs, (chunk_sizes(specs[0].shape[axis], chunks), axis))


def unstack(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Without the axis, as many as it is long."""
    del op
    (axis,), shape = attributes, specs[0].shape
    return [(*shape[:axis], *shape[axis + 1 :])] * shape[axis]


def prepare_repeat(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """The count is not negative."""
    del specs, backend
    if attributes[0] < 0:
        expected = "repeats >= 0"
        raise ShapeError("repeat", "negative count", got=attributes[0], expected=expected)
    return attributes


def repeat(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The axis grows; without one there is one."""
    del op
    (repeats, axis), shape = attributes, specs[0].shape
    if axis is None:
        return [(prod(shape) * repeats,)]
    return [(*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])]


def prepare_roll(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """A shift for each axis; a single one is for all."""
    del specs, backend
    shift, axis = attributes
    if axis is None:
        if len(shift) != 1:
            expected = "one shift, or as many axes"
            raise ShapeError("roll", "shifts without axes", got=shift, expected=expected)
        return shift, None
    if len(shift) == 1:
        shift *= len(axis)
    if len(shift) != len(axis):
        got = f"{len(shift)} shifts, {len(axis)} axes"
        raise ShapeError("roll", "shifts and axes do not pair up", got=got, expected="as many")
    return shift, axis


def prepare_tile(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """A count for each axis of the result."""
    del backend
    counts = attributes[0]
    if any(n < 0 for n in counts):
        raise ShapeError("tile", "negative count", got=counts, expected="repetitions >= 0")
    return ((1,) * (len(specs[0].shape) - len(counts)) + counts,)


def tile(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Each axis grows by its count; axes are added in front."""
    del op
    (counts,), shape = attributes, specs[0].shape
    wide = (1,) * (len(counts) - len(shape)) + shape
    return [tuple(c * n for c, n in zip(counts, wide, strict=True))]
