"""``x[...]`` and ``x.at[...]``: from Python's indexing to the slice, take and scatter ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from types import EllipsisType
from typing import Any, Final, Never, NoReturn, final

import numpy as np

from ._attributes import NORMALIZERS
from ._call import wrap
from ._called import OF_ARGUMENTS, rename
from ._creation import arange
from ._dtype import promote
from ._errors import (
    DTypeError,
    IndexOutOfRangeError,
    KindError,
    Rejected,
    ShapeError,
    UnknownNameError,
)
from ._stacking import holds_tensor, stacked
from ._standard import unraveled
from ._tensor import Tensor
from ._transfer import from_python, upload
from .ops import binary
from .ops import indexing as select
from .ops import movement as move
from .shapes._broadcast import broadcast_shapes
from .shapes.indexing import region

IndexItem = int | slice | EllipsisType | None | Tensor[Any] | np.ndarray[Any, Any] | list[Any]
Index = IndexItem | tuple[IndexItem, ...]
_RANKS: Final = {"Bool": 0, "Int": 1, "Float": 2}


def getitem(x: Tensor[Any], index: Index) -> Tensor[Any]:
    """Return ``x[index]``, by NumPy's rules.

    Raises:
        IndexOutOfRangeError: when an integer points outside its axis.
        ArgumentError: when there are more indices than axes, or something that is no index.
    """
    device = x.device
    try:  # the short path; whatever is no basic index is rejected
        return wrap(device.checking.getitem(x.primitive, index), device)
    except Rejected:
        pass
    given = [_as_index(item, x) for item in (index if isinstance(index, tuple) else (index,))]
    x, items = _expand_masks(x, given)
    if not any(isinstance(item, Tensor) for item in items):
        return _basic(x, items)
    basic = tuple([slice(None) if isinstance(item, Tensor) else item for item in items])
    try:
        return _look_up(_basic(x, basic), items, _layout(x.ndim, items))
    except IndexOutOfRangeError as error:
        rename(error, "getitem")
        raise


def _basic(x: Tensor[Any], items: Sequence[Any]) -> Tensor[Any]:
    """A slice and a reshape, whose calls pass sooner than that of the whole index."""
    return move.by_slice(x, NORMALIZERS["Index"](tuple(items), "index", "getitem", x.ndim))


def _layout(rank: int, items: list[Any]) -> list[Tensor[Any] | None]:
    """For each axis that a basic index leaves, the tensor to look up along it."""
    out: list[Tensor[Any] | None] = []
    used = sum(_axes_used(item) for item in items)
    for item in items:
        if item is Ellipsis:
            out.extend([None] * (rank - used))
        elif item is None or isinstance(item, slice | Tensor):
            out.append(item if isinstance(item, Tensor) else None)
    return out


def _expand_masks(x: Tensor[Any], items: list[Any]) -> tuple[Tensor[Any], list[Any]]:
    """Turn masks into integer tensors, one per axis that the mask covers.

    A 0-d mask covers no axis of x: it gets a new one of size 1, and looks that up or nothing.
    """
    out: list[Any] = []
    for place, item in enumerate(items):
        if not _is_mask(item):
            out.append(item)
            continue
        axis = sum(_axes_used(i) for i in out)
        if any(i is Ellipsis for i in out):
            axis = x.ndim - sum(_axes_used(i) for i in items[place:])
        if not item.ndim:
            x = move.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))
        else:
            _check_mask(item, x, axis)
        flat = select.nonzero(item.flatten())
        out.extend(unraveled(flat, item.shape) if item.ndim > 1 else [flat])
    return x, out


def _is_mask(item: Any) -> bool:
    return isinstance(item, Tensor) and item.dtype.kind == "Bool"


def _adjacent(items: list[Any]) -> bool:
    """Whether nothing stands between the integers and tensors of an index."""
    places = [
        i
        for i, item in enumerate(items)
        if item is not None and item is not Ellipsis and not isinstance(item, slice)
    ]
    return places == list(range(places[0], places[-1] + 1))


def _check_mask(mask: Tensor[Any], x: Tensor[Any], axis: int) -> None:
    covered = x.shape[axis : axis + mask.ndim]
    if mask.shape != covered:
        raise ShapeError("getitem", "mask does not fit", got=f"mask {mask.shape}", expected=covered)


def _as_index(item: Any, x: Tensor[Any]) -> Any:
    if isinstance(item, list | np.ndarray | bool | np.bool_):
        array = from_python(item, "getitem")
        if array.size == 0 and array.dtype == np.float64:
            array = array.astype(np.int64)
        item = upload(array, None, x.device, "getitem")
    if isinstance(item, Tensor) and item.dtype.kind == "Float":
        raise KindError(
            "getitem", "index is not Int or Bool", got=item.dtype, hint='i.astype("int64")'
        )
    return item


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if _is_mask(item) else 1


def _look_up(x: Tensor[Any], items: list[Any], layout: list[Tensor[Any] | None]) -> Tensor[Any]:
    """Take along the first axes of x with the tensors of a layout.

    The axes of the result that the tensors make stand where the first of them stood, or in front
    when anything stands between the tensors and integers of the index.
    """
    places = [i for i, item in enumerate(layout) if item is not None]
    indices = [item for item in layout if item is not None]
    front = places[0] if _adjacent(items) else 0
    if places == [front]:
        return select.take(x, indices[0], front)
    # Bring the axes side by side, look up in the flattened ones.
    others = [i for i in range(x.ndim) if i not in places]
    order = [*others[:front], *places, *others[front:]]
    moved = move.permute_dims(x, tuple(order))
    sizes = [x.shape[i] for i in places]
    if len(places) == 1:
        return select.take(moved, indices[0], front)
    shape = (*moved.shape[:front], prod(sizes), *moved.shape[front + len(places) :])
    try:
        return select.take(move.reshape(moved, shape), _ravel(indices, sizes), front)
    except IndexOutOfRangeError:
        _blame(indices, sizes)
        raise


def _ravel(indices: list[Tensor[Any]], sizes: list[int]) -> Tensor[Any]:
    """One index into the flattened axes; whatever is out of range stays out of range."""
    broadcast_shapes([i.shape for i in indices], "getitem")
    flat: Tensor[Any] | None = None
    valid: Tensor[Any] | None = None
    for narrow, n in zip(indices, sizes, strict=True):
        index = narrow.astype(narrow.device.default_int)  # int8 does not hold every n
        inside = (narrow >= -n) & (narrow < n)
        counted = binary.where(index < 0, index + n, index)
        flat = counted if flat is None else flat * n + counted
        valid = inside if valid is None else valid & inside
    assert flat is not None
    assert valid is not None
    return binary.where(valid, flat, prod(sizes))


def _blame(indices: list[Tensor[Any]], sizes: list[int]) -> None:
    """Raise IndexOutOfRangeError for the first index that leaves its own axis."""
    for index, n in zip(indices, sizes, strict=True):
        values = index.numpy()
        wrong = values[(values < -n) | (values >= n)]
        if wrong.size:
            raise IndexOutOfRangeError(
                "getitem", "index out of range", got=int(wrong[0]), expected=f"{-n} <= i < {n}"
            ) from None


@final
class At:
    """The update point ``x.at``; ``x.at[index]`` then takes ``set``, ``add`` and so on."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor[Any]) -> None:
        """Remember the tensor."""
        self._x = x

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self._x, index)

    def __setitem__(self, index: Never, value: Never) -> Never:
        raise TypeError("[at] tensors never change\nhint: x = x.at[index].set(value)")


def _put(x: Tensor[Any], value: Tensor[Any], line: Tensor[Any]) -> Tensor[Any]:
    del x, line
    return value


def _scaled(x: Tensor[Any], value: Tensor[Any], line: Tensor[Any]) -> Tensor[Any]:
    # By 1 elsewhere, so that no infinity meets a cotangent of 0.
    return x * binary.where(line, value, 1)


# What an update makes of a part and a value.
_MADE: Final[dict[str, Callable[[Tensor[Any], Tensor[Any]], Tensor[Any]]]] = {
    "add": lambda part, value: part + value,
    "mul": lambda part, value: part * value,
    "set": lambda _part, value: value,
}
# Updates of whole rows that need no place for each element.
_BY_ROWS: Final[dict[str, Callable[..., Tensor[Any]]]] = {"add": select.index_add}
# What an update makes of a tensor and a value, where a mask says so.
_CHANGES: Final = {"add": lambda x, value, line: x + value, "mul": _scaled, "set": _put}
# What others call updates.
_UPDATES: Final = {
    "amax": "max",
    "amin": "min",
    "divide": "multiply(1 / values)",
    "maximum": "max",
    "minimum": "min",
    "mul": "multiply",
    "sub": "subtract",
}


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

    def __getattr__(self, name: str) -> NoReturn:
        ours = _UPDATES.get(name)
        called = ours if ours and ours.endswith(")") else f"{ours}(values)"
        hint = f"x.at[index].{called}" if ours else "x.at[index].set(f(x[index]))"
        raise UnknownNameError("at", f"no update {name}", hint=hint)

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
        """The values in the type of the tensor; those of Python are weak."""
        x = self._x
        if holds_tensor(values):
            values = stacked(values, "at")
        own = isinstance(values, Tensor | np.ndarray)
        found = values if isinstance(values, Tensor) else upload(values, None, x.device, "at")
        a, b = x.dtype, found.dtype
        weak = not own and (_RANKS[b.kind] < _RANKS[a.kind] or not found.size)
        if a.kind != b.kind and not weak:
            wider = _RANKS[b.kind] > _RANKS[a.kind]  # the hint loses nothing
            raise KindError(
                "at",
                "values of another kind",
                got=f"{b.kind} ({b})",
                expected=f"{a.kind} ({a})",
                hint=f'x.astype("{b}")' if wider else f'values.astype("{a}")',
            )
        if not own:
            return upload(values, a, x.device, "at")
        if a.kind == "Int" and promote(a, b, "at") is not a:
            raise DTypeError(
                "at", "values may not fit", got=b, expected=a, hint=f'values.astype("{a}")'
            )
        return found.astype(a)

    def _masked(self, value: Tensor[Any], update: str) -> Tensor[Any] | None:
        """The update by a mask and a value for each place in it: no shape depends on the mask.

        None for another index, and where values are counted along the mask.
        """
        x, mask = self._x, self._index
        if not isinstance(mask, Tensor) or mask.dtype.kind != "Bool":
            return None
        rest = x.shape[mask.ndim :]
        counted = value.ndim > len(rest) or mask.shape != x.shape[: mask.ndim]
        change = _CHANGES.get(update)
        if counted or change is None or (x.dtype.kind == "Bool" and change is not _put):
            return None
        line = move.reshape(mask, (*mask.shape, *(1 for _ in rest)))
        return binary.where(line, change(x, move.broadcast_to(value, rest), line), x)

    def _regional(self, value: Tensor[Any], update: str) -> Tensor[Any] | None:
        """The update of what an index of integers and slices picks; None for another index."""
        x = self._x
        items = self._index if isinstance(self._index, tuple) else (self._index,)
        basic = all(
            isinstance(i, int | slice | EllipsisType | None) and not isinstance(i, bool)
            for i in items
        )
        make = _MADE.get(update)
        if not basic or make is None or (x.dtype.kind == "Bool" and update != "set"):
            return None
        found = region(x.shape, items)
        place = (tuple(found.start), tuple(found.size), tuple(found.step))
        part = move.reshape(move.broadcast_to(value, found.shape), place[1])
        if update != "set":
            part = make(move.slice_(x, *place), part)
        return move.slice_scatter(x, part, *place)

    def _by_rows(self, value: Tensor[Any], update: str) -> Tensor[Any] | None:
        """The update at a tensor of places along the first axis; None for another index."""
        x, index = self._x, self._index
        if isinstance(index, list | np.ndarray):
            index = _as_index(index, x)
        if not x.ndim or not isinstance(index, Tensor) or index.dtype.kind != "Int":
            return None
        rest = x.shape[1:]
        rows = move.broadcast_to(value, (*index.shape, *rest))
        rows = move.reshape(rows, (index.size, *rest))
        places = move.reshape(index, (index.size,))
        change = _BY_ROWS.get(update)
        if change is not None and x.dtype.kind != "Bool":
            return change(x, places, rows, 0)
        line = move.reshape(places, (index.size, *(1 for _ in rest)))
        return select.scatter(x, move.broadcast_to(line, rows.shape), rows, 0, update)

    def _update(self, values: Any, update: str) -> Tensor[Any]:
        try:
            return self._updated(values, update)
        except OF_ARGUMENTS as error:
            rename(error, "at")
            raise

    def _updated(self, values: Any, update: str) -> Tensor[Any]:
        x = self._x
        value = self._like(values)
        for rule in (self._regional, self._masked, self._by_rows):
            found = rule(value, update)
            if found is not None:
                return found
        places = getitem(arange(x.size, device=x.device).reshape(x.shape), self._index)
        flat = move.reshape(move.broadcast_to(value, places.shape), (places.size,))
        indices = move.reshape(places, (places.size,))
        out = select.scatter(move.reshape(x, (x.size,)), indices, flat, 0, update)
        return move.reshape(out, x.shape)
