"""``x[...]`` and ``x.at[...]``: from Python's indexing to the slice, take and scatter ops."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, final

import numpy as np

from ._errors import ArgumentError, IndexOutOfRangeError, KindError
from ._tensor import Tensor
from .ops import binary
from .ops import movement as move

IndexItem = int | slice | EllipsisType | None | Tensor[Any] | np.ndarray[Any, Any] | list[Any]
Index = IndexItem | tuple[IndexItem, ...]


@dataclass(slots=True)
class _Plan:
    """A parsed index: one slice per axis, then axes to drop, to add, and to look up."""

    start: list[int]
    size: list[int]
    step: list[int]
    drop: list[int]  # axes taken by an integer
    arrays: dict[int, Tensor[Any]]  # axis of x -> integer tensor
    layout: list[int | None]  # for each axis of the result before look-up: axis of x, or None


def getitem(x: Tensor[Any], index: Index) -> Tensor[Any]:
    """Return ``x[index]``, by NumPy's rules.

    Raises:
        IndexOutOfRangeError: when an integer points outside its axis.
        ArgumentError: when there are more indices than axes.
    """
    items = _expand_masks(x, index if isinstance(index, tuple) else (index,))
    plan = _parse(x, items)
    out = x
    if any(
        (s, n, t) != (0, m, 1)
        for s, n, t, m in zip(plan.start, plan.size, plan.step, x.shape, strict=True)
    ):
        out = move.slice_(x, tuple(plan.start), tuple(plan.size), tuple(plan.step))
    kept = [axis for axis in plan.layout if axis is not None]
    shape = tuple(1 if axis is None else plan.size[axis] for axis in plan.layout)
    if kept != list(range(len(plan.size))) or None in plan.layout:
        out = move.reshape(out, shape)
    return _look_up(out, plan) if plan.arrays else out


def _expand_masks(x: Tensor[Any], items: tuple[Any, ...]) -> list[Any]:
    """Turn masks into integer tensors, one per axis that the mask covers."""
    out: list[Any] = []
    for item in items:
        tensor = _as_index(item, x)
        if isinstance(tensor, Tensor) and tensor.dtype.kind == "Bool":
            axis = sum(_axes_used(i) for i in out)
            if any(i is Ellipsis for i in out):
                axis = x.ndim - sum(_axes_used(i) for i in items[len(out) :])
            _check_mask(tensor, x, axis)
            flat = tensor.flatten().nonzero()
            if tensor.ndim == 1:
                out.append(flat)
            else:
                out.extend(_unravel(flat, tensor.shape))
        else:
            out.append(tensor)
    return out


def _check_mask(mask: Tensor[Any], x: Tensor[Any], axis: int) -> None:
    covered = x.shape[axis : axis + mask.ndim]
    if not mask.ndim or mask.shape != covered:
        raise ArgumentError(
            "getitem", "mask does not fit", got=f"mask {mask.shape}", expected=f"{covered}"
        )


def _unravel(flat: Tensor[Any], shape: tuple[int, ...]) -> list[Tensor[Any]]:
    out = []
    for i, n in enumerate(shape):
        rest = 1
        for m in shape[i + 1 :]:
            rest *= m
        out.append(flat // rest % n)
    return out


def _as_index(item: Any, x: Tensor[Any]) -> Any:
    if isinstance(item, list | np.ndarray | bool | np.bool_):
        from ._transfer import upload  # noqa: PLC0415 - only for host indices

        array = np.asarray(item)
        if array.size == 0 and array.dtype == np.float64:
            array = array.astype(np.int64)
        item = upload(array, None, x.device, "getitem")
    if isinstance(item, Tensor):
        if item.dtype.kind == "Float":
            raise KindError(
                "getitem", "index is not Int or Bool", got=item.dtype, hint="i.astype(pt.int64)"
            )
        if item.ndim == 0 and item.dtype.kind == "Int":
            return item.reshape(())
    return item


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Tensor) and item.dtype.kind == "Bool":
        return item.ndim
    return 1


def _parse(x: Tensor[Any], items: list[Any]) -> _Plan:
    used = sum(_axes_used(item) for item in items)
    if used > x.ndim or sum(item is Ellipsis for item in items) > 1:
        raise ArgumentError(
            "getitem", "too many indices", got=used, expected=f"at most {x.ndim}, one '...'"
        )
    if not any(item is Ellipsis for item in items):
        items = [*items, Ellipsis]
    plan = _Plan([0] * x.ndim, list(x.shape), [1] * x.ndim, [], {}, [])
    axis = 0
    for item in items:
        if item is None:
            plan.layout.append(None)
        elif item is Ellipsis:
            for _ in range(x.ndim - used):
                plan.layout.append(axis)
                axis += 1
        else:
            _place(plan, item, axis, x.shape[axis])
            axis += 1
    return plan


def _place(plan: _Plan, item: Any, axis: int, n: int) -> None:
    if isinstance(item, slice):
        first, last, stride = item.indices(n)
        plan.start[axis], plan.step[axis] = first, stride
        plan.size[axis] = len(range(first, last, stride))
        if not plan.size[axis]:
            plan.start[axis] = 0
        plan.layout.append(axis)
    elif isinstance(item, Tensor):
        plan.arrays[axis] = item
        plan.layout.append(axis)
    else:
        try:
            i = operator.index(item)
        except TypeError:
            raise ArgumentError(
                "getitem",
                "not an index",
                got=type(item).__name__,
                expected="int, slice, None, ..., an Int or Bool tensor",
            ) from None
        if not -n <= i < n:
            raise IndexOutOfRangeError(
                "getitem", f"index out of range on axis {axis}", got=i, expected=f"{-n} <= i < {n}"
            )
        plan.start[axis], plan.size[axis] = i % n, 1
        plan.drop.append(axis)


def _look_up(x: Tensor[Any], plan: _Plan) -> Tensor[Any]:
    """Take along the axes with integer tensors; ``x`` has the axes of ``plan.layout``."""
    places = [i for i, axis in enumerate(plan.layout) if axis in plan.arrays]
    indices = [
        plan.arrays[axis] for axis in plan.layout if axis is not None and axis in plan.arrays
    ]
    if len(places) == 1:
        return move.take(x, indices[0], places[0])
    # Several tensors: bring their axes side by side, look up in the flattened ones.
    together = places == list(range(places[0], places[0] + len(places)))
    front = places[0] if together else 0
    others = [i for i in range(x.ndim) if i not in places]
    order = [*others[:front], *places, *others[front:]]
    sizes = [x.shape[i] for i in places]
    flat = _ravel(indices, sizes)
    moved = move.permute_dims(x, tuple(order))
    shape = (*moved.shape[:front], -1 if moved.size else 0, *moved.shape[front + len(places) :])
    if not moved.size:
        count = 1
        for n in sizes:
            count *= n
        shape = (*moved.shape[:front], count, *moved.shape[front + len(places) :])
    return move.take(move.reshape(moved, shape), flat, front)


def _ravel(indices: list[Tensor[Any]], sizes: list[int]) -> Tensor[Any]:
    """One index into the flattened axes; whatever is out of range stays out of range."""
    total = 1
    for n in sizes:
        total *= n
    flat: Tensor[Any] | None = None
    valid: Tensor[Any] | None = None
    for index, n in zip(indices, sizes, strict=True):
        inside = (index >= -n) & (index < n)
        counted = binary.where(index < 0, index + n, index)
        flat = counted if flat is None else flat * n + counted
        valid = inside if valid is None else valid & inside
    assert flat is not None
    assert valid is not None
    return binary.where(valid, flat, total)


@final
class At:
    """The update point ``x.at``; ``x.at[index]`` then takes ``set``, ``add`` and so on."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor[Any]) -> None:
        """Remember the tensor."""
        self._x = x

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self._x, index)


@final
class AtIndex:
    """A place in a tensor; each method returns a new tensor with that place updated.

    Where an index occurs twice, ``add``, ``multiply``, ``min`` and ``max`` apply each value;
    ``set`` keeps one of them.
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor[Any], index: Index) -> None:
        """Remember tensor and index."""
        self._x = x
        self._index = index

    def get(self) -> Tensor[Any]:
        """Return ``x[index]``."""
        return getitem(self._x, self._index)

    def set(self, values: Any) -> Tensor[Any]:
        """Return x with the place set to ``values``, which broadcast to it."""
        return self._update(values, "set")

    def add(self, values: Any) -> Tensor[Any]:
        """Return x with ``values`` added at the place."""
        return self._update(values, "add")

    def subtract(self, values: Any) -> Tensor[Any]:
        """Return x with ``values`` subtracted at the place."""
        return self._update(-self._like(values), "add")

    def multiply(self, values: Any) -> Tensor[Any]:
        """Return x with the place multiplied by ``values``."""
        return self._update(values, "mul")

    def min(self, values: Any) -> Tensor[Any]:
        """Return x with the smaller of place and ``values``."""
        return self._update(values, "min")

    def max(self, values: Any) -> Tensor[Any]:
        """Return x with the larger of place and ``values``."""
        return self._update(values, "max")

    def _like(self, values: Any) -> Tensor[Any]:
        if isinstance(values, Tensor):
            return values
        from ._transfer import upload  # noqa: PLC0415 - only for host values

        return upload(values, self._x.dtype, self._x.device, "at")

    def _update(self, values: Any, update: str) -> Tensor[Any]:
        from ._creation import arange  # noqa: PLC0415 - imports indexing through the package

        x = self._x
        value = self._like(values)
        if value.dtype is not x.dtype and value.dtype.kind == x.dtype.kind:
            value = value.astype(x.dtype)
        items = self._index if isinstance(self._index, tuple) else (self._index,)
        basic = all(isinstance(i, int | slice | EllipsisType | None) for i in items)
        if basic and update == "set" and not any(isinstance(i, bool) for i in items):
            plan = _parse(x, list(items))
            shape = tuple(1 if a is None else plan.size[a] for a in plan.layout)
            region = move.reshape(move.broadcast_to(value, shape), tuple(plan.size))
            step = (tuple(plan.start), tuple(plan.size), tuple(plan.step))
            return move.slice_scatter(x, region, *step)
        base = x.device
        places = getitem(arange(x.size, device=base).reshape(x.shape), self._index)
        flat = move.reshape(move.broadcast_to(value, places.shape), (places.size,))
        indices = move.reshape(places, (places.size,))
        out = move.scatter(move.reshape(x, (x.size,)), indices, flat, 0, update)
        return move.reshape(out, x.shape)
