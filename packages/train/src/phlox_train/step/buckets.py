"""Gradients on their way to other ranks: in buckets, which travel while the rest is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any, Final, TypeAlias, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, Ready, Tensor, asarray, concat
from phlox_tensor.groups import Group, TreeSum, absent_of, all_gather_object, tree_sum

from .outputs import read_at_once
from .shared import Kinds, Rows, SharedExchange, shared_exchange

# Elements of a bucket, 8 MB of float32: a few for a model, each long enough for a network. Twice as
# many where all gradients come at once, as nothing is left to travel behind.
LIMIT: Final = 1 << 21

# By bucket the ids and shapes of what is in it, one after the other; no id is an absent gradient.
Layout: TypeAlias = tuple[tuple[tuple[str, tuple[int, ...]], ...], ...]


@final
class Exchange:
    """Threads that read from the device, talk to other ranks and write; they start when needed."""

    def __init__(self, group: Group) -> None:
        """Begin without threads."""
        self.group = group
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._rooms: dict[Any, Any] = {}
        self._shared: list[SharedExchange | None] = []

    def begin(self, does: str, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call a function behind those that the thread of this name was given before."""
        if does not in self._threads:
            self._threads[does] = ThreadPoolExecutor(1, thread_name_prefix=f"phlox-{does}")
        return self._threads[does].submit(function, *args)

    def room(self, number: int, held: Any) -> Any:
        """Return memory for the sum of a bucket, the same in each step: new one costs time."""
        key = number, held.shape[1], held.dtype
        if key not in self._rooms:
            self._rooms[key] = np.empty(held.shape[1], held.dtype)
        return self._rooms[key]

    def rows(
        self, base: Backend, leaves: int, kinds: Kinds, arrive: Callable[[], None]
    ) -> Rows | None:
        """Return where GPUs add up buckets of these kinds themselves, if they can."""
        if not self._shared:
            arrive()  # as the ranks tell each other what they can
            self._shared.append(shared_exchange(self.group, base))
        shared = self._shared[0]
        # The sum of one leaf would be memory that the next step writes.
        return None if shared is None or leaves < 2 or not kinds else shared.rows(leaves, kinds)

    def gathered(self, value: Any, rows: Rows | None, arrive: Callable[[], None]) -> list[Any]:
        """Return what each rank gives, behind all that was begun, once all have arrived.

        Args:
            value: a tree, of which tensors come as arrays, or as tensors where GPUs add up.
            rows: where they do.
            arrive: what meets the others.
        """
        if rows is not None:
            assert self._shared[0] is not None
            arrive()
            return self._shared[0].gathered(value)
        value = read_at_once(value)

        def found() -> list[Any]:
            arrive()
            return all_gather_object(self.group, value)

        if "exchange" not in self._threads:
            return found()
        return self.begin("exchange", found).result()


@final
class Buckets:
    """The gradients of one step, which leave for the other ranks bucket by bucket.

    Buckets are those of the parameters, so that all ranks send the same ones in one order, whatever
    a rank has gradients of. Absent ones travel as minus zero, which changes no sum.

    Attributes:
        there: which parameters have a gradient here.
        rows: where GPUs add them up; None where the host does.
        arrive: what meets the others before the first exchange.
    """

    def __init__(
        self,
        exchange: Exchange,
        arrive: Callable[[], None],
        inner: Backend,
        weights: Sequence[Param],
        leaves: int,
        at_once: bool,
    ) -> None:
        """Begin a step.

        Args:
            exchange: what carries them.
            arrive: what meets the others; it is called more than once.
            inner: the device of gradients.
            weights: all parameters, in an order that ranks share.
            leaves: how many parts all ranks have.
            at_once: whether all gradients come at once, behind the backward pass.
        """
        self._exchange, self._inner, self._leaves = exchange, inner, leaves
        self._weights, self.arrive = weights, arrive
        self._places = _buckets(weights, LIMIT << at_once)
        self._ready: dict[int, list[Any]] = {}
        self._sent: list[Future[Any]] = []
        kinds = tuple((weights[p[0]].dtype, self._size(p)) for p in self._places)
        self.rows = exchange.rows(inner.base, leaves, kinds, arrive)
        self.there = np.zeros(len(weights), bool)

    def ready(self, sums: TreeSum[Any], behind: int) -> Ready:
        """Return what the backward pass of the last part is told, so that buckets leave in it.

        Args:
            sums: gradients of the parts before it.
            behind: how many empty parts come after it.
        """
        return [
            (self._values(places), partial(self._last, number, sums, behind))
            for number, places in enumerate(self._places)
        ]

    def rest(self, sums: TreeSum[Any]) -> None:
        """Send what the parts of this rank gave, if no pass has."""
        held = [None if g is None else self._of_all(g) for _, g in sums.parts()]
        self.send_all(held)

    def send_all(self, held: Sequence[list[Any] | None]) -> None:
        """Send all buckets, of gradients by parameter for each sum of this rank."""
        for number, places in enumerate(self._places):
            if number not in self._ready:
                self._send(number, [each and [each[p] for p in places] for each in held])

    def _of_all(self, grads: Any) -> list[Any]:
        return [grads.get(param.value) for param in self._weights]

    def _values(self, places: list[int]) -> list[Tensor[Any]]:
        return [self._weights[place].value for place in places]

    def _last(self, number: int, sums: TreeSum[Any], behind: int, grads: list[Any]) -> None:
        """Add the gradients of the last part to those of a bucket, and send it."""
        values = self._values(self._places[number])
        before = sums.parts()
        total: TreeSum[Any] = TreeSum(sums.first, add=added)
        for node, each in before:
            total.join(node, None if each is None else [each.get(value) for value in values])
        total.add(grads)
        for _ in range(behind):
            total.add(None)
        self._send(number, [each for _, each in total.parts()])

    def _send(self, number: int, held: list[Any]) -> None:
        """Send a bucket when those before it were sent."""
        places = self._places[number]
        for each in held:
            if each is not None:
                self.there[places] |= [gradient is not None for gradient in each]
        self._ready[number] = [each and self._row(places, each) for each in held]
        if self.rows is not None:
            rows = [self._nothing(places) if row is None else row for row in self._ready[number]]
            self._ready[number] = rows
            self.rows.put(number, rows)
            return
        while (following := len(self._sent)) in self._ready and len(self._places) > 1:
            rows = self._ready[following]
            self._ready[following] = []  # those of this rank go with their last use
            begin = self._exchange.begin
            read = begin("read", self._read, self._places[following], rows)
            whole = begin("exchange", self._summed, following, read)
            self._sent.append(begin("write", self._written, whole))

    def found(self, there: Sequence[int]) -> tuple[list[Tensor[Any]], Layout]:
        """Return the sums over all parts, a tensor for each bucket, and what is where.

        Args:
            there: which parameters have a gradient on any rank.
        """
        if self.rows is not None:
            wholes = [
                self.rows.summed(number, self._ready[number]).to_device(self._inner)
                for number in range(len(self._places))
            ]
        elif len(self._places) == 1:
            read: Future[Any] = Future()
            read.set_result(self._read(self._places[0], self._ready[0]))
            wholes = [asarray(self._summed(0, read), device=self._inner)]
        else:
            wholes = [each.result() for each in self._sent]
        layout = tuple(
            tuple((self._weights[p].id if there[p] else "", self._weights[p].shape) for p in places)
            for places in self._places
        )
        return wholes, layout

    def _summed(self, number: int, read: Future[Any]) -> Any:
        held = read.result()
        self.arrive()
        out = self._exchange.room(number, held)
        return tree_sum(self._exchange.group, self._leaves, held, out)

    def _written(self, whole: Future[Any]) -> Tensor[Any]:
        return asarray(whole.result(), device=self._inner)

    def _row(self, places: list[int], sums: list[Any]) -> Any:
        """One sum of the gradients of a bucket in one tensor, which is read from there at once."""
        pieces = [
            self._absent(self._weights[place]) if gradient is None else gradient.reshape(-1)
            for place, gradient in zip(places, sums, strict=True)
        ]
        return pieces[0] if len(pieces) == 1 else concat(pieces)

    def _absent(self, param: Param) -> Tensor[Any]:
        kind = param.dtype.numpy
        return asarray(np.full(prod(param.shape), absent_of(kind), kind), device=self._inner)

    def _nothing(self, places: list[int]) -> Tensor[Any]:
        return self._row(places, [None] * len(places))

    def _size(self, places: list[int]) -> int:
        return sum(prod(self._weights[place].shape) for place in places)

    def _read(self, places: list[int], rows: list[Any]) -> Any:
        """The rows of a bucket as an array."""
        kind = self._weights[places[0]].dtype.numpy
        size = self._size(places)
        if len(rows) == 1 and rows[0] is not None:
            return rows[0].numpy()[None]
        absent = absent_of(kind)
        held = [np.full(size, absent, kind) if row is None else row.numpy() for row in rows]
        return np.array(held, kind).reshape(len(rows), size)


def split(layout: Layout, tensors: Sequence[Tensor[Any]]) -> dict[str, Tensor[Any]]:
    """Return gradients by the id of their parameter, out of buckets."""
    found: dict[str, Tensor[Any]] = {}
    for bucket, tensor in zip(layout, tensors, strict=True):
        high = 0
        for key, shape in bucket:
            low, high = high, high + prod(shape)
            if key:
                found[key] = tensor[low:high].reshape(shape)
    return found


def added(left: list[Any], right: list[Any]) -> list[Any]:
    """Return sums of gradients by parameter, where None is absent."""
    pairs = zip(left, right, strict=True)
    return [a if b is None else b if a is None else a + b for a, b in pairs]


def _buckets(weights: Sequence[Param], limit: int) -> list[list[int]]:
    """Places in buckets of one element type, the last parameters first, as a backward pass goes."""
    buckets: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for place, weight in reversed([*enumerate(weights)]):
        kind, size = weight.dtype, prod(weight.shape)
        bucket, used = open_.get(kind, ([], limit))
        if not bucket or used + size > limit:
            bucket, used = [], 0
            buckets.append(bucket)
        bucket.append(place)
        open_[kind] = bucket, used + size
    return buckets
