"""``x[...]``: from Python's indexing to the slice, take and gather ops.

What an index asks for follows from its form, from shapes and from element types. It is found out
once and kept in ``passed`` of the device, as for other calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import EllipsisType, NoneType
from typing import Any, Final

import numpy as np

from .._call.dispatch import wrap
from .._call.operands import check_shape, device_of, lift
from .._data.transfer import from_python, upload
from .._device.backend import Backend
from .._errors.called import rename
from .._errors.classes import IndexOutOfRangeError, KindError, Rejected, ShapeError
from .._op.attributes import NORMALIZERS
from .._values.kinds import Int
from .._values.tensor import Tensor, new
from ..ops.gathering import take_along
from ..shapes._broadcast import broadcast_shapes
from ..shapes.indexing import region

IndexItem = int | slice | EllipsisType | None | Tensor[Any] | np.ndarray[Any, Any] | list[Any]
Index = IndexItem | tuple[IndexItem, ...]
Steps = Callable[..., Any]
_BOUNDS: Final = frozenset({int, NoneType})
_UNSIGNED: Final = frozenset({"uint32", "uint64"})


def getitem(x: Tensor[Any], index: Index) -> Tensor[Any]:
    """Return ``x[index]``, by NumPy's rules.

    Raises:
        ArgumentError: when there are more indices than axes, or something that is no index.
    """
    device = x.device
    try:  # the short path; whatever is no basic index is rejected
        return wrap(device.checking.getitem(x.primitive, index), device)
    except Rejected:
        pass
    items = index if isinstance(index, tuple) else (index,)
    key, tensors = _look(device, x.primitive, items)
    if key is None:
        device, x, items = _prepared(x, items)
        key, tensors = _look(device, x.primitive, items)
    passed = device.passed.get(key)
    try:
        if passed is None:
            steps = _steps(x, items)
            # A number beside tensors that is no small one tends to be another at each call.
            if key is not None and not (tensors and any(map(_moves, items))):
                device.keep(key, steps, (), several=False)
        else:
            steps = passed[0]
        out = steps(x.primitive, *tensors)
    except IndexOutOfRangeError as error:
        rename(error, "getitem")
        raise
    made: Tensor[Any] = new()  # as wrap() does, without its call
    made.primitive = out
    made.device = device
    return made


def _moves(item: Any) -> bool:
    return type(item) is int and not -4 < item < 4


def _look(device: Backend, primitive: Any, items: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """What decides what an index asks for, and the primitives of the tensors in it.

    None for the first where an item is of a type that no key holds.
    """
    # Names of element types are hashed without Python, as element types are not.
    key: list[Any] = ["getitem", device.shape_of(primitive), device.dtype_of(primitive).name]
    tensors: list[Any] = []
    whole = True
    for item in items:
        kind = type(item)
        if kind is Tensor:
            whole = whole and item.device is device
            tensors.append(item.primitive)
            if whole:
                key += device.shape_of(item.primitive), device.dtype_of(item.primitive).name
        elif kind is slice:
            bounds = (item.start, item.stop, item.step)
            whole = whole and _BOUNDS.issuperset(map(type, bounds))
            key.append((slice, *bounds))
        else:
            whole = whole and (kind is int or item is None or item is Ellipsis)
            key.append(item)
    return tuple(key) if whole else None, tensors


def _prepared(x: Tensor[Any], items: tuple[Any, ...]) -> tuple[Backend, Tensor[Any], Any]:
    """The tensor and its index on one device; lists and arrays of the index become tensors."""
    found = [as_index(item, x.device.base) for item in items]
    device = device_of("getitem", [x, *(i for i in found if isinstance(i, Tensor))])
    ready = [lift(item, device) if isinstance(item, Tensor) else item for item in found]
    return device, lift(x, device), tuple(ready)


def as_index(item: Any, device: Backend) -> Any:
    """The part of an index; a list, an array or a truth as a tensor on the device."""
    if not isinstance(item, list | np.ndarray | bool | np.bool_):
        return item
    array = from_python(item, "getitem")
    if array.size == 0 and array.dtype == np.float64:
        array = array.astype(np.int64)
    return upload(array, None, device, "getitem")


def _steps(x: Tensor[Any], items: Sequence[Any]) -> Steps:
    """What an index asks for, as a function of the primitives of tensor and index."""
    _require_indices(items)
    shape = _with_masks_as_one_axis(x.shape, items)
    basic = [slice(None) if isinstance(item, Tensor) else item for item in items]
    found = region(shape, NORMALIZERS["Index"](tuple(basic), "index", "getitem", len(shape)))
    check_shape(found.shape, x.device, "getitem")
    ops = x.device.ops
    views: list[tuple[Any, tuple[Any, ...]]] = []
    if shape != x.shape:
        views.append((ops["reshape"], (shape,)))
    if (found.start, found.size, found.step) != ([0] * len(shape), [*shape], [1] * len(shape)):
        views.append((ops["slice"], (tuple(found.start), tuple(found.size), tuple(found.step))))
    if found.layout != [*range(len(shape))]:
        views.append((ops["reshape"], (found.shape,)))
    looked_up = _lookup(x.device, found.shape, _layout(len(shape), items), _adjacent(items), views)

    if not views:
        return looked_up

    def run(p: Any, *tensors: Any) -> Any:
        for view, attributes in views:
            p = view(p, *attributes)
        return looked_up(p, *tensors)

    return run


def _require_indices(items: Sequence[Any]) -> None:
    for item in items:
        if isinstance(item, Tensor) and item.dtype.kind == "Float":
            what, hint = "index is not Int or Bool", 'i.astype("int64")'
            raise KindError("getitem", what, got=item.dtype, hint=hint)


def _lookup(
    device: Backend,
    shape: tuple[int, ...],
    layout: list[Tensor[Any] | None],
    adjacent: bool,
    views: list[Any],
) -> Steps:
    """What takes along axes of a shape by the tensors of a layout; it adds a view that it needs.

    The axes of the result that the tensors make stand where the first of them stood, or in front
    when anything stands between the tensors and integers of the index.
    """
    ops = device.ops
    places = [i for i, item in enumerate(layout) if item is not None]
    front = places[0] if places and adjacent else 0
    others = [i for i in range(len(shape)) if i not in places]
    order = (*others[:front], *places, *others[front:])
    if order != tuple(range(len(shape))):
        views.append((ops["permute_dims"], (order,)))
    if not places:
        return lambda p: p
    # For each mask the shape in which its places are looked for.
    found = [item for item in layout if item is not None]
    lines = [(item.size,) if _is_mask(item) else None for item in found]
    rank = max(1 if _is_mask(item) else item.ndim for item in found)
    check_shape((1,) * (len(others) + rank), device, "getitem")
    sizes = [shape[i] for i in places]
    reshape, nonzero, take = ops["reshape"], ops["nonzero"], ops["take"]
    if len(lines) == 1:
        line = lines[0]
        if line is not None:
            return lambda p, mask: take(p, nonzero(reshape(mask, line)), front)
        return lambda p, indices: take(p, indices, front)

    def run(p: Any, *indices: Any) -> Any:
        if any(lines):
            pairs = zip(indices, lines, strict=True)
            indices = tuple([nonzero(reshape(i, line)) if line else i for i, line in pairs])
        if front:  # in one block, which a flat index reads without a copy of it
            given: list[Tensor[Int]] = [Tensor(i, device) for i in indices]
            return take_along(Tensor(p, device), given, front).primitive
        return ops.gather_nd(p, _rows(device, indices, sizes))

    return run


def _rows(device: Backend, indices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Indices side by side, as rows of places into axes of these sizes."""
    ops, wide = device.ops, device.default_int
    shapes = [*map(device.shape_of, indices)]
    shape = shapes[0]
    if shapes.count(shape) < len(shapes):
        shape = broadcast_shapes(shapes, "getitem")
        indices = [ops.broadcast_to(i, shape) for i in indices]
    columns = []
    for i, n in zip(indices, sizes, strict=True):
        dtype, column = device.dtype_of(i), i
        if dtype.name in _UNSIGNED and dtype.itemsize >= wide.itemsize:  # a cast would wrap
            column = Tensor(i, device).minimum(n).primitive
        column = column if dtype is wide else ops.cast(column, wide)
        columns.append(ops.reshape(column, (*shape, 1)))
    return ops.concat(tuple(columns), len(shape))


def _layout(rank: int, items: Sequence[Any]) -> list[Tensor[Any] | None]:
    """For each axis that a basic index leaves, the tensor to look up along it."""
    out: list[Tensor[Any] | None] = []
    used = sum(item is not None and item is not Ellipsis for item in items)
    for item in items:
        if item is Ellipsis:
            out.extend([None] * (rank - used))
        elif item is None or isinstance(item, slice | Tensor):
            out.append(item if isinstance(item, Tensor) else None)
    return out


def _is_mask(item: Any) -> bool:
    return isinstance(item, Tensor) and item.dtype.kind == "Bool"


def _with_masks_as_one_axis(shape: tuple[int, ...], items: Sequence[Any]) -> tuple[int, ...]:
    """The shape in which all axes that a mask covers are one.

    A 0-d mask covers no axis: it gets a new one of size 1, and looks that up or nothing.
    """
    if not any(map(_is_mask, items)):
        return shape
    axis, out = 0, []
    left = len(shape) - sum(_axes_used(item) for item in items)
    for item in items:
        count = max(left, 0) if item is Ellipsis else _axes_used(item)
        covered = shape[axis : axis + count]
        if _is_mask(item):
            if item.shape != covered:
                got = f"mask {item.shape}"
                raise ShapeError("getitem", "mask does not fit", got=got, expected=covered)
            out.append(prod(covered))
        else:
            out.extend(covered)
        axis += count
    return (*out, *shape[axis:])


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if _is_mask(item) else 1


def _adjacent(items: Sequence[Any]) -> bool:
    """Whether nothing stands between the integers and tensors of an index."""
    places = [
        i
        for i, item in enumerate(items)
        if item is not None and item is not Ellipsis and not isinstance(item, slice)
    ]
    return not places or places == list(range(places[0], places[-1] + 1))
