"""``x.at[...]``: from Python's indexing to the slice and scatter ops."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import EllipsisType
from typing import Any, Final, Never, NoReturn, final

import numpy as np

from .._data.creation import arange
from .._data.stacking import holds_tensor, stacked
from .._data.transfer import upload
from .._errors.called import OF_ARGUMENTS, rename
from .._errors.classes import DTypeError, KindError, UnknownNameError
from .._values.dtype import promote
from .._values.tensor import Tensor
from ..arguments import is_thrown_away, warn_thrown_away
from ..ops import binary
from ..ops import indexing as select
from ..ops import movement as move
from ..shapes.indexing import region
from .getitem import Index, as_index, getitem

_RANKS: Final = {"Bool": 0, "Int": 1, "Float": 2}


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
            index = as_index(index, x.device)
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
            made = self._updated(values, update)
        except OF_ARGUMENTS as error:
            rename(error, "at")
            raise
        if is_thrown_away(sys._getframe(1)):
            warn_thrown_away("at", "x = x.at[index].set(values)", 4, of="tensor")
        return made

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
