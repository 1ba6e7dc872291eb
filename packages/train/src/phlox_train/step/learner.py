"""One whole step: parts, gradients, clipping, scaling, schedule, optimizer, statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, final

from phlox_fusion import compile as compiled
from phlox_nn import Module, Param, updates_of
from phlox_optim import (
    Gradients,
    LossScaling,
    Optimizer,
    OptimizerAdaptor,
    PlateauScheduler,
    Scheduler,
)
from phlox_record import Record
from phlox_tensor import ArgumentError, Backend, Tensor
from phlox_tensor.capture import Cell, drawing_from
from phlox_tensor.groups import (
    Group,
    TreeSum,
    broadcast_object,
    ranks_said,
    require_group,
)
from phlox_tensor.names import Named
from phlox_tensor.random import Generator, generator

from .._elsewhere import NAMES
from .batches import own_rows, parts_of, placed, recording, rows_of
from .buckets import Buckets, Gathered, Sent, plan_of
from .checks import require, require_group_for_shards, required_parts, required_schedule
from .data_parallel import (
    CHECKED,
    DataParallel,
    PartResult,
    gradients_of,
    group_over,
    present_on_any,
    sent_of,
    states_of,
    weights_of,
)
from .draws import go_to
from .ema import Ema
from .layout import BucketPlan, Layout, split
from .outputs import Forward, Outputs, detached, joined, outputs_of, weight_of
from .record import load_parts, record_of
from .small import Form
from .zero import BY_PARAMETER, Zero

M = TypeVar("M", bound=Module)


@final
class Learner(Named, Generic[M]):
    """A model, its optimizer and its schedule, which one call takes a step on.

    One order holds for all: parts, their weighted sum, its division by the whole weight and by
    the scale of the loss, clipping, schedule, optimizer, average. Random numbers of a step follow
    from seed, step and part, so they are the same after a restart.

    ``step``, ``update`` and ``load_record`` change the learner itself.

    Attributes:
        optimizer: what steps the model.
        schedule: what gives the rate of a step.
        scaling: the scaling of the loss, for half precision; or None.
        ema: an average of the model that steps keep; or None.
        microbatches: parts of a batch whose gradients are added up.
        seed: the seed of the random numbers of steps.
        rows: how many examples the whole batch has, where the next batch is this rank's share of
            one, as ``run.batches()`` gives them; None where batches are whole.

    Example:
        >>> learner = Learner(nn.Linear(2, 1, device="cpu").train(px.Autodiff("cpu")),
        ...                   optim.SgdConfig().init(), 0.1)
        >>> batch = {"x": px.ones((4, 2)), "y": px.ones((4, 1))}
        >>> def step(model, batch):
        ...     return (model(batch["x"]) - batch["y"]).square().mean()
        >>> losses = [learner.step(step, batch)["loss"].item() for _ in range(20)]
        >>> losses[-1] < 0.1 * losses[0], learner.steps
        (True, 20)
    """

    _elsewhere, _owner = NAMES, "learner"

    def __init__(  # noqa: PLR0913 - each is a choice of its own, by name
        self,
        model: M,
        optimizer: Optimizer,
        schedule: Scheduler | PlateauScheduler | float,
        *,
        microbatches: int | None = None,
        scaling: LossScaling | None = None,
        ema: float | None = None,
        seed: int | None = None,
        compile: bool = False,
        group: Group | None = None,
        shard_optimizer: bool = False,
    ) -> None:
        """Hold what a step changes.

        Args:
            model: one in training, on a device that records.
            optimizer: such as ``optim.AdamWConfig().init()``.
            schedule: the learning rate, or a schedule of it. A ``PlateauScheduler`` is given its
                measures by the loop.
            microbatches: into how many parts each batch is cut; by default as many as the job had
                processes first. It belongs to the numbers of an experiment, the group does not.
            scaling: multiplies losses; a step that is not finite is left out.
            ema: the decay of an average of the model, which ``learner.ema.model`` then is.
            seed: of dropout and the like in steps; by default that of the random stream in use.
            compile: record steps, and repeat them: the same numbers sooner.
            group: processes that take each step together, such as ``distributed.init()``. The
                model and seed of rank 0 are taken over.
            shard_optimizer: each rank keeps the states of its own share of parameters (ZeRO-1).
                All ranks call ``into_record``, which is whole on rank 0.

        Raises:
            ArgumentError: for a number of parts below 1, and a seed that is none.
            WrongTypeError: for what is no model, optimizer or schedule.
        """
        require(model, Module, "model", 'nn.Linear(4, 2, device=px.Autodiff("cpu"))')
        require(optimizer, Optimizer, "optimizer", "optim.AdamWConfig().init()")
        require(scaling, LossScaling | None, "scaling", "optim.LossScalingConfig().init()")
        if group is not None:
            require_group("Learner", group)
        self.device: Backend = recording(model)
        over = group_over(self.device)
        if over is not None:
            if group is not None and group is not over:
                got, hint = "one of the device, and another", "Learner(...)  # without group="
                what, expected = "two groups", "that of px.Distributed(device, group)"
                raise ArgumentError("Learner", what, got=got, expected=expected, hint=hint)
            group = over
        ranks = ranks_said("train.Learner", group)
        microbatches = required_parts(microbatches, group)
        require_group_for_shards(shard_optimizer, group)
        self.optimizer, self.scaling = optimizer, scaling
        self.schedule = required_schedule(schedule)
        self.microbatches = microbatches
        self.seed: int = generator().state()[0] if seed is None else seed
        self.parallel: DataParallel | None = None
        self._zero: Zero | None = None
        if group is not None and (ranks > 1 or over is not None):
            self.parallel = DataParallel(group, microbatches, self.device)
            if shard_optimizer:
                require(optimizer, OptimizerAdaptor, "optimizer", "optim.AdamWConfig().init()")
                self._zero = Zero(group, self.device)
            settings = (optimizer, self.schedule, scaling, ema, compile, shard_optimizer)
            model, self.seed = (
                self.parallel.same(model, *settings),
                broadcast_object(group, self.seed),
            )
        self.rows: int | None = None
        self.ema: Ema[M] | None = None if ema is None else Ema(model, ema)
        self._now, self._taken = Cell(model), Cell(0)  # the model, and how many steps it took
        self._whole = compiled(self._updated) if compile else self._updated
        self._part = compiled(self._scaled) if compile else self._scaled
        self._compile, self._meets = compile, over is not None
        self._plans: dict[bool, BucketPlan] = {}
        # One for each part where parts meet: they are in it at the same time.
        count = 1 if over is None else max(1, len(self.parallel.mine if self.parallel else ()))
        self._streams = [Generator(self.seed) for _ in range(count)]
        share = self._sent if over is None else self._sums
        self._computed: list[Any] = [compiled(share) if compile else share for _ in range(count)]

    @property
    def sharded(self) -> bool:
        """Whether its record takes all ranks, as each has states of its own."""
        return self._zero is not None

    @property
    def model(self) -> M:
        """The model after the last step; may be set."""
        return self._now.get()

    @model.setter
    def model(self, model: M) -> None:
        self._plans = {}
        self._now.set(model)
        if self.parallel is not None:
            self.parallel.follow(model)

    @property
    def steps(self) -> int:
        """How many steps were made, those among them that scaling left out."""
        return self._taken.get()

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return self.schedule.rate

    def step(self, forward: Forward, batch: Any) -> Outputs:
        """Take a step on a batch, and return what the function gave, without history.

        Args:
            forward: a function of a model and a batch, which gives a loss, or a dict with
                ``"loss"``. It is the mean over the examples of the batch; where it is one over
                something else, such as tokens, ``"weight"`` says how many.
            batch: a tree, whose arrays come to the device of the model. With a group it is the
                whole batch on each rank, of which each takes its parts; ``run.batches()`` gives
                shares. Results with axes are those of the rank's own examples.

        Raises:
            ArgumentError: for a batch whose examples cannot be counted, where it has parts.
            WrongTypeError: for a function that gives no loss.
        """
        if self.parallel is not None:
            return self._with_others(self.parallel, forward, batch)
        batch = placed(batch, self.device)
        parts = [batch] if self.microbatches == 1 else parts_of(batch, self.microbatches)
        if self.scaling is None:
            return self._whole(forward, parts)
        return self._skipping(forward, parts, self.scaling)

    def update(self, loss: Tensor[Any] | Gradients) -> None:
        """Take a step by a loss that was computed for the model, or by its gradients.

        It is for loops with several losses or backward passes; ``microbatches`` do not count. With
        a group, each rank gives the loss of its own examples, and the step is by their mean.

        Raises:
            GradientError: as ``Optimizer.step``.
        """
        if self.parallel is not None:
            self._update_with_others(self.parallel, loss)
        elif not isinstance(loss, Tensor):
            self._apply(loss)
        elif self.scaling is None:
            self._apply(loss.backward())
        else:
            grads = self.scaling.scaled(loss).backward()
            self._apply_scaled(grads, self.scaling)

    def _updated(self, forward: Forward, parts: list[Any]) -> Outputs:
        """A step without scaling; it may be compiled."""
        grads, out, total = self._gradients(forward, parts, None)
        self._apply(grads, total)
        return out

    def _scaled(self, forward: Forward, parts: list[Any], scale: float) -> Any:
        """Gradients of a scaled loss as a module, new values for state by id, and outputs."""
        grads, out, total = self._gradients(forward, parts, scale)
        if total != 1.0:
            grads = grads / total
        model = self.model
        state = {key: p.value for key, p in updates_of(model, grads).params(model).items()}
        return grads.of(model), state, out

    def _skipping(self, forward: Forward, parts: list[Any], scaling: LossScaling) -> Outputs:
        """A step with scaling, which is left out where gradients are not finite."""
        grads, state, out = self._part(forward, parts, scaling.scale)
        if self._apply_scaled(grads, scaling) and state:
            params = {p.id: p for p in self.model.param_list() if p.id in state}
            new = {key: params[key].with_value(value) for key, value in state.items()}
            self._now.set(self.model.with_params(new))
        return out

    def _with_others(self, parallel: DataParallel, forward: Forward, batch: Any) -> Outputs:
        """A step of which other ranks compute the other parts."""
        mine, count, given = parallel.mine, self.microbatches, batch
        place = parallel.place(self.steps, batch, self.rows)
        parts, rows = list[Any](), self.rows
        if mine:  # other ranks' rows do not come to the device
            if count > 1 and rows is None:
                batch, rows = own_rows(batch, count, mine)
            batch = placed(batch, self.device)
            parts = [batch] if count == 1 else parts_of(batch, count, mine, rows)
        scale = None if self.scaling is None else self.scaling.scale
        plan = self._plan(at_once=self._compile or self._meets)
        buckets = parallel.buckets(plan, count, place)
        if self._meets:
            rows = None if count == 1 else rows or rows_of(given)
            met = parallel.met(self._computed, forward, parts, rows, scale)
            gradients, sent, own = sent_of(plan, *met)
        elif self._compile:
            gradients, sent, own = self._computed[0](forward, parts, mine.start, scale)
        else:
            sums, seen = self._over(forward, parts, mine.start, scale, buckets)
            buckets.rest([param.value for param in weights_of(self.model)], sums)
            return self._finish(parallel, buckets, *sent_of(plan, [], seen)[1:])
        buckets.announce(sent)  # all gradients are there by now
        buckets.send_all(sent.present, gradients)
        return self._finish(parallel, buckets, sent, own)

    def _plan(self, *, at_once: bool) -> BucketPlan:
        """Which gradients travel together: the same ones until the model is another."""
        if at_once not in self._plans:
            self._plans[at_once] = plan_of(weights_of(self.model), at_once=at_once)
        return self._plans[at_once]

    def _sent(self, forward: Forward, parts: Sequence[Any], first: int, scale: float | None) -> Any:
        """What this rank sends of a step, and results of its parts; it may be compiled."""
        held, seen = self._sums(forward, parts, first, scale)
        results = [None if part is None else PartResult(*part) for part in seen]
        return sent_of(self._plan(at_once=True), held, results)

    def _sums(
        self,
        forward: Forward,
        parts: Sequence[Any],
        first: int,
        scale: float | None,
        stream: int = 0,
    ) -> Any:
        """Sums of gradients over some parts, and what each gave besides; it may be compiled."""
        sums, seen = self._over(forward, parts, first, scale, stream=stream)
        held = [
            None if grads is None else [grads.get(p.value) for p in weights_of(self.model)]
            for _, grads in sums.parts()
        ]
        return held, [None if part is None else tuple(part) for part in seen]

    def _over(
        self,
        forward: Forward,
        parts: Sequence[Any],
        first: int,
        scale: float | None,
        buckets: Buckets | None = None,
        stream: int = 0,
    ) -> tuple[TreeSum[Any], list[PartResult | None]]:
        """Sums of gradients over some parts, and what each gave besides.

        With ``buckets``, the pass of the last part sends all sums, and does not add to them.
        """
        model, step = self._now.get(), self._taken.get()
        states = [] if self.parallel is None else states_of(model)
        last = max((k for k, part in enumerate(parts) if part is not None), default=-1)
        sums: TreeSum[Any] = TreeSum(first)
        seen: list[PartResult | None] = []
        for number, part in enumerate(parts, first):
            if part is None:
                sums.add(None)
                seen.append(None)
                continue
            numbers = self._streams[stream]
            go_to(numbers, self.seed, step, number)
            out = drawing_from(numbers, outputs_of, forward, model, part)
            weight = weight_of(out, part) if self.microbatches > 1 else None
            ready = None
            if buckets is not None and number - first == last:
                values = [param.value for param in weights_of(model)]
                ready = buckets.ready(values, sums, len(parts) - 1 - last)
            grads = gradients_of(out["loss"], weight, scale, ready)
            sums.add(grads if ready is None else None)
            proposed = [grads.proposals(p.value) for p in states]
            seen.append(PartResult(proposed, detached(out), weight))
        return sums, seen

    def _update_with_others(self, parallel: DataParallel, loss: Any) -> None:
        """A step by the mean of what all ranks give."""
        size, grads = parallel.group.size, loss
        plan, weights = self._plan(at_once=False), [p.value for p in weights_of(self.model)]
        buckets = parallel.buckets(plan, size, f"update {self.steps}")
        sums: TreeSum[Any] = TreeSum(parallel.group.rank)
        if isinstance(loss, Tensor):
            scaled = loss if self.scaling is None else self.scaling.scaled(loss)
            grads = scaled.backward(ready=buckets.ready(weights, sums, 0))
        else:
            sums.add(grads)
            buckets.rest(weights, sums)
        states = [grads.proposals(p.value) for p in states_of(self.model)]
        _, sent, own = sent_of(plan, [], [PartResult(states, {}, None)])
        self._finish(parallel, buckets, sent, own, size)

    def _finish(
        self,
        parallel: DataParallel,
        buckets: Buckets,
        sent: Sent,
        own: list[Outputs],
        ranks: int | None = None,
    ) -> Outputs:
        """Step by what all ranks gave, or by its mean over so many; at times compare their bits."""
        sent = sent._replace(present=bytes(buckets.present))
        found = parallel.gathered(sent, buckets, tensors=not self._plain)
        sums, layout = buckets.summed(present_on_any(found.forms))
        form = (layout, ranks, *found.forms)
        make = partial(self._made_finish, parallel, layout, found.forms, ranks)
        finish = parallel.finishes.of(form, make)
        out = finish(sums, found.numbers, found.flats, own)
        if self.steps % CHECKED == 0:
            parallel.check(self.model)
        return out

    def _made_finish(
        self, parallel: DataParallel, layout: Layout, forms: list[Form], ranks: int | None
    ) -> Callable[..., Outputs]:
        """A function that steps by buckets of this layout, and values that look like these."""

        def finish(sums: Any, numbers: Any, flats: Any, own: list[Outputs]) -> Outputs:
            model = self.model
            updates, out, total = parallel.joined(model, Gathered(forms, numbers, flats), own)
            self._apply_all(layout, sums, total if ranks is None else ranks, updates.params(model))
            return out

        return finish if self._plain else compiled(finish)

    @property
    def _plain(self) -> bool:
        """Whether the end of a step is not compiled: it looks at gradients, or talks to others."""
        return not self._compile or self._zero is not None or self.scaling is not None

    def _apply_all(self, layout: Layout, sums: Any, total: Any, new: dict[str, Param]) -> None:
        """Step by sums over all parts, and take over new values for state."""
        if isinstance(total, Tensor):  # of the function's own counting
            divisor = total if self.device.inner is None else total.to_device(self.device.inner)
            sums, total = [g / divisor.astype(g.dtype) for g in sums], 1.0
        if self.scaling is None:
            self._now.set(self.model.with_params(new))
            self._apply(split(layout, sums), total)
            return
        if total != 1.0:
            sums = [g / total for g in sums]
        if self._apply_scaled(split(layout, sums), self.scaling):
            self._now.set(self.model.with_params(new))

    def _gradients(self, forward: Forward, parts: list[Any], scale: float | None) -> Any:
        """The gradients of all parts together, their outputs, and a number to divide by."""
        grads, seen = self._over(forward, parts, 0, scale)
        full = [part for part in seen if part is not None]
        if self.microbatches == 1:
            return grads.value(), full[0].out, 1.0
        total: TreeSum[Any] = TreeSum()
        for part in seen:
            total.add(None if part is None else part.weight)
        whole = total.value()
        out = joined([part.out for part in full], [part.weight for part in full], whole)
        if isinstance(whole, Tensor):  # of the function's own counting: it stays on the device
            return grads.value() / whole, out, 1.0
        return grads.value(), out, whole

    def _apply(self, grads: Gradients | dict[str, Tensor[Any]], total: float = 1.0) -> None:
        model, steps = self._now.get(), self.steps
        by_id: Any = grads
        only: Any = {} if self._zero is None else {"only": self._zero.own(model)}
        model = self.optimizer.step(self._next_rate(), model, grads, divide_by=total, **only)
        self._stepped(model if self._zero is None else self._zero.spread(model, by_id), steps)

    def _apply_scaled(self, grads: Any, scaling: LossScaling) -> bool:
        """Step by scaled gradients, and say whether they were finite."""
        before = self.optimizer.skipped
        zero, rate = self._zero, self.schedule.rate
        own = None if zero is None else zero.own(self.model)
        model = scaling.step(self.optimizer, rate, self.model, grads, only=own)
        if done := self.optimizer.skipped == before:
            self._next_rate()
            self._stepped(model if zero is None else zero.spread(model, grads), self.steps)
        else:
            self._taken.set(self.steps + 1)
        return done

    def _next_rate(self) -> float:
        schedule = self.schedule
        return schedule.step() if isinstance(schedule, Scheduler) else schedule.rate

    def _stepped(self, model: M, before: int) -> None:
        self._now.set(model)
        self._taken.set(before + 1)
        if self.ema is not None:
            self.ema.update(model)

    def into_record(self) -> dict[str, Record]:
        """Return model, optimizer, schedule and counts as a tree."""
        record = self.own_record()
        if self._zero is not None:
            record["optimizer"] = self._zero.whole(self.optimizer.into_record(), self.model)
        return record

    def own_shard(self) -> dict[str, Record]:
        """Return what only this rank keeps, where it is ``sharded``: states of the optimizer."""
        record = self.optimizer.into_record()
        return {"optimizer": {key: record[key] for key in BY_PARAMETER if key in record}}

    def own_record(self) -> dict[str, Record]:
        """Return the record with the states that this rank keeps; of no other where sharded."""
        return record_of(self)

    def load_record(self, record: Record) -> Learner[M]:
        """Take over all of a record, and return the learner itself.

        Raises:
            RecordError: when the record is not one of such a learner.
        """
        self.model, steps = load_parts(self, record, self._zero)
        self._taken.set(steps)
        return self

    def __repr__(self) -> str:
        return f"<Learner of {type(self.model).__name__} after {self.steps} steps>"
