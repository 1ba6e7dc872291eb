"""What happens to whole batches: they go to a device, and through a function, one ahead of use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import Any, Final, NamedTuple, final

import numpy as np

from phlox_tensor import Backend, Tensor, asarray, tree

from ._items import words
from ._plan import PATIENCE
from ._views import wants_random


@final
class Finish:
    """Makes a batch what a loop is given. It changes nothing, so that any thread may ask."""

    def __init__(
        self, device: Backend | None, transform: Callable[..., Any] | None, seed: int
    ) -> None:
        self._device, self._transform, self._seed = device, transform, seed
        self._random = transform is not None and wants_random(transform)
        self.needed: Final = device is not None or transform is not None

    def __call__(self, batch: Any, epoch: int, number: int) -> Any:
        """Return a batch on the device, transformed."""
        device = self._device
        if device is not None:
            batch = tree.map(lambda leaf: _on(leaf, device), batch)
        if self._transform is None:
            return batch
        try:
            if not self._random:
                return self._transform(batch)
            # The last word is that of batches; items have 0, and orders 1.
            rng = np.random.Generator(words(self._seed, epoch, (0, number, 2)))
            return self._transform(batch, rng)
        except BaseException as error:
            again = f"loader.at({epoch}, {number})"
            error.add_note(f"transform, batch {number} of epoch {epoch}\nagain: {again}")
            raise


def _on(leaf: Any, device: Backend) -> Any:
    if isinstance(leaf, np.ndarray):
        return asarray(leaf, device=device)
    return leaf.to_device(device) if isinstance(leaf, Tensor) else leaf


class _Made(NamedTuple):
    """A batch, or what was raised instead."""

    batch: Any
    error: BaseException | None = None


@final
class Prefetcher:
    """A thread that finishes the next batch while the last one is used."""

    def __init__(self, batches: Iterator[Any], finish: Finish, epoch: int, first: int) -> None:
        self._wanted: SimpleQueue[bool] = SimpleQueue()
        self._made: SimpleQueue[_Made] = SimpleQueue()
        given = (batches, finish, epoch, first, self._wanted, self._made)
        name = "phlox-data-upload"
        target = copy_context().run
        self._thread = Thread(target=target, args=(_work, *given), name=name, daemon=True)
        self._wanted.put(True)
        self._thread.start()

    def __iter__(self) -> Iterator[Any]:
        while True:
            self._wanted.put(True)
            made = self._made.get()
            if made.error is not None:
                raise made.error
            yield made.batch
            del made  # or its memory would be there twice while the next one is awaited

    def stop(self) -> None:
        """Ask for no more."""
        self._wanted.put(False)

    def join(self) -> None:
        """Wait for the thread to end, after ``stop``."""
        if self._thread is not current_thread():
            self._thread.join(PATIENCE)


def _work(
    batches: Iterator[Any],
    finish: Finish,
    epoch: int,
    number: int,
    wanted: SimpleQueue[bool],
    made: SimpleQueue[_Made],
) -> None:
    while wanted.get():
        try:
            batch = next(batches, None)
            made.put(_Made(finish(batch, epoch, number)))
            del batch
        except BaseException as error:  # whatever it is, it comes out at its batch
            made.put(_Made(None, error))
            return
        number += 1
