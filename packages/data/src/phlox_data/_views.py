"""Datasets seen otherwise: mapped, selected, joined, in windows, kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from itertools import accumulate, chain, pairwise
from typing import Any, final

import numpy as np

from phlox_tensor import ArgumentError, tree

from ._batch import stack
from ._items import Draw, Indices, Items, generator, part_of


@final
class Foreign(Items):
    """Any sequence."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self.fetches = callable(getattr(data, "__getitems__", None))

    def __len__(self) -> int:
        return len(self._data)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        return self._data[index]

    def fetch(self, indices: Indices, keys: Indices, draw: Draw) -> list[Any]:
        del keys, draw
        found = [*self._data.__getitems__(indices.tolist())]
        if len(found) != len(indices):
            what = f"{type(self._data).__name__}.__getitems__ gave another number of items"
            raise ArgumentError("DataLoader", what, got=len(found), expected=len(indices))
        return found


@final
class Mapped(Items):
    """Items through a function, which may ask for random numbers of its own."""

    def __init__(self, base: Items, function: Callable[..., Any]) -> None:
        self._base, self._function = base, function
        self._random = wants_random(function)
        self._stage = base.draws
        self.draws, self.fetches = base.draws + self._random, base.fetches

    def __len__(self) -> int:
        return len(self._base)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        return self._mapped(self._base.get(index, key, draw), key, draw)

    def fetch(self, indices: Indices, keys: Indices, draw: Draw) -> list[Any]:
        found = zip(self._base.fetch(indices, keys, draw), keys.tolist(), strict=True)
        return [self._mapped(item, key, draw) for item, key in found]

    def _mapped(self, item: Any, key: int, draw: Draw) -> Any:
        if not self._random:
            return self._function(item)
        return self._function(item, generator(draw, key, self._stage))


def wants_random(function: Callable[..., Any]) -> bool:
    """Whether a function takes random numbers behind what it changes."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a function in C that does not say what it takes
        return False
    placed = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    first = [each for each in parameters if each.kind in placed][:2]
    return len(first) == 2 and (first[1].name == "rng" or first[1].default is Parameter.empty)


@final
class Selected(Items):
    """Some items, in any order, also many times."""

    def __init__(self, base: Items, indices: Indices) -> None:
        self._base, self._indices = base, indices
        self.draws, self.gathers, self.fetches = base.draws, base.gathers, base.fetches

    def __len__(self) -> int:
        return len(self._indices)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        return self._base.get(int(self._indices[index]), key, draw)

    def fetch(self, indices: Indices, keys: Indices, draw: Draw) -> list[Any]:
        return self._base.fetch(self._indices[indices], keys, draw)

    def gather(self, indices: Indices) -> Any:
        return self._base.gather(self._indices[indices])


@final
class Joined(Items):
    """The items of several datasets, one after the other."""

    def __init__(self, parts: Sequence[Items]) -> None:
        self._parts = tuple(parts)
        self._ends = [*accumulate(len(part) for part in parts)]
        self.draws = max(part.draws for part in parts)
        self.gathers = all(part.gathers for part in parts)

    def __len__(self) -> int:
        return self._ends[-1]

    def get(self, index: int, key: int, draw: Draw) -> Any:
        part, row = part_of(self._ends, index)
        return self._parts[part].get(row, key, draw)

    def gather(self, indices: Indices) -> Any:
        parts = np.searchsorted(self._ends, indices, "right")
        order = np.argsort(parts, kind="stable")
        begins = np.flatnonzero(np.diff(parts[order], prepend=-1)).tolist()
        batches = []
        for first, last in pairwise([*begins, len(order)]):
            part = int(parts[order[first]])
            start = self._ends[part - 1] if part else 0
            batches.append(self._parts[part].gather(indices[order[first:last]] - start))
        back = np.argsort(order)
        joined = _joined(batches)
        if joined is None:  # parts are not alike: stack says how
            return stack([self.get(index, index, Draw(0, 0)) for index in indices.tolist()])
        return tree.map(lambda leaf: _taken(leaf, back), joined, leaf=list)


def _joined(batches: Sequence[Any]) -> Any:
    """Batches as one; None where their structures, shapes or types differ."""
    flat = [tree.flatten(batch, leaf=list) for batch in batches]
    kinds, structure = [*map(_kind, flat[0][0])], flat[0][1]
    if any(own != structure or [*map(_kind, leaves)] != kinds for leaves, own in flat):
        return None
    columns = zip(*(leaves for leaves, _ in flat), strict=True)
    return structure.rebuild(
        [[*chain(*each)] if isinstance(each[0], list) else np.concatenate(each) for each in columns]
    )


def _kind(leaf: Any) -> Any:
    return list if isinstance(leaf, list) else (leaf.dtype, leaf.shape[1:])


def _taken(leaf: Any, rows: Indices) -> Any:
    return [leaf[row] for row in rows.tolist()] if isinstance(leaf, list) else leaf[rows]


@final
class Zipped(Items):
    """The items of several datasets of one length, side by side."""

    def __init__(self, parts: Sequence[Items]) -> None:
        self._parts = tuple(parts)
        self.draws = max(part.draws for part in parts)
        self.gathers = all(part.gathers for part in parts)

    def __len__(self) -> int:
        return len(self._parts[0])

    def get(self, index: int, key: int, draw: Draw) -> Any:
        own = key * len(self._parts)  # each part draws numbers of its own
        return tuple(part.get(index, own + at, draw) for at, part in enumerate(self._parts))

    def gather(self, indices: Indices) -> Any:
        return tuple(part.gather(indices) for part in self._parts)


@final
class Windows(Items):
    """So many items in a row as one, stacked."""

    def __init__(self, base: Items, size: int, step: int) -> None:
        self._base, self._size, self._step = base, size, step
        self.draws, self.gathers = base.draws, base.gathers

    def __len__(self) -> int:
        return max(0, (len(self._base) - self._size) // self._step + 1)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        start, own = index * self._step, key * self._size
        parts = range(self._size)
        return stack([self._base.get(start + part, own + part, draw) for part in parts])

    def gather(self, indices: Indices) -> Any:
        places = indices[:, None] * self._step + np.arange(self._size)
        flat = self._base.gather(places.ravel())
        shape = (len(indices), self._size)
        return tree.map(lambda leaf: _folded(leaf, *shape), flat, leaf=list)


def _folded(leaf: Any, rows: int, size: int) -> Any:
    if isinstance(leaf, list):
        return [leaf[row * size : (row + 1) * size] for row in range(rows)]
    return leaf.reshape(rows, size, *leaf.shape[1:])


@final
class Cached(Items):
    """Items that are kept once they were asked for; their arrays become read-only."""

    def __init__(self, base: Items) -> None:
        self._base = base
        self._kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._base)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        # Two threads may make one item at once: the same item, as it draws nothing.
        if index not in self._kept:
            self._kept[index] = tree.map(_read_only, self._base.get(index, key, draw))
        return self._kept[index]


def _read_only(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        leaf = leaf.view()
        leaf.flags.writeable = False
    return leaf
