"""The loader: batches of a dataset, in an order and with randomness that are functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from time import perf_counter
from types import TracebackType
from typing import Any, Final, Self, final

import numpy as np

from phlox_tensor import ArgumentError, Backend, RecordError, as_device
from phlox_tensor.arguments import require_callable
from phlox_tensor.names import Named

from ._batch import stack
from ._dataset import Dataset, Indexed, items_of, of
from ._elsewhere import NAMES
from ._fetch import Fetch
from ._items import words
from ._plan import Plan, Plans
from ._processes import Processes, ProcessPool
from ._sampler import InOrder, Sampler, Shuffled, Turns
from ._threads import ThreadPool
from ._upload import Finish, Prefetcher


@final
class DataLoader(Named):
    """Batches of a dataset, the same ones for any number of workers.

    A ``for`` goes on at ``position`` and ends with the epoch; the next one is the next epoch. Order
    and random numbers follow from seed, epoch and index alone, so a loader that takes over the
    record of another one gives what that would have given.

    Attributes:
        waited: seconds that ``for`` loops have waited for batches.
        rows: how many rows the last batch has; of a ``part``, how many the whole batch has.

    Example:
        >>> loader = DataLoader(range(10), 4, shuffle=True)
        >>> len(loader), sorted(int(i) for batch in loader for i in batch)
        (3, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
        >>> loader.position
        (1, 0)
    """

    _elsewhere, _owner = NAMES, "loader"

    def __init__(  # noqa: PLR0913 - what PyTorch's loader is asked for, too
        self,
        dataset: Dataset[Any] | Indexed[Any],
        batch: int,
        *,
        shuffle: bool | Sampler = False,
        sampler: Sampler | None = None,
        seed: int = 0,
        drop_last: bool = False,
        workers: int | Processes = 0,
        prefetch: int = 2,
        collate: Callable[[Sequence[Any]], Any] = stack,
        transform: Callable[..., Any] | None = None,
        device: Backend | str | None = None,
    ) -> None:
        """Make a loader; nothing is read before the first batch.

        Args:
            dataset: any sequence of items.
            batch: how many items a batch has; the last one of an epoch may have fewer.
            shuffle: whether each epoch has an order of its own; ``data.Blocks(10_000)`` for files
                that are read in blocks.
            sampler: another order, such as ``data.balanced(labels)``; instead of ``shuffle``.
            seed: of the order, and of random maps.
            drop_last: leave out a last batch that is not full.
            workers: threads that make batches, or ``data.Processes(4)``; 0 makes them when they
                are asked for.
            prefetch: how many batches workers make ahead.
            collate: makes a batch of a list of items, such as ``data.pad(0)``.
            transform: makes another batch of each one, on its device: ``transform(batch)``, or
                ``transform(batch, rng)``, whose random numbers are those of seed, epoch and number.
                A ``part`` of a loader gives it the rows of that part.
            device: where arrays of batches become tensors; without one they stay NumPy arrays.

        Raises:
            ArgumentError: for a dataset without a batch, and for numbers that make no sense.
        """
        self.dataset: Final[Dataset[Any]] = of(dataset)
        words(seed, 0, (0, 0, 0))
        count = workers.count if isinstance(workers, Processes) else workers
        least: dict[str, tuple[Any, int]] = {
            "batch": (batch, 1),
            "workers": (count, 0),
            "prefetch": (prefetch, 0),
        }
        for name, (value, limit) in least.items():
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value < limit:
                what, expected = f"{name} is no such number", f"{limit} or more"
                raise ArgumentError("DataLoader", what, got=value, expected=expected)
        for name, function in (("collate", collate), ("transform", transform)):
            if function is not None:
                require_callable("DataLoader", function, f"DataLoader(..., {name}=function)")
        self._batch, self._drop_last = int(batch), drop_last
        given = _sampler(shuffle, sampler)
        self._plans = Plans(given, seed, len(self.dataset), batch)
        self._count = given.count(len(self.dataset))
        self._workers = workers if isinstance(workers, Processes) else int(workers)
        self._prefetch = int(prefetch)
        self._collate = collate
        self._transform = transform
        self._device = None if device is None else as_device(device, "DataLoader")
        self._finish = Finish(self._device, transform, seed)
        self._fetch = Fetch(items_of(self.dataset), collate, seed)
        self._position = (0, 0)
        self._turn = 0
        self._threads: ThreadPool | None = None
        self._prefetcher: Prefetcher | None = None
        self._pool: ProcessPool | None = None
        self.waited = 0.0
        self.rows = 0
        if not len(self):
            got, expected = f"{self._count} items", f"{batch}" if drop_last else "1 or more"
            raise ArgumentError("DataLoader", "an epoch has no batch", got=got, expected=expected)

    def __len__(self) -> int:
        count = self._count
        return count // self._batch if self._drop_last else -(-count // self._batch)

    def __repr__(self) -> str:
        epoch, number = self._position
        return f"<DataLoader at batch {number} of {len(self)} in epoch {epoch}>"

    @property
    def ordered(self) -> bool:
        """Whether an epoch gives all items, in the order of the dataset."""
        return isinstance(self._plans.sampler, InOrder) and not self._drop_last

    @property
    def position(self) -> tuple[int, int]:
        """The epoch, and how many of its batches were handed out; may be set."""
        return self._position

    @position.setter
    def position(self, place: tuple[int, int]) -> None:
        epoch, number = place
        if epoch < 0 or not 0 <= number < len(self):
            expected = f"an epoch, and a batch below {len(self)}"
            raise ArgumentError("position", "no such place", got=place, expected=expected)
        self._end_loop()
        self._position = (int(epoch), int(number))

    def at(self, epoch: int, number: int) -> Any:
        """Return one batch, wherever the loader stands; it stays there.

        Example:
            >>> DataLoader(range(6), 2).at(0, 2).tolist()
            [4, 5]
        """
        if epoch < 0 or not 0 <= number < len(self):
            expected = f"an epoch, and a batch below {len(self)}"
            raise ArgumentError("at", "no such batch", got=(epoch, number), expected=expected)
        return self._finish(self._fetch.whole(self._plans.of(epoch, number)), epoch, number)

    def __iter__(self) -> Iterator[Any]:
        self._end_loop()
        return self._run(self._turn)

    def _run(self, turn: int) -> Iterator[Any]:
        self._mine(turn)
        epoch, first = self._position
        plans = (self._plans.of(epoch, number) for number in range(first, len(self)))
        batches, threads, prefetcher = self._started(plans, epoch, first)
        try:
            for number in range(first, len(self)):
                began = perf_counter()
                batch = next(batches)
                self.waited += perf_counter() - began
                done = number + 1 == len(self)
                self.rows = min(self._batch, self._count - number * self._batch)
                self._position = (epoch + 1, 0) if done else (epoch, number + 1)
                yield batch
                del batch
                self._mine(turn)
        finally:
            _ended(threads, prefetcher)

    def _started(
        self, plans: Iterator[Plan], epoch: int, first: int
    ) -> tuple[Iterator[Any], ThreadPool | None, Prefetcher | None]:
        """The batches of a loop, and the threads that make them, which the loop has to end."""
        finish = self._finish
        threads: ThreadPool | None = None
        if isinstance(self._workers, Processes) and not self._fetch.gathers:
            self._pool = self._pool or ProcessPool(self._fetch, self._plans, self._workers.count)
            batches = self._pool.batches(plans, self._prefetch)
        elif isinstance(self._workers, int) and self._workers:
            threads = self._threads = ThreadPool(self._fetch, self._workers, self._prefetch)
            batches = threads.batches(plans)
        else:
            made = map(self._fetch.whole, plans)
            numbered = zip(made, itertools.count(first), strict=False)
            return (finish(batch, epoch, number) for batch, number in numbered), None, None
        if not finish.needed:
            return batches, threads, None
        prefetcher = self._prefetcher = Prefetcher(batches, finish, epoch, first)
        return iter(prefetcher), threads, prefetcher

    def _mine(self, turn: int) -> None:
        """Refuse to go on where another loop has begun, or the position was set."""
        if turn != self._turn:
            raise ArgumentError(
                "DataLoader",
                "this loop was ended by another one, or by close, position or load_record",
                hint="loader.part(0, 1, 1), which is a loader of its own",
            )

    def close(self) -> None:
        """End threads and processes; the loader can be used again.

        Example:
            >>> with DataLoader(range(8), 2, workers=2) as loader:
            ...     first = next(iter(loader)).tolist()
            >>> first, loader.position
            ([0, 1], (0, 1))
        """
        self._end_loop()
        self._fetch.buffers.clear()
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _end_loop(self) -> None:
        self._turn += 1
        _ended(self._threads, self._prefetcher)
        self._threads = self._prefetcher = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def part(self, first: int, last: int, of: int) -> DataLoader:
        """Return a loader of the same batches that has some of their rows: parts first to last.

        Part v of a batch of b rows is rows v·b//of to (v+1)·b//of; a part may be empty. Only the
        wanted rows are read. The new loader stands where this one does.

        Example:
            >>> half = DataLoader(range(10), 4).part(1, 2, 2)
            >>> [batch.tolist() for batch in half]
            [[2, 3], [6, 7], [9]]
        """
        if not 0 <= first < last <= of:
            got, expected = (first, last, of), "0 <= first < last <= of"
            raise ArgumentError("part", "no such parts", got=got, expected=expected)
        low, high, whole = self._plans.parts
        if whole != 1:
            what = "a part has no parts"
            raise ArgumentError("part", what, got=f"parts {low} to {high} of {whole}")
        made = self._like(self._workers)
        made._plans = replace(made._plans, parts=(first, last, of))
        made._position = self._position
        return made

    def shard(self, index: int, of: int) -> DataLoader:
        """Return a loader of batches ``index``, ``index + of``, …; the others are not read.

        Example:
            >>> [batch.tolist() for batch in DataLoader(range(10), 2).shard(1, 3)]
            [[2, 3], [8, 9]]
        """
        if not 0 <= index < min(of, len(self)) or not self.splits or self._plans.parts[2] != 1:
            got, expected = (index, of), f"0 <= index < of, below {len(self)}, of whole batches"
            raise ArgumentError("shard", "no such batches", got=got, expected=expected)
        made = self._like(self._workers)
        turns = Turns(self._plans.sampler, self._batch, len(self), index, of)
        made._plans = replace(made._plans, sampler=turns)
        made._count = turns.count(len(self.dataset))
        return made

    @property
    def splits(self) -> bool:
        """Whether rows are the same in whole batches and in ``part`` of them.

        They are where items are stacked. What pads to the longest item, and what transforms a
        batch with random numbers of its own, gives parts other rows.

        Example:
            >>> DataLoader(range(6), 2).splits, DataLoader(range(6), 2, transform=abs).splits
            (True, False)
        """
        return self._collate is stack and self._transform is None

    def _like(self, workers: int | Processes) -> DataLoader:
        """A loader of the same batches, at the beginning."""
        return DataLoader(
            self.dataset,
            self._batch,
            sampler=self._plans.sampler,
            seed=self._plans.seed,
            drop_last=self._drop_last,
            workers=workers,
            prefetch=self._prefetch,
            collate=self._collate,
            transform=self._transform,
            device=self._device,
        )

    def into_record(self) -> dict[str, int]:
        """Return the position, and what gives it its meaning, as plain numbers.

        Example:
            >>> record = DataLoader(range(10), 4, seed=7).into_record()
            >>> record["epoch"], record["number"], record["seed"], record["items"]
            (0, 0, 7, 10)
        """
        epoch, number = self._position
        return {"epoch": epoch, "number": number, **self._meaning}

    @cached_property
    def _meaning(self) -> dict[str, int]:
        """What a position depends on. A run asks at each step, and a mark may read all weights."""
        return {
            "seed": self._plans.seed,
            "items": len(self.dataset),
            "batch": self._batch,
            "order": self._plans.sampler.mark(),
            "drop_last": int(self._drop_last),
        }

    def load_record(self, record: Mapping[str, Any]) -> Self:
        """Take over a position, and return the loader; workers and device may be others.

        Raises:
            RecordError: for a record of another order: another seed, dataset or size of batches.

        Example:
            >>> loader = DataLoader(range(10), 4)
            >>> first = next(iter(loader))
            >>> DataLoader(range(10), 4, workers=2).load_record(loader.into_record()).position
            (0, 1)
        """
        own = self.into_record()
        if set(record) != set(own):
            got, expected = ", ".join(map(str, record)), ", ".join(own)
            raise RecordError("load_record", "not of a loader", got=got, expected=expected)
        for name in self._meaning:
            if record[name] != own[name]:
                raise RecordError(
                    "load_record",
                    f"the batches would be others, as {name} differs",
                    got=record[name],
                    expected=own[name],
                    hint="loader.position = (epoch, 0)",
                )
        self.position = (record["epoch"], record["number"])
        return self


def with_workers(loader: DataLoader, workers: int | Processes) -> DataLoader:
    """Return a loader of the same batches with other workers, at the beginning."""
    return loader._like(workers)


def needs_workers(loader: DataLoader) -> bool:
    """Whether items are made one by one, so that workers can share them."""
    return not loader._fetch.gathers


def _ended(threads: ThreadPool | None, prefetcher: Prefetcher | None) -> None:
    """End threads: the one that waits for the others is told first."""
    if prefetcher:
        prefetcher.stop()
    if threads:
        threads.close()
    if prefetcher:
        prefetcher.join()


def _sampler(shuffle: object, sampler: object) -> Sampler:
    """The order that a loader was asked for."""
    hint = "DataLoader(dataset, 64, sampler=data.balanced(labels))"
    if sampler is None:
        sampler = (InOrder(), Shuffled())[shuffle] if isinstance(shuffle, bool) else shuffle
    elif shuffle is not False:
        what = "a sampler is an order already, so that shuffle says nothing"
        raise ArgumentError("DataLoader", what, got=f"shuffle={shuffle}", hint=hint)
    if not isinstance(sampler, Sampler):
        got = type(sampler).__name__
        raise ArgumentError("DataLoader", "not an order", got=got, expected="a Sampler", hint=hint)
    return sampler
