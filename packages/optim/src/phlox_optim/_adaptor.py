"""The adaptor that makes an optimizer for modules out of a rule for tensors."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from types import NoneType
from typing import Any, Final, NamedTuple, final

from phlox_nn import Config, Module, Param, updates_of
from phlox_record import Keyed, Record
from phlox_tensor import Float, GradientError, Tensor, WrongTypeError
from phlox_tensor.arguments import usage
from phlox_tensor.capture import Cell, Number, recording, register_state, wrap
from phlox_tensor.names import some

from . import _groups, _state
from ._clipping import GradientClipping
from ._dropped import KEEP, LastStep, dropped_inside
from ._found import check_divisor, check_rate, find
from ._groups import Group, Vectors
from ._optimizer import AnyGradients, M, Optimizer
from ._reading import refuse_recorded
from ._rule import SimpleOptimizer, State, misfit
from ._settled import Settled, no_record, settings_of


class _Group(NamedTuple):
    """Parameters that step together: of one device, with states that differ in tensors alone."""

    indices: tuple[int, ...]  # of the optimizer's groups that they are in
    params: list[Param]
    tensors: list[Tensor[Float]]  # the values on the inner device
    grads: list[Tensor[Float]]
    states: list[State]


class _Content(NamedTuple):
    """What an optimizer remembers: states by parameter id, and counts of steps."""

    kept: dict[str, State]
    steps: int
    skipped: int
    owners: dict[str, str]  # by parameter id the rule of its state, where there are several


class _Part(NamedTuple):
    """A group of the last step: which of all parameters were in it, and their states."""

    indices: tuple[int, ...]
    rows: list[int]
    states: list[State]

    def of(self, params: list[Param], grads: list[Tensor[Float]]) -> _Group:
        """Return the group again, of other parameters and gradients that look the same."""
        mine = [params[row] for row in self.rows]
        return _Group(
            self.indices, mine, _inner(mine), [grads[row] for row in self.rows], self.states
        )


class _Layout(NamedTuple):
    """What the last step was made of; no numbers of a model.

    Where the next step looks the same, it need not be sorted into groups again.
    """

    parts: list[_Part]
    by_id: _groups.GroupIndices  # which groups each parameter was in
    seen: list[Any]  # id, shape, element type, device of each, and those of its gradient
    kept: dict[str, State]  # all states after that step, to see that nobody changed them


def _parts(
    groups: list[_Group], params: list[Param], grads: list[Tensor[Float]], states: dict[str, State]
) -> list[_Part]:
    """The groups of a step without numbers; none where gradients came from other devices."""
    row_of = {param.id: row for row, param in enumerate(params)}
    found = []
    for group in groups:
        rows = [row_of[param.id] for param in group.params]
        if not all(grad is grads[row] for grad, row in zip(group.grads, rows, strict=True)):
            return []
        kept = [states[param.id] for param in group.params]
        found.append(_Part(group.indices, rows, kept))
    return found


_NOWHERE: Final[_groups.GroupIndices] = {}


@final
class OptimizerAdaptor(Settled, Optimizer):
    """Applies a ``SimpleOptimizer`` to every trained parameter that has a gradient.

    Gradients are found by parameter, given as ``loss.backward()`` gives them or as a dict by
    parameter id. The step runs on the backend inside a recording one; the new values become
    leaves again. States are kept by parameter id; of modules and gradients nothing is kept.

    ``step`` and ``load_record`` change the optimizer itself.

    Example:
        >>> import phlox_nn as nn, phlox_optim as optim, phlox_tensor as pt
        >>> class Sign(optim.SimpleOptimizer):
        ...     def step(self, lr, tensor, grad, state):
        ...         return tensor - lr * grad.sign(), state
        >>> model = nn.Linear(1, 1, initializer=nn.initializers.Ones())
        >>> grads = {param.id: pt.ones(param.shape) for param in model.param_list()}
        >>> optim.OptimizerAdaptor(Sign()).step(0.5, model, grads).weight.value.tolist()
        [[0.5]]
    """

    _hint = "optimizer.step(0.1, model, grads): a rate belongs to each step, settings to the config"

    def __init__(
        self,
        rule: SimpleOptimizer,
        clipping: GradientClipping | None = None,
        groups: Sequence[Group] = (),
        join: Callable[[tuple[int, ...]], Group] | None = None,
    ) -> None:
        """Wrap a rule for tensors.

        Args:
            rule: what a step does.
            clipping: applied to all gradients of a step.
            groups: other rules or rates for some parameters.
            join: from the indices of groups to what they are together, for parameters that are in
                all of them; by default the last group.

        Raises:
            WrongTypeError: for what is no rule, no clipping, no group.
        """
        _check(rule, SimpleOptimizer, _hint_for(rule))
        if clipping is not None:
            _check(clipping, GradientClipping, "optim.ClipByGlobalNorm(1.0)")
        for group in groups:
            _check(group, Group, "optim.AdamConfig(groups={...}).init()")
        self._rule = rule
        self._clipping = clipping
        self._groups = tuple(groups)
        self._join = join
        self._joined: dict[tuple[int, ...], Group] = {}
        self._state = Cell(_Content({}, 0, 0, {}))
        self._layout: _Layout | None = None
        self._last_step = LastStep()
        self._indexed: tuple[list[Any], _groups.GroupIndices] = [], _NOWHERE
        # A function of a parameter may say something else at each step.
        self._by_path = all(
            isinstance(each.where, str) or each.where == Vectors() for each in self._groups
        )
        self._several = any(type(group.rule) is not type(rule) for group in self._groups)

    @property
    def steps(self) -> int:
        """The number of steps that were made."""
        return self._state.get().steps

    @property
    def skipped(self) -> int:
        """The number of steps that ``skip_nonfinite`` left out."""
        return self._state.get().skipped

    @usage("model = optimizer.step(0.1, model, grads)")
    def step(
        self,
        lr: float,
        module: M,
        grads: AnyGradients,
        *,
        strict: bool = True,
        skip_nonfinite: bool = False,
        divide_by: float = 1.0,
        only: Container[str] | None = None,
    ) -> M:
        """Return the module after a step; parameters without a gradient stay as they are.

        Args:
            lr: the learning rate.
            module: the module whose loss gave the gradients.
            grads: what ``loss.backward()`` or ``grad(...)(module)`` returned, or a dict by
                parameter id. New values for state that came with them are taken over. A loss may
                depend on several models: what ``backward()`` found for others is left to the
                steps that get those, while a key of a dict has to belong to this one.
            strict: whether a step that has no effect, or loses something, is an error.
            skip_nonfinite: leave the module and the optimizer as they are when a gradient has a
                NaN or an infinity, and count it in ``skipped``. Finding out reads from the
                device at each step; without it such numbers reach the weights.
            divide_by: what gradients are divided by before all else: the number of backward passes
                that they are a sum of, or the scale of the loss.
            only: ids of the parameters that are stepped, such as those whose states this process
                keeps. Gradients of all are clipped together, and have to be finite.

        Raises:
            ArgumentError: when a group fits no parameter; for a rate that is no finite number, and
                for a module or gradients that are none.
            CompileError: with ``skip_nonfinite`` inside of a compiled function.
            GradientError: when a module of weights is given for gradients; unless
                ``strict=False``, when no gradient belongs to a trained parameter
                of the module, when a key is the id of none of its parameters, when a parameter
                is new while the state of another has lost its parameter, or when the last step
                was of this very model and nobody kept what it gave.
            ShapeError: when a gradient does not have the shape of its parameter.
        """
        check_rate(lr)
        params, found, has_state = find(module, grads, strict=strict)
        if skip_nonfinite and not _finite(found):
            with self._state.lock:
                content = self._state.get()
                self._state.set(content._replace(skipped=content.skipped + 1))
            return module
        found = self._scaled(found, divide_by)
        if only is not None:
            rows = [row for row, param in enumerate(params) if param.id in only]
            params, found = [params[row] for row in rows], [found[row] for row in rows]
        followed = recording()
        content = self._state.get()
        if strict and params and not followed:
            self._last_step.refuse_dropped(params[0], steps=content.steps)
            self._last_step.refuse_unloaded(params, content.kept)
        seen = [
            (p.id, p.shape, p.dtype, p.device, g.device, g.device.spec_of(g.primitive))
            for p, g in zip(params, found, strict=True)
        ]
        by_id = self._group_indices(module)
        last = None if followed else self._layout
        same = last is not None and last.kept is content.kept and last.by_id is by_id
        if last is not None and same and last.seen == seen:
            groups = [part.of(params, found) for part in last.parts]
        else:
            if strict:
                self._refuse_strangers(module, params)
            groups = self._sorted(by_id, params, found, strict=strict)
        new: dict[str, Param] = {}
        after: dict[str, State] = {}
        for group in groups:
            states = self._update(lr, group, new)
            after.update(zip((param.id for param in group.params), states, strict=True))
        kept = self._keep(after, groups)
        if not followed:
            parts = _parts(groups, params, found, after)
            self._layout = _Layout(parts, by_id, seen, kept) if parts else None
            if params:
                first, keeping = params[0], KEEP if strict else ""
                self._last_step.note(first, new[first.id], content.steps + 1, keeping=keeping)
        elif params:
            if strict:
                followed.expect([new[param.id].value for param in params], dropped_inside())
            followed.steps.append((self, params[0], new[params[0].id], partial(_told, strict)))
        if has_state:
            new.update(updates_of(module, grads).params(module))
        return module.with_params(new)

    def _scaled(self, grads: list[Tensor[Float]], divide_by: float) -> list[Tensor[Float]]:
        """Gradients divided and clipped; scaled ones leave narrow ranges."""
        if divide_by != 1.0 or self._clipping is not None:
            grads = [g.to_full_precision() for g in grads]
        if divide_by != 1.0:
            check_divisor(divide_by)
            grads = [g * (1.0 / divide_by) for g in grads]
        return grads if self._clipping is None else self._clipping.clip(grads)

    def _keep(self, after: dict[str, State], groups: list[_Group]) -> dict[str, State]:
        """Count a step, and return all states after it."""
        with self._state.lock:
            kept, steps, skipped, owners = self._state.get()
            joined = {**kept, **after}
            if NoneType in map(type, after.values()):  # of a rule without states
                joined = {key: state for key, state in joined.items() if state is not None}
            if self._several:
                rules = [type(self._rule_at(group.indices)).__name__ for group in groups]
                own = zip(groups, rules, strict=True)
                owners = {**owners, **{p.id: rule for group, rule in own for p in group.params}}
            self._state.set(_Content(joined, steps + 1, skipped, owners))
        return joined

    def _refuse_strangers(self, module: Module, params: list[Param]) -> None:
        """Weights put in by hand have ids of their own; the states of the old ones would be lost.

        Raises:
            GradientError: when there are both: new parameters, and states without a parameter.
        """
        kept = self._state.get().kept
        if all(param.id in kept for param in params) or not kept:
            return
        by_id = {param.id: path for path, param in module.params().items()}
        lost = kept.keys() - by_id.keys()
        if lost:
            self._last_step.refuse_unloaded(params, by_id)
            new = [by_id[param.id] for param in params if param.id not in kept]
            raise GradientError(
                "step",
                "parameters have no state, and states have no parameter",
                got=f"new parameters {some(new)} and {len(lost)} states of others",
                expected="the parameters that the optimizer stepped before",
                hint="param.with_value(tensor) keeps the state; copy.deepcopy((model, optimizer)) "
                "copies both for each other; step(..., strict=False) starts anew; config.init() "
                "makes an optimizer for another module",
            )

    def _group_indices(self, module: Module) -> _groups.GroupIndices:
        """The groups of each parameter; the same object while paths and parameters are the same."""
        if not self._groups:
            return _NOWHERE
        weights = module.params(role="weight")
        key = [(path, p.id, p.shape) for path, p in weights.items()]
        if key != self._indexed[0] or not self._by_path:
            self._indexed = key, _groups.group_indices(self._groups, weights)
        return self._indexed[1]

    def _sorted(
        self,
        indices: _groups.GroupIndices,
        params: list[Param],
        grads: list[Tensor[Float]],
        *,
        strict: bool,
    ) -> list[_Group]:
        """What may step together, by group, device, types, and what the states have in common."""
        groups: dict[Any, _Group] = {}
        numbers: list[Number] = []
        content = self._state.get()
        for param, grad in zip(params, grads, strict=True):
            if grad.shape != param.shape:
                raise misfit("a gradient", grad.shape, param.shape)
            (tensor,) = _inner([param])
            where = indices.get(param.id, ())
            kept = content.kept.get(param.id)
            if kept is not None and content.owners and not self._owns(where, param, strict=strict):
                kept = None
            state = _state.moved(kept, tensor.device)
            key = where, param.device, param.dtype, grad.dtype, _state.alike(state, numbers)
            group = groups.setdefault(key, _Group(where, [], [], [], []))
            group.params.append(param)
            group.tensors.append(tensor)
            group.grads.append(grad.to_device(tensor.device))
            group.states.append(state)
        return list(groups.values())

    def _owns(self, indices: tuple[int, ...], param: Param, *, strict: bool) -> bool:
        """Whether the state of a parameter is one of the rule that steps it now.

        Raises:
            GradientError: when ``strict``, and it is of another, since groups were changed.
        """
        mine = type(self._rule_at(indices)).__name__
        owner = self._state.get().owners.get(param.id, mine)
        if strict and owner != mine:
            raise GradientError(
                "step",
                "a parameter has the state of another rule",
                got=f"that of {owner}, for {param!r}",
                expected=f"that of {mine}, which steps it now",
                hint="groups as they were, or step(..., strict=False), which starts it anew",
            )
        return owner == mine

    def _update(self, lr: float, group: _Group, new: dict[str, Param]) -> list[State]:
        """Step the parameters of one group into ``new``, and return their states."""
        indices, params, tensors, grads, before = group
        if tensors[0].device.records:  # of a device over one that records: states hold no graph
            tensors, grads = [[x.detach() for x in each] for each in (tensors, grads)]
        rule, lr = (self._rule, lr) if not indices else self._group(indices).applied(lr)
        values, states = rule.step_list(lr, tensors, grads, before)
        device, inner, dtype = params[0].device, tensors[0].device, params[0].dtype
        alike = {(v.device, v.dtype) for v in values} == {(inner, dtype)}
        if alike and device.records and dtype.kind == "Float":
            after = Param.stepped(params, values)
        else:
            after = [p.with_value(v.to_device(device)) for p, v in zip(params, values, strict=True)]
        for param in after:
            new[param.id] = param
        if before[0] is None:  # as in a first step; those of a group are alike
            for state in states:
                if state is not None:
                    _state.check(state, rule)
        return states

    def _rule_at(self, indices: tuple[int, ...]) -> SimpleOptimizer:
        """What steps the parameters at some indices."""
        return self._group(indices).rule if indices else self._rule

    def _group(self, indices: tuple[int, ...]) -> Group:
        """What the groups at some indices are together."""
        group = self._joined.get(indices)
        if group is None:
            made = self._groups[indices[-1]] if self._join is None else self._join(indices)
            group = self._joined[indices] = made
        return group

    def _rules(self) -> str:
        """The names of all rules, by which a record is known."""
        rules = (self._rule, *(group.rule for group in self._groups))
        return " ".join(dict.fromkeys(type(rule).__name__ for rule in rules))

    def _rename(self, old: str, new: str) -> None:
        """Keep the state of a parameter under another id, in a copy that nobody used."""
        self._layout = None
        content = self._state.get()
        for by_id in (content.kept, content.owners):
            if old in by_id:
                by_id[new] = by_id.pop(old)

    def into_record(self) -> dict[str, Record]:
        """Return the states by parameter id; the tensors are shared, not copied."""
        content = self._state.get()
        states = {key: _state.into_record(state) for key, state in content.kept.items()}
        counts = {"steps": content.steps, "skipped": content.skipped}
        owners = {"owners": Keyed(content.owners)} if self._several else {}
        return {"rule": self._rules(), **counts, "states": Keyed(states), **owners}

    def load_record(self, record: Record) -> OptimizerAdaptor:
        """Take over the states of a record, and return the optimizer itself.

        Raises:
            RecordError: when the record is not one of an optimizer, or of one by another rule; the
                optimizer is then as before.
        """
        known = record if isinstance(record, dict) else {}
        rule, states, owners = known.get("rule"), known.get("states"), known.get("owners", {})
        steps: Any = known.get("steps", 0)
        skipped: Any = known.get("skipped", 0)
        counted = type(steps) is int and type(skipped) is int
        if not isinstance(states, dict) or not isinstance(owners, dict) or not counted:
            raise no_record(
                "not a record of an optimizer",
                type(record).__name__ if states is None else "states of another form",
                "what optimizer.into_record() gave",
            )
        if rule != self._rules():
            raise no_record("the record is of another optimizer", rule, self._rules())
        rules = (self._rule, *(group.rule for group in self._groups))
        kept = {key: _state.from_record(state, rules) for key, state in states.items()}
        self._state.set(_Content(kept, steps, skipped, {k: str(v) for k, v in owners.items()}))
        self._layout = None
        self._last_step = LastStep(loaded=bool(kept))
        return self

    def __repr__(self) -> str:
        clipping = "" if self._clipping is None else f", {self._clipping!r}"
        skipped = f", skipped={self.skipped}" if self.skipped else ""
        groups = f", groups={len(self._groups)}" if self._groups else ""
        return f"OptimizerAdaptor({self._rule!r}{clipping}{groups}, steps={self.steps}{skipped})"


register_state(
    OptimizerAdaptor,
    lambda adaptor: (adaptor._state,),
    lambda adaptor: settings_of((adaptor._rule, adaptor._clipping, adaptor._groups, adaptor._join)),
)


def _told(strict: bool, own: OptimizerAdaptor, before: Param, after: Param | None) -> None:
    own._last_step.compiled(before, after, own.steps, strict=strict)


def _check(given: object, kind: type, hint: str) -> None:
    if not isinstance(given, kind):
        got, expected = type(given).__name__, kind.__name__
        what = "a part is of another type"
        raise WrongTypeError("optimizer", what, got=got, expected=expected, hint=hint)


def _hint_for(given: object) -> str:
    """What to type in the place of what is no rule."""
    alone: str | None = getattr(type(given), "_not_inside_hint", None)
    if alone is not None:
        return alone
    if isinstance(given, OptimizerAdaptor):
        return "leave the adaptor out: this one steps modules already"
    if isinstance(given, Config):
        return "config.init(), which steps modules; its rule is config.rule()"
    return "optim.Adam()"


def _inner(params: list[Param]) -> list[Tensor[Float]]:
    """The values of parameters of one device, on the device that steps them."""
    device = params[0].device
    inner = device.inner if device.records else None
    if inner is None:
        return [param.value for param in params]
    return [wrap(device.lower(param.value.primitive), inner) for param in params]


def _finite(grads: list[Tensor[Float]]) -> bool:
    """Whether all numbers are finite; one read, whatever the number of tensors."""
    refuse_recorded(
        "skip_nonfinite=True",
        "loss, grads = px.compile(px.value_and_grad(loss_of))(model, batch); then "
        "optimizer.step(lr, model, grads, skip_nonfinite=True)",
    )
    if not grads:
        return True
    total = grads[0].isfinite().all()
    for grad in grads[1:]:
        total = total & grad.isfinite().all().to_device(total.device)
    return bool(total)
