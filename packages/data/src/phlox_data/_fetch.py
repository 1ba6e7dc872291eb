"""How a batch comes to be: its items, the function that joins them, and what errors say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import unwrap
from typing import Any, Final, final

from phlox_tensor import tree

from ._batch import RaggedError, stack, stacked
from ._buffers import Buffers
from ._items import Draw, Items
from ._plan import Plan

Collate = Callable[[Sequence[Any]], Any]


@final
class Fetch:
    """Makes batches. Any thread may ask."""

    def __init__(self, items: Items, collate: Collate, seed: int) -> None:
        self._items, self._collate, self._seed = items, collate, seed
        self.stacks: Final = unwrap(collate) is unwrap(stack)
        # One gather makes the whole batch: no items, nothing to share among workers.
        self.gathers: Final = items.gathers and self.stacks
        self.buffers: Final = Buffers()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {
            "_collate": None,
            "buffers": None,
        }  # other processes make items, never batches

    def whole(self, plan: Plan) -> Any:
        """Return a batch, made here and now."""
        return self.joined(plan, [] if self.gathers else self.rows(plan, 0, len(plan.indices)))

    def rows(self, plan: Plan, first: int, last: int, worker: int | None = None) -> list[Any]:
        """Return some items of a batch."""
        draw, wanted = Draw(self._seed, plan.epoch), plan.indices[first:last]
        if self._items.fetches:
            try:
                return self._items.fetch(wanted, wanted, draw)
            except BaseException as error:
                self._say(error, plan, None, worker)
                raise
        found = []
        for index in wanted.tolist():
            try:
                found.append(self._items.get(index, index, draw))
            except StopIteration as error:  # it would end a loop as if nothing were left
                told = RuntimeError("StopIteration out of a function of items")
                self._say(told, plan, index, worker)
                raise told from error
            except BaseException as error:
                self._say(error, plan, index, worker)
                raise
        return found

    def joined(self, plan: Plan, rows: list[Any], worker: int | None = None) -> Any:
        """Return the batch of its items."""
        try:
            if self.gathers:
                batch = self._items.gather(plan.indices)
            elif self.stacks:
                batch = stacked(rows, self.buffers.empty)
            else:
                batch = self._collate(rows)
        except BaseException as error:
            place = error.place if isinstance(error, RaggedError) else None
            index = None if place is None else int(plan.indices[place])
            self._say(error, plan, index, worker)
            raise
        return _none_of(batch) if plan.empty else batch

    def _say(self, error: BaseException, plan: Plan, index: int | None, worker: int | None) -> None:
        """Note on an error where it happened, and the line that makes it happen again."""
        item = "" if index is None else f"item {index}, "
        by = "" if worker is None else f", worker {worker}"
        again = (
            f"loader.at({plan.epoch}, {plan.number})"
            if index is None or isinstance(error, RaggedError)
            else f"loader.dataset.item({index}, epoch={plan.epoch}, seed={self._seed})"
        )
        error.add_note(f"{item}batch {plan.number} of epoch {plan.epoch}{by}\nagain: {again}")


def _none_of(batch: Any) -> Any:
    return tree.map(lambda leaf: leaf[:0], batch, leaf=list)
