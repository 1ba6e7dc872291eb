"""Gradients on their way to other ranks: in buckets, which travel while the rest is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, Ready, Tensor, asarray
from phlox_tensor.groups import Group, TreeSum, absent_of, tree_sum

from .gpu_exchange import GpuExchange, Kinds, Rows, gpu_exchange_of
from .layout import BucketPlan, Layout, Row, added
from .places import Arrival
from .small import Form, Forms, carried

# Elements of a bucket, 8 MB of float32: a few for a model, each long enough for a network. Twice as
# many where all gradients come at once, as nothing is left to travel behind.
LIMIT: Final = 1 << 21


class Sent(NamedTuple):
    """What a rank sends in a step besides gradients.

    Attributes:
        there: by parameter 1 or 0, whether it has a gradient.
        told: of its parts a tree, with texts for tensors.
        flats: these, in one for each element type.
    """

    there: bytes
    told: Any
    flats: list[Tensor[Any]]


class Found(NamedTuple):
    """What all ranks sent: what it looks like, the numbers, and flat tensors or arrays."""

    forms: list[Form]
    numbers: list[list[Any]]
    flats: list[list[Any]]


def plan_of(weights: Sequence[Param], *, at_once: bool) -> BucketPlan:
    """Return which gradients travel together; all of them may come at once, behind the pass."""
    return BucketPlan(weights, LIMIT << at_once)


@final
class Exchange:
    """Threads that read from the device, talk to other ranks and write; they start when needed.

    Attributes:
        forms: of small values, which all ranks know.
    """

    def __init__(self, group: Group) -> None:
        """Begin without threads."""
        self.group, self.forms = group, Forms(group)
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._rooms: dict[Any, Any] = {}
        self._gpus: list[GpuExchange | None] = []

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
        self, base: Backend, leaves: int, kinds: Kinds, arrive: Callable[[], Any]
    ) -> Rows | None:
        """Return where GPUs add up buckets of these kinds themselves, if they can."""
        if not self._gpus:
            arrive()  # as the ranks tell each other what they can
            self._gpus.append(gpu_exchange_of(self.group, base))
        shared = self._gpus[0]
        # The sum of one leaf would be memory that the next step writes.
        return None if shared is None or leaves < 2 or not kinds else shared.rows(leaves, kinds)

    def gathered(self, sent: Sent, buckets: Buckets, device: Backend | None) -> Found:
        """Return what all ranks sent, behind all that was begun.

        Args:
            sent: what this rank does.
            buckets: its gradients.
            device: where the tensors of all are wanted; None for arrays, where the host has them.
        """
        if buckets.rows is not None:
            assert self._gpus[0] is not None
            forms, words = self._told(sent, buckets, tensors=False)
            there = self._gpus[0].carried(sent.flats, forms)
            if there is not None:
                return Found(forms, [numbers for numbers, _ in words], there)
            arrays = [flat.numpy() for flat in sent.flats]
            numbers = buckets.own_form(sent)[1]
            read = carried(self.group, forms, numbers, arrays)
        elif "exchange" in self._threads:
            forms, read = self.begin("exchange", self._told, sent, buckets).result()
        else:
            forms, read = self._told(sent, buckets)
        flats: list[list[Any]] = [theirs for _, theirs in read]
        if device is not None:
            flats = [[asarray(x, device=device) for x in theirs] for theirs in flats]
        return Found(forms, [numbers for numbers, _ in read], flats)

    def _told(self, sent: Sent, buckets: Buckets, *, tensors: bool = True) -> tuple[Any, Any]:
        """What it looks like that all ranks sent, and their numbers and arrays."""
        own, numbers = buckets.own_form(sent)
        arrays = [flat.numpy() for flat in sent.flats] if tensors else None
        forms = self.forms.of_all(own, buckets.notes(own))
        return forms, carried(self.group, forms, numbers, arrays)


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
        arrive: Arrival,
        inner: Backend,
        plan: BucketPlan,
        leaves: int,
    ) -> None:
        """Begin a step.

        Args:
            exchange: what carries them.
            arrive: what meets the others; it is called more than once.
            inner: the device of gradients.
            plan: what is in which bucket.
            leaves: how many parts all ranks have.
        """
        self._exchange, self._inner, self._leaves = exchange, inner, leaves
        self._plan, self.arrive = plan, arrive
        self._ready: dict[int, list[Any]] = {}
        self._sent: list[Future[Any]] = []
        self._form: tuple[Form, list[Any]] | None = None
        self._announced = False
        self.rows = exchange.rows(inner.base, leaves, plan.kinds, arrive)
        self.there = bytearray(len(plan))

    def ready(self, weights: Sequence[Tensor[Any]], sums: TreeSum[Any], behind: int) -> Ready:
        """Return what the backward pass of the last part is told, so that buckets leave in it.

        Args:
            weights: values of all parameters, in their order.
            sums: gradients of the parts before it.
            behind: how many empty parts come after it.
        """
        found = []
        for number, places in enumerate(self._plan.places):
            values = [weights[place] for place in places]
            found.append((values, partial(self._last, number, values, sums, behind)))
        return found

    def rest(self, weights: Sequence[Tensor[Any]], sums: TreeSum[Any]) -> None:
        """Send what the parts of this rank gave, if no pass has."""
        if len(self._ready) < len(self._plan.places):
            parts = sums.parts()
            held = [None if g is None else [g.get(value) for value in weights] for _, g in parts]
            self.send_all(self._plan.there(held), self._plan.rows(held))

    def send_all(self, there: bytes, rows: Sequence[list[Row]]) -> None:
        """Send all buckets that no pass has sent, of rows for each sum of this rank."""
        self.there[:] = bytes(a | b for a, b in zip(self.there, there, strict=True))
        for number, held in enumerate(rows):
            if number not in self._ready:
                self._send(number, held)

    def _last(
        self, number: int, values: list[Any], sums: TreeSum[Any], behind: int, grads: list[Any]
    ) -> None:
        """Add the gradients of the last part to those of a bucket, and send it."""
        before = sums.parts()
        total: TreeSum[Any] = TreeSum(sums.first, add=added)
        for node, each in before:
            total.join(node, None if each is None else [each.get(value) for value in values])
        total.add(grads)
        for _ in range(behind):
            total.add(None)
        held = [each for _, each in total.parts()]
        for k, place in enumerate(self._plan.places[number]):
            self.there[place] |= any(each is not None and each[k] is not None for each in held)
        self._send(number, held)

    def _send(self, number: int, held: Sequence[Row]) -> None:
        """Send a bucket when those before it were sent."""
        whole, on = self._plan.whole, self._inner
        if self.rows is not None:
            self._ready[number] = [whole(number, row, on) for row in held]
            self.rows.put(number, self._ready[number])
            return
        self._ready[number] = [None if row is None else whole(number, row, on) for row in held]
        while (following := len(self._sent)) in self._ready and len(self._plan.places) > 1:
            rows = self._ready[following]
            self._ready[following] = []  # those of this rank go with their last use
            begin = self._exchange.begin
            read = begin("read", self._read, following, rows)
            summed = begin("exchange", self._summed, following, read)
            self._sent.append(begin("write", self._written, summed))

    # What is small

    def own_form(self, sent: Sent) -> tuple[Form, list[Any]]:
        """Return what this rank's small values look like, and its numbers."""
        if self._form is None:
            self._form = self._exchange.forms.of((sent.there, sent.told))
        return self._form

    def announce(self, sent: Sent) -> None:
        """Tell what small values look like with the arrival, before anything is sent."""
        self._announced = self.arrive.announce(self._exchange.forms.note(self.own_form(sent)[0]))

    def notes(self, own: Form) -> list[int]:
        """Return what all ranks told, with their arrival or now. All are in the same case."""
        if self._announced:
            return self.arrive()
        self.arrive()
        return self.arrive.again(self._exchange.forms.note(own))

    def found(self, there: bytes) -> tuple[list[Tensor[Any]], Layout]:
        """Return the sums over all parts, a tensor for each bucket, and what is where.

        Args:
            there: which parameters have a gradient on any rank.
        """
        if self.rows is not None:
            wholes = [
                self.rows.summed(number, self._ready[number]).to_device(self._inner)
                for number in range(len(self._plan.places))
            ]
        elif len(self._plan.places) == 1:
            read: Future[Any] = Future()
            read.set_result(self._read(0, self._ready[0]))
            wholes = [asarray(self._summed(0, read), device=self._inner)]
        else:
            wholes = [each.result() for each in self._sent]
        return wholes, self._plan.layout(there)

    def _summed(self, number: int, read: Future[Any]) -> Any:
        held = read.result()
        self.arrive()
        out = self._exchange.room(number, held)
        return tree_sum(self._exchange.group, self._leaves, held, out)

    def _written(self, whole: Future[Any]) -> Tensor[Any]:
        return asarray(whole.result(), device=self._inner)

    def _read(self, number: int, rows: list[Any]) -> Any:
        """The rows of a bucket as an array."""
        dtype, size = self._plan.kinds[number]
        if len(rows) == 1 and rows[0] is not None:
            return rows[0].numpy()[None]
        kind = dtype.numpy
        absent = absent_of(kind)
        held = [np.full(size, absent, kind) if row is None else row.numpy() for row in rows]
        return np.array(held, kind).reshape(len(rows), size)
