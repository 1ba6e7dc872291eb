"""The exchange of gradients with other ranks: buckets travel while a pass computes the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple, cast, final

import numpy as np

from phlox_nn import Param
from phlox_tensor import Backend, Ready, Tensor, asarray
from phlox_tensor.groups import Group, TreeSum, absent_of, tree_sum

from .gpu_exchange import GpuExchange, Kinds, Rows, gpu_exchange_of
from .layout import BucketPlan, Layout, Row, added
from .places import Arrival
from .small import Form, Forms, carried

# Elements of a bucket, 8 MB of float32: a few for a model, each long enough for a network. Twice as
# many where all gradients come at once, as no computation is left to hide their way.
LIMIT: Final = 1 << 21


class Sent(NamedTuple):
    """What a rank sends in a step besides gradients.

    Attributes:
        present: 1 or 0 by parameter: whether it has a gradient.
        tree: the results of its parts, with texts in place of tensors.
        flats: the elements of those tensors, one flat tensor for each element type.
    """

    present: bytes
    tree: Any
    flats: list[Tensor[Any]]


class Gathered(NamedTuple):
    """What all ranks sent, a row for each: its form, its numbers, its flat tensors or arrays."""

    forms: list[Form]
    numbers: list[list[Any]]
    flats: list[list[Any]]


def plan_of(weights: Sequence[Param], *, at_once: bool) -> BucketPlan:
    """Return the plan of buckets; larger ones if all gradients come at once, after the pass."""
    return BucketPlan(weights, LIMIT << at_once)


@final
class Exchange:
    """Threads that read from the device, talk to other ranks and write; they start when needed.

    Attributes:
        forms: the forms of small values, which all ranks know.
    """

    def __init__(self, group: Group) -> None:
        """Begin without threads."""
        self.group, self.forms = group, Forms(group)
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._rooms: dict[Any, Any] = {}
        self._asked, self._gpus = False, cast("GpuExchange | None", None)

    def begin(self, does: str, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call a function in the thread of this name, after the calls that it was given before."""
        if does not in self._threads:
            self._threads[does] = ThreadPoolExecutor(1, thread_name_prefix=f"phlox-{does}")
        return self._threads[does].submit(function, *args)

    def room(self, number: int, held: Any) -> Any:
        """Return memory for the sum of a bucket, the same in each step: new memory costs time."""
        key = number, held.shape[1], held.dtype
        if key not in self._rooms:
            self._rooms[key] = np.empty(held.shape[1], held.dtype)
        return self._rooms[key]

    def rows(
        self, base: Backend, leaves: int, kinds: Kinds, arrive: Callable[[], Any]
    ) -> Rows | None:
        """Return what adds up buckets of these kinds on the GPUs; None where the host has to."""
        if not self._asked:
            arrive()  # as the ranks tell each other what they can
            self._gpus, self._asked = gpu_exchange_of(self.group, base), True
        shared = self._gpus
        # With one leaf the sum would lie in memory that the next step writes.
        return None if shared is None or leaves < 2 or not kinds else shared.rows(leaves, kinds)

    def gathered(self, sent: Sent, buckets: Buckets, device: Backend | None) -> Gathered:
        """Return what all ranks sent, after all exchanges that were begun.

        Args:
            sent: what this rank sends.
            buckets: its gradients.
            device: the device of the returned tensors; None for arrays of the host.
        """
        if buckets.rows is not None:
            assert self._gpus is not None
            forms, words = self._told(sent, buckets, tensors=False)
            tensors = self._gpus.carried(sent.flats, forms)
            if tensors is not None:
                return Gathered(forms, [numbers for numbers, _ in words], tensors)
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
        return Gathered(forms, [numbers for numbers, _ in read], flats)

    def _told(self, sent: Sent, buckets: Buckets, *, tensors: bool = True) -> tuple[Any, Any]:
        """The forms of what all ranks sent, and their numbers and arrays."""
        own, numbers = buckets.own_form(sent)
        arrays = [flat.numpy() for flat in sent.flats] if tensors else None
        forms = self.forms.of_all(own, buckets.notes(own))
        return forms, carried(self.group, forms, numbers, arrays)


@final
class Buckets:
    """The gradients of one step, which leave for the other ranks bucket by bucket.

    All ranks send the buckets of all parameters in one order, even if a rank lacks some gradients.
    Those travel as minus zero, which changes no sum.

    Attributes:
        present: 1 or 0 by parameter: whether this rank has its gradient.
        rows: what adds up gradients on the GPUs; None where the host does.
        arrive: meets the other ranks before the first exchange.
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
        self.present = bytearray(len(plan))

    def ready(self, weights: Sequence[Tensor[Any]], sums: TreeSum[Any], empty: int) -> Ready:
        """Return what the last part's backward pass calls as gradients are ready, to send buckets.

        Args:
            weights: values of all parameters, in their order.
            sums: gradients of the parts before it.
            empty: how many empty parts come after it.
        """
        calls = []
        for number, places in enumerate(self._plan.places):
            values = [weights[place] for place in places]
            calls.append((values, partial(self._last, number, values, sums, empty)))
        return calls

    def rest(self, weights: Sequence[Tensor[Any]], sums: TreeSum[Any]) -> None:
        """Send the gradients of this rank's parts, if no pass has sent them."""
        if len(self._ready) < len(self._plan.places):
            parts = sums.parts()
            held = [None if g is None else [g.get(value) for value in weights] for _, g in parts]
            self.send_all(self._plan.present(held), self._plan.rows(held))

    def send_all(self, present: bytes, rows: Sequence[list[Row]]) -> None:
        """Send the buckets that no pass has sent; they have a row for each sum of this rank."""
        self.present[:] = bytes(a | b for a, b in zip(self.present, present, strict=True))
        for number, held in enumerate(rows):
            if number not in self._ready:
                self._send(number, held)

    def _last(
        self, number: int, values: list[Any], sums: TreeSum[Any], empty: int, grads: list[Any]
    ) -> None:
        """Add the gradients of the last part to those of a bucket, and send it."""
        before = sums.parts()
        total: TreeSum[Any] = TreeSum(sums.first, add=added)
        for node, each in before:
            total.join(node, None if each is None else [each.get(value) for value in values])
        total.add(grads)
        for _ in range(empty):
            total.add(None)
        held = [each for _, each in total.parts()]
        for k, place in enumerate(self._plan.places[number]):
            self.present[place] |= any(each is not None and each[k] is not None for each in held)
        self._send(number, held)

    def _send(self, number: int, held: Sequence[Row]) -> None:
        """Send a bucket once those before it were sent."""
        whole, on = self._plan.whole, self._inner
        if self.rows is not None:
            self._ready[number] = [whole(number, row, on) for row in held]
            self.rows.put(number, self._ready[number])
            return
        self._ready[number] = [None if row is None else whole(number, row, on) for row in held]
        while (following := len(self._sent)) in self._ready and len(self._plan.places) > 1:
            rows = self._ready[following]
            self._ready[following] = []  # so that the rows are freed after their last use
            begin = self._exchange.begin
            read = begin("read", self._read, following, rows)
            summed = begin("exchange", self._summed, following, read)
            self._sent.append(begin("write", self._written, summed))

    # What is small

    def own_form(self, sent: Sent) -> tuple[Form, list[Any]]:
        """Return the form of this rank's small values, and its numbers."""
        if self._form is None:
            self._form = self._exchange.forms.of((sent.present, sent.tree))
        return self._form

    def announce(self, sent: Sent) -> None:
        """Let this rank's arrival tell the others the form of its small values."""
        self._announced = self.arrive.announce(self._exchange.forms.note(self.own_form(sent)[0]))

    def notes(self, own: Form) -> list[int]:
        """Return the notes of all ranks, given as they arrived or now: the same for all ranks."""
        if self._announced:
            return self.arrive()
        self.arrive()
        return self.arrive.again(self._exchange.forms.note(own))

    def summed(self, present: bytes) -> tuple[list[Tensor[Any]], Layout]:
        """Return the sums over all parts, a tensor for each bucket, and their layout.

        Args:
            present: 1 or 0 by parameter: whether any rank has its gradient.
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
        return wholes, self._plan.layout(present)

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
