"""Steps of several ranks: what each has of a batch, and what all of them make of it together.

A batch is so many parts, and a rank computes a few of them. Gradients are added in the tree of all
parts; what is small, such as losses and running statistics, goes to all ranks part by part. So each
rank takes the step that one process alone would take, to the bit.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from operator import is_
from typing import Any, Final, NamedTuple, TypeVar, final
from zlib import crc32

import numpy as np

from phlox_nn import Module, Param, Updates
from phlox_record import NamedMsgpackRecorder
from phlox_tensor import (
    Backend,
    DisagreementError,
    Distributed,
    Proposed,
    Ready,
    Tensor,
    asarray,
    where,
    zeros,
)
from phlox_tensor.groups import (
    Group,
    Meeting,
    TreeSum,
    all_gather_object,
    broadcast_object,
    share_of,
)
from phlox_tensor.names import warn_user

from .buckets import Buckets, Exchange, Gathered, Sent
from .facts import facts_of, parameters_of, require_same
from .layout import BucketPlan, Row, added
from .outputs import Outputs, joined_as, mean_of, weighted
from .places import Arrival, checked_barrier, fingerprint
from .small import Form, marked

M = TypeVar("M", bound=Module)

# Steps between two comparisons of the parameters of all ranks.
CHECKED: Final = 100
_FINISHES: Final = 8  # that are kept
_RECORDER: Final = NamedMsgpackRecorder()


class PartResult(NamedTuple):
    """What a part of a batch leaves besides its gradients.

    Attributes:
        states: what it proposes for each state of the model.
        out: what the function of the step gave.
        weight: how much it counts; None where it is the only one.
    """

    states: list[tuple[Tensor[Any], ...]]
    out: Outputs
    weight: Any


@final
class Finishes:
    """Ends of steps, one for each form of what ranks send, such as that of a short batch."""

    def __init__(self) -> None:
        """Begin without any."""
        self._known: list[tuple[Sequence[Any], Callable[..., Outputs]]] = []

    def of(
        self, form: Sequence[Any], make: Callable[[], Callable[..., Outputs]]
    ) -> Callable[..., Outputs]:
        """Return the one for a form, whose parts are told apart by identity."""
        for known, function in self._known:
            if len(known) == len(form) and all(map(is_, known, form)):
                return function
        self._known = [*self._known[1 - _FINISHES :], (form, make())]
        return self._known[-1][1]


@final
class DataParallel:
    """One rank's side of the steps that all ranks take."""

    def __init__(self, group: Group, parts: int, device: Backend) -> None:
        """Note which parts of a batch are this rank's."""
        self.group, self.parts = group, parts
        self.mine = share_of(parts, group.rank, group.size)
        if parts < group.size and group.rank == 0:
            text = f"{group.size - parts} of {group.size} ranks have no part of a batch"
            hint = f"Learner(..., microbatches={group.size}), or a multiple of it"
            warn_user(f"[Learner] {text}\nhint: {hint}")
        self._device = device
        self._inner = device if device.inner is None else device.inner
        self._exchange = Exchange(group)
        self.finishes = Finishes()
        self.batch = ""  # of a run, which says where it is
        self._first = ""  # what parameters were when ranks were compared
        self._model = ""  # a note for the others, once parameters are no longer those
        self._alike: bool | None = None  # whether the first batch was the same on all ranks

    def same(self, model: M, *settings: object) -> M:
        """Return the model of rank 0, ids of parameters included.

        Raises:
            ArgumentError: on all ranks, where settings or models differ: parameters would drift.
        """
        facts = facts_of(model, self._inner, (self.parts, *settings))
        require_same(self.group, facts)
        leads = self.group.rank == 0
        data = broadcast_object(
            self.group, _RECORDER.to_bytes(model.into_record()) if leads else None
        )
        self._first = repr(parameters_of(model))
        if leads:
            return model
        return model.load_record(_RECORDER.from_bytes(data, dtype="stored"))

    def follow(self, model: Module) -> None:
        """Tell the others with the next step where parameters are no longer what they were."""
        now = repr(parameters_of(model))
        other = now != self._first
        self._model = f", other parameters {crc32(now.encode()):08x}" if other else ""

    def place(self, step: int, batch: Any, rows: int | None) -> str:
        """Return what the ranks that take a step have in common.

        Args:
            step: how many were taken.
            batch: that is the same on all ranks, where the first one was.
            rows: the rows of the whole batch, where this is a share of one.
        """
        place = f"step {step}{self.batch}"
        if self.group.size == 1:
            return place
        if rows is None and self._alike is None:
            checked_barrier(self.group, f"the first batch, at {place}")
            self._alike = self._compare(batch)
        return place if rows or not self._alike else f"{place}, data {fingerprint(batch):08x}"

    def _compare(self, batch: Any) -> bool:
        """Warn where ranks are given other batches, such as shares: parts of each are left out."""
        alike = len(set(all_gather_object(self.group, fingerprint(batch, everywhere=True)))) == 1
        if not alike and self.group.rank == 0:
            text = "ranks are given other batches, and each computes its parts of its own alone"
            hint = "for batch in run.batches(): learner.step(forward, batch); or one batch on all"
            warn_user(f"[Learner] {text}\nhint: {hint}")
        return alike

    def check(self, model: Module) -> None:
        """Compare the bits of the parameters with those of the other ranks."""
        digest = hashlib.blake2b(digest_size=8)
        for param in model.param_list():
            array = np.ascontiguousarray(param.value.detach().numpy())
            digest.update(array.reshape(-1).view(np.uint8).data)  # bfloat16 has no format
        found = all_gather_object(self.group, digest.hexdigest())
        (usual, count), *others = Counter(found).most_common()
        if others:
            odd = [str(rank) for rank, each in enumerate(found) if each != usual]
            what = (
                f"the parameters of rank {', '.join(odd)} have other bits than those of the others"
            )
            if 2 * count <= len(found):  # nobody can say which are wrong
                what = "the parameters of the ranks have other bits"
            raise DisagreementError(
                "step",
                what,
                got=", ".join(found[int(rank)] for rank in odd),
                expected=usual,
                hint="what some ranks alone did to the model; versions that differ: init() says "
                "so; else memory or a processor may be damaged",
            )

    def buckets(self, plan: BucketPlan, leaves: int, place: str) -> Buckets:
        """Return what exchanges the gradients of a step of so many parts; ``place`` says which."""
        arrive = Arrival(self.group, place + self._model)
        if group_over(self._device) is not None:
            arrive()  # the forward pass exchanges, too
        return Buckets(self._exchange, arrive, self._inner, plan, leaves)

    def met(
        self, shares: Sequence[Any], forward: Any, parts: list[Any], rows: int | None, scale: Any
    ) -> tuple[list[Any], list[PartResult | None]]:
        """Return what parts give that meet in collectives, so that they have to run together.

        Args:
            shares: what computes a part, one for each of them.
            forward: the function of the step.
            parts: the parts of this rank, None for empty ones.
            rows: the rows of the whole batch; None where it is one part.
            scale: the scale of the loss.
        """
        count, size = self.parts, self.group.size
        full = [rows is None or v * rows // count < (v + 1) * rows // count for v in range(count)]
        counts = [sum(full[v] for v in share_of(count, rank, size)) for rank in range(size)]
        given = [k for k, part in enumerate(parts) if part is not None]
        calls = [
            partial(shares[k], forward, parts[k : k + 1], self.mine.start + k, scale, k)
            for k in given
        ]
        found = dict(zip(given, Meeting(self.group, counts).run(calls), strict=True))
        sums: TreeSum[Any] = TreeSum(self.mine.start, add=added)
        seen: list[PartResult | None] = []
        for k in range(len(parts)):
            (held,), (one,) = found.get(k, ([None], [None]))
            sums.add(held)
            seen.append(None if one is None else PartResult(*one))
        return [each for _, each in sums.parts()], seen

    def gathered(self, sent: Sent, buckets: Buckets, *, tensors: bool = True) -> Gathered:
        """Return what the parts of all ranks give besides gradients.

        A compiled function takes it as tensors; as arrays it costs less.
        """
        return self._exchange.gathered(sent, buckets, self._inner if tensors else None)

    def joined(
        self, model: Module, found: Gathered, own: list[Outputs]
    ) -> tuple[Updates, Outputs, Any]:
        """Return what all parts give together: updates of state, results, what to divide by.

        Args:
            model: the one whose gradients they are.
            found: what the parts of all ranks give besides gradients.
            own: results of the parts of this rank.
        """
        trees = map(Form.value, found.forms, found.flats, found.numbers, repeat(self._inner))
        parts = [part for _, theirs in trees for part in theirs]
        full = [part for part in parts if part is not None]
        updates = self._updates(model, [states for states, _, _ in full])
        if full[0][2] is None:  # whole batches, of which another rank may have none
            out = own[0] if own else {k: self._tensor(x) for k, x in full[0][1].items()}
            return updates, out, 1.0
        return updates, *self._outputs(own, parts, full)

    def _updates(self, model: Module, parts: list[list[list[Any]]]) -> Updates:
        """New values for state: of what all parts propose, in their order, as one process does."""
        updates = Updates()
        for place, param in enumerate(states_of(model)):
            proposed = [asarray(x, device=self._inner) for part in parts for x in part[place]]
            value = Proposed.joined(proposed, param.value.detach())
            if value is not None:
                updates.add(param, value)
        return updates

    def _outputs(self, own: list[Outputs], parts: list[Any], full: list[Any]) -> Any:
        """Means over all parts, and of what has axes the rows of this rank; the whole weight."""
        total: TreeSum[Any] = TreeSum()
        for part in parts:
            weight = None if part is None else part[2]
            held = isinstance(weight, np.ndarray | Tensor)
            total.add(self._tensor(weight) if held else weight)
        whole = total.value()
        out: Outputs = {}
        small = full[0][1]
        for name in own[0] if own else small:
            if name == "weight":
                out[name] = whole
            elif name in small and not small[name].ndim:
                out[name] = mean_of([self._tensor(values[name]) for _, values, _ in full], whole)
            elif own:
                out[name] = joined_as(name, [each[name] for each in own])
            else:
                out[name] = self._tensor(small[name])
        return out, whole

    def _tensor(self, value: Any) -> Tensor[Any]:
        return asarray(value, device=self._device)


def gradients_of(
    loss: Tensor[Any], weight: Any, scale: float | None, ready: Ready | None = None
) -> Any:
    """Return the gradients of a loss that counts so much; 0 where it counts nothing."""
    loss = loss if weight is None else loss * weight
    loss = loss if scale is None else loss * scale
    if not isinstance(weight, Tensor):
        return loss.backward(ready=ready)
    inner = weight.device.inner
    empty = (weight if inner is None else weight.to_device(inner)) == 0

    def cleaned(gradient: Any) -> Any:
        # Such as of a mean over no tokens, which is nan: times 0 it stays nan.
        return None if gradient is None else where(empty, 0.0, gradient)

    def after(function: Callable[[list[Any]], object]) -> Callable[[list[Any]], object]:
        return lambda grads: function([cleaned(gradient) for gradient in grads])

    clean = None if ready is None else [(leaves, after(function)) for leaves, function in ready]
    return loss.backward(ready=clean).map(cleaned)


def group_over(device: Backend) -> Group | None:
    """Return the group of a device whose parts meet; None where they do not."""
    inside: Backend | None = device
    while inside is not None and not isinstance(inside, Distributed):
        inside = inside.inner
    return None if inside is None else inside.processes


def weights_of(model: Module) -> list[Param]:
    """Return the trained parameters of a model, in an order that all ranks share."""
    return [param for param in dict.fromkeys(model.param_list()) if param.trainable]


def states_of(model: Module) -> list[Param]:
    """Return what a model holds besides weights, such as running statistics."""
    return [param for param in dict.fromkeys(model.param_list()) if param.role == "state"]


def present_on_any(forms: Sequence[Form]) -> bytes:
    """Return 1 or 0 by parameter: whether any rank has its gradient."""
    first, *others = [form.marks[0] for form in forms]
    return bytes(map(max, first, *others)) if others else bytes(first)


def sent_of(
    plan: BucketPlan, held: Sequence[list[Any] | None], seen: Sequence[PartResult | None]
) -> tuple[list[list[Row]], Sent, list[Outputs]]:
    """Return what a rank sends, rows of gradients and what is small; its own results stay.

    Args:
        plan: which gradients travel together.
        held: gradients by parameter for each sum of this rank.
        seen: what else its parts gave, None for empty ones.
    """
    tree, flats = marked([None if part is None else _small(part) for part in seen])
    own = [part.out for part in seen if part is not None]
    return plan.rows(held), Sent(plan.present(held), tree, flats), own


def _small(part: PartResult) -> tuple[list[list[Any]], dict[str, Any], Any]:
    """A part as what travels: what it proposes, weighted values without axes, its weight.

    Of what has axes no rows travel: they tell ranks without a part the name and the shape.
    """
    states = [list(values) for values in part.states]
    small: dict[str, Any] = {}
    for name, value in part.out.items():
        if name == "weight":
            small[name] = value
        elif isinstance(value, Tensor) and value.ndim:
            small[name] = zeros((0, *value.shape[1:]), dtype=value.dtype, device=value.device)
        elif isinstance(value, Tensor):
            small[name] = value if part.weight is None else weighted(value, part.weight)
    return states, small, part.weight
