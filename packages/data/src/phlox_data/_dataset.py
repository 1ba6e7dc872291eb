"""Datasets: anything with a length and items, and what can be made of one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, cast, final, overload

import numpy as np

from phlox_tensor import ArgumentError, IndexOutOfRangeError, Tensor, WrongTypeError
from phlox_tensor.arguments import require_callable

from ._items import Draw, Indices, Items
from ._order import order
from ._views import Cached, Foreign, Joined, Mapped, Selected, Windows, Zipped

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)


class Indexed(Protocol[T_co]):
    """What ``of`` takes: a length, and items by their index."""

    def __len__(self) -> int:
        """Return the number of items."""
        ...

    def __getitem__(self, index: int, /) -> T_co:
        """Return one item."""
        ...


@final
class Dataset(Generic[T]):
    """Items by their index. Views of it copy nothing, and are read when an item is asked for.

    Attributes:
        classes: the names of labels, where the source has them.
    """

    __slots__ = ("_items", "classes")

    def __init__(self, items: Items, classes: tuple[str, ...] = ()) -> None:
        self._items: Final = items
        self.classes: Final = classes

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Dataset[T]: ...
    def __getitem__(self, index: int | slice, /) -> T | Dataset[T]:
        if isinstance(index, slice):
            return self.select(np.arange(len(self))[index])
        return self.item(index)

    def __iter__(self) -> Iterator[T]:
        return (self.item(index) for index in range(len(self)))

    def __add__(self, other: Dataset[U] | Indexed[U]) -> Dataset[T | U]:
        other = of(other)
        classes = self.classes if self.classes == other.classes else ()
        return Dataset(Joined([self._items, other._items]), classes)

    def __repr__(self) -> str:
        return f"<Dataset of {len(self)} items>"

    def item(self, index: int, *, epoch: int = 0, seed: int = 0) -> T:
        """Return one item as it is in an epoch of a loader with this seed.

        Raises:
            IndexOutOfRangeError: for an index outside; negative ones count from the end.

        Example:
            >>> noisy = of([1.0]).map(lambda x, rng: x + rng.random())
            >>> noisy.item(0, epoch=3) == noisy.item(0, epoch=3) != noisy.item(0, epoch=4)
            True
        """
        count, place = len(self), operator.index(index)
        if not -count <= place < count:
            expected = f"{-count} to {count - 1}" if count else "a dataset that has items"
            raise IndexOutOfRangeError("item", "no such item", got=place, expected=expected)
        place %= count
        return cast("T", self._items.get(place, place, Draw(seed, epoch)))

    def map(self, function: Callable[[T], U] | Callable[[T, np.random.Generator], U]) -> Dataset[U]:
        """Return the items through a function, which is called whenever one is asked for.

        A function of two arguments gets a generator of its own: its numbers depend on seed, epoch
        and index of the item, whoever calls it and when. An optional second argument counts where
        its name is ``rng``.

        Example:
            >>> [*of([1, 2, 3]).map(lambda x: x * 10)]
            [10, 20, 30]
        """
        require_callable("map", function, "dataset.map(function)")
        return Dataset(Mapped(self._items, function), self.classes)

    def filter(self, function: Callable[[T], bool]) -> Dataset[T]:
        """Return the items for which a function is true; it is asked for all of them at once.

        Raises:
            ArgumentError: after a random ``map``, whose items differ in each epoch.

        Example:
            >>> [*of([1, 2, 3, 4]).filter(lambda x: x % 2 == 0)]
            [2, 4]
        """
        self._settled("filter")
        return self.select([i for i in range(len(self)) if function(self.item(i))])

    def select(self, indices: Sequence[int] | np.ndarray[Any, Any]) -> Dataset[T]:
        """Return the items of some indices, in their order; an array of bools is a mask.

        Example:
            >>> [*of(["a", "b", "c"]).select([2, 0])]
            ['c', 'a']
        """
        wanted = np.asarray(indices)
        if wanted.dtype == np.bool_ and wanted.shape == (len(self),):
            wanted = np.flatnonzero(wanted)
        if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
            got = f"{wanted.dtype} {wanted.shape}"
            expected = f"whole numbers, or {len(self)} bools"
            raise ArgumentError("select", "not indices", got=got, expected=expected)
        places: Indices = wanted.astype(np.int64)
        outside = places[(places < -len(self)) | (places >= len(self))]
        if outside.size:
            expected = f"below {len(self)}"
            raise IndexOutOfRangeError("select", "no such item", got=outside[0], expected=expected)
        return Dataset(Selected(self._items, places % max(1, len(self))), self.classes)

    def split(self, *parts: float, seed: int | None = 0) -> tuple[Dataset[T], ...]:
        """Return disjoint parts, and the rest as the last one.

        Args:
            parts: shares such as 0.8, rounded to whole items, or numbers of items.
            seed: of the order that is split; None takes items from the front.

        Example:
            >>> training, validation = of(range(10)).split(0.8)
            >>> len(training), len(validation)
            (8, 2)
        """
        count = len(self)
        sizes = [round(part * count) if 0 < part < 1 else part for part in parts]
        wrong = any(type(size) is not int or size < 0 for size in sizes)
        if not sizes or wrong or sum(sizes) > count:
            expected = f"shares below 1, or numbers of items, together at most {count}"
            got, hint = ", ".join(map(str, parts)) or "nothing", "dataset.split(0.8)"
            raise ArgumentError("split", "no such parts", got=got, expected=expected, hint=hint)
        places = np.arange(count)
        if seed is not None:
            places = order(seed, 0, count, places)
        cuts = [int(cut) for cut in np.cumsum(sizes)]
        return tuple(self.select(part) for part in np.split(places, cuts))

    def sample(self, count: int, *, seed: int = 0) -> Dataset[T]:
        """Return so many items, drawn without any twice.

        Example:
            >>> len(set(of(range(100)).sample(5)))
            5
        """
        if not 0 <= count <= len(self):
            expected = f"0 to {len(self)}"
            raise ArgumentError("sample", "not so many items", got=count, expected=expected)
        return self.select(order(seed, 0, len(self), np.arange(count)))

    def windows(self, size: int, step: int = 1) -> Dataset[Any]:
        """Return so many items in a row as one, stacked; what is left at the end is left out.

        Example:
            >>> [window.tolist() for window in of([1, 2, 3, 4, 5]).windows(3, step=2)]
            [[1, 2, 3], [3, 4, 5]]
        """
        if size < 1 or step < 1:
            got = f"size {size}, step {step}"
            raise ArgumentError("windows", "no windows", got=got, expected="1 or more")
        return Dataset(Windows(self._items, size, step), self.classes)

    def cache(self) -> Dataset[T]:
        """Return the same items, each made once and then kept in memory.

        Raises:
            ArgumentError: after a random ``map``, whose items differ in each epoch.

        Example:
            >>> kept = of([1, 2]).map(lambda x: object()).cache()
            >>> kept[0] is kept[0]
            True
        """
        self._settled("cache")
        return Dataset(Cached(self._items), self.classes)

    def _settled(self, op: str) -> None:
        if self._items.draws:
            what = "items of a random map differ in each epoch"
            raise ArgumentError(op, what, hint=f"dataset.{op}(...).map(augment), the map last")


def items_of(dataset: Dataset[Any]) -> Items:
    """Return what a dataset is underneath."""
    return dataset._items


def zip(*parts: Indexed[Any] | Dataset[Any]) -> Dataset[tuple[Any, ...]]:
    """Return the items of several datasets of one length side by side, as tuples.

    Random maps of the parts draw numbers of their own. What has to fit, such as the crop of a
    picture and its mask, is drawn by a map of the pairs.

    Raises:
        ArgumentError: for datasets of different lengths.

    Example:
        >>> [*zip([1, 2], ["a", "b"])]
        [(1, 'a'), (2, 'b')]
    """
    if not parts:
        raise ArgumentError("zip", "nothing to put side by side", hint="data.zip(images, masks)")
    given = [of(part) for part in parts]
    if len({len(part) for part in given}) > 1:
        got = ", ".join(str(len(part)) for part in given)
        hint = "data.zip(first, second[: len(first)])"
        raise ArgumentError("zip", "lengths differ", got=got, expected="one length", hint=hint)
    return Dataset(Zipped([items_of(part) for part in given]))


def of(data: Indexed[T] | Dataset[T]) -> Dataset[T]:
    """Return any sequence as a dataset: a list, or what has a length and items by index.

    Where it has ``__getitems__`` too, a loader asks that for the items of a batch, as PyTorch's
    does: it takes a list of indices and gives a list of items.

    Raises:
        WrongTypeError: for what has no length, for text, dicts and arrays, with what to type.

    Example:
        >>> of([3, 4, 5])[-1]
        5
    """
    if isinstance(data, Dataset):
        return data
    hint = _better(data)
    if hint is not None:
        got, expected = type(data).__name__, "a length, and items by index"
        raise WrongTypeError("of", "not a sequence of items", got=got, expected=expected, hint=hint)
    return Dataset(Foreign(data))


def _better(data: Any) -> str | None:
    """What to type instead, for what is no sequence of items."""
    if isinstance(data, dict):
        return "data.arrays(**columns)"
    if isinstance(data, (np.ndarray, Tensor)):
        return "data.arrays(array)"
    if isinstance(data, (str, bytes)):
        return "data.of([text])"
    sequence = hasattr(data, "__len__") and hasattr(data, "__getitem__")
    return None if sequence else "data.of(list(items))"
