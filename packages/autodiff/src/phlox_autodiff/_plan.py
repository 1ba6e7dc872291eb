"""From the rule of an op to plans: what is kept, by which operands are tracked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, final

import numpy as np

from phlox_tensor import Backend, Op, Tensor
from phlox_tensor.capture import Number
from phlox_tensor.ops.reduction import sum_to

from ._checkpoint_strategies import Memo, Recipe, compute
from ._graph import Node, Pending, Plan, accumulate, new
from ._rule import (
    KINDS,
    Joint,
    RuleFunction,
    SimpleRule,
    Source,
    functions_of,
    names_of,
    parameters_of,
)
from ._slices import together

_FLOAT_KINDS = ("Any", "Float", "Num")
# What may be kept in the place of a primitive.
_NO_PRIMITIVES = frozenset({Number, Recipe, bool, float, int, np.float64, tuple, type(None)})


class Step(NamedTuple):
    """One function of a rule, and where its arguments lie in what a pass brings together.

    Attributes:
        function: from the arguments to a cotangent.
        only: the place of the argument, where there is one.
        arguments: picks the arguments, where there are several.
    """

    function: RuleFunction
    only: int | None
    arguments: Callable[[Sequence[Any]], tuple[Any, ...]]


def picker(places: tuple[int, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that gives the items at ``places`` as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    if not places:
        return lambda given: ()
    (only,) = places  # of one place, an itemgetter gives the item itself
    return lambda given: (given[only],)


@final
class OpPlan(Plan):
    """The plan of an op for one set of tracked operands.

    Attributes:
        op: the op.
        inner: the backend on which rules run.
        steps: one per parent, or a single one that gives the cotangents of all operands.
        joint: where the cotangents of the parents lie in what a single step gives, else None.
        broadcasts: cotangents are summed over the axes along which their operand was broadcast.
        results: number of results, which is the number of cotangents that arrive.
        pool: places in operands + results + attributes that a node keeps.
        shapes: operands of which a node keeps the shape.
        dtypes: operands of which a node keeps the element type.
        parents: operands whose nodes are the parents.
        pick_pool, pick_parents: give what is at the places of ``pool``, of ``parents``.
        takes_shapes: functions are given the shapes of the parents, after what a node keeps.
        places_of_tensors: where what a node keeps lies behind the cotangents, as far as it is
            tensors; they come first.
    """

    __slots__ = (
        "broadcasts",
        "dtypes",
        "inner",
        "joint",
        "name",
        "op",
        "parents",
        "pick_parents",
        "pick_pool",
        "places_of_tensors",
        "pool",
        "results",
        "shapes",
        "steps",
        "takes_shapes",
    )

    @property
    def bends(self) -> bool:
        """Whether the derivative depends on tracked operands: it uses one, or a result."""
        op = self.op
        if op.traits.linear or op.traits.multilinear:
            return bool(op.traits.multilinear) and len(self.parents) > 1
        operands = len(op.signature.operands)
        used = [place for place in self.pool if place < operands + self.results]
        return any(place >= operands or place in self.parents for place in used)

    def __init__(self, rule: OpRule, tracked: tuple[bool, ...]) -> None:
        """Work out what the functions for the tracked operands need."""
        self.op, self.name = rule.op, rule.op.name
        self.inner = rule.inner
        self.broadcasts = rule.op.op_class.broadcasts
        self.results = len(rule.op.signature.results)
        places = tuple(i for i, t in enumerate(tracked) if t and rule.uses(i))
        chosen = (0,) if rule.joint else places
        needed = {s for i in chosen for s in rule.sources[i] if s.kind != "cotangent"}
        # Parents know their shapes; a variadic operand has some that are no parents.
        told = [] if rule.variadic else [Source("shape", i) for i in places]
        self.takes_shapes = not needed.isdisjoint(told)
        kept = sorted(needed.difference(told), key=lambda s: (KINDS.index(s.kind), s.place))
        self.parents = places
        self.pool = tuple(s.place for s in kept if s.kind == "pool")
        self.shapes = tuple(s.place for s in kept if s.kind == "shape")
        self.dtypes = tuple(s.place for s in kept if s.kind == "dtype")
        tensors = sum(i < rule.tensors for i in self.pool)
        self.places_of_tensors = tuple(range(self.results, self.results + tensors))
        where = {Source("cotangent", i): i for i in range(self.results)}
        where |= {source: self.results + i for i, source in enumerate([*kept, *told])}
        self.steps = [
            Step(function, at[0] if len(at) == 1 else None, picker(at))
            for i in chosen
            if (function := rule.functions[i]) is not None
            for at in [tuple(where[s] for s in rule.sources[i])]
        ]
        self.joint = places if rule.joint else None
        self.pick_pool, self.pick_parents = picker(self.pool), picker(self.parents)

    def places(self) -> tuple[int, ...]:
        """Pool places that a node keeps, when that is all it keeps; for the short paths."""
        assert not self.shapes
        assert not self.dtypes
        return self.pool

    def push(self, node: Node, cotangent: Any, pending: Pending, memo: Memo | None) -> None:
        """Run the functions of the rule, on tensors of the inner backend."""
        inner = self.inner
        given = [cotangent] if self.results == 1 else list(cotangent)
        given += node.saved
        if self.takes_shapes:
            given += [parent.shape for parent in node.parents if parent is not None]
        for i in self.places_of_tensors:
            item = given[i]
            if type(item) in _NO_PRIMITIVES:
                given[i] = self._tensor(item, memo)
            else:
                made = new(Tensor)
                made.primitive = item
                made.device = inner
                given[i] = made
        if self.joint is not None:
            self._push_joint(node, given, pending)
            return
        broadcasts, parents = self.broadcasts, node.parents
        for place, (function, only, arguments) in enumerate(self.steps):  # one step a parent
            out = function(*arguments(given)) if only is None else function(given[only])
            if out is None:
                continue
            parent: Any = parents[place]
            if broadcasts and parent.shape != node.shape:
                out = sum_to(out, parent.shape)
            before = pending.get(parent)
            pending[parent] = out if before is None else together(before, out)

    def _push_joint(self, node: Node, given: list[Any], pending: Pending) -> None:
        assert self.joint is not None
        ((function, only, arguments),) = self.steps
        outs = function(*arguments(given)) if only is None else function(given[only])
        places: Sequence[int] = self.joint
        if self.op.signature.operands[0].variadic:
            places = range(len(outs))
        for place, parent in zip(places, node.parents, strict=True):
            if parent is not None and outs[place] is not None:
                accumulate(pending, parent, outs[place])

    def _tensor(self, item: Any, memo: Memo | None) -> Any:
        """Wrap what a recipe gives, or many primitives; numbers and None stay."""
        if type(item) is Recipe:
            return Tensor(compute(item, memo), self.inner)
        return tuple(Tensor(p, self.inner) for p in item) if type(item) is tuple else item


@final
class OpRule:
    """The rule of an op on one backend, and its plans.

    Attributes:
        op: the op.
        inner: the backend on which rules run.
        joint: the rule is one function for all operands.
        functions: one per operand, or only the joint one.
        sources: where the arguments of each function come from.
        tensors: number of operands and results.
        keeps_float: per result, whether a tracked operand makes it a tracked result.
    """

    __slots__ = (
        "_plans",
        "functions",
        "inner",
        "joint",
        "keeps_float",
        "op",
        "sources",
        "tensors",
        "variadic",
    )

    def __init__(self, op: Op, rule: SimpleRule, inner: Backend) -> None:
        """Check the rule."""
        names = names_of(op)
        self.op = op
        self.inner = inner
        self.variadic = op.signature.operands[0].variadic
        self.joint = isinstance(rule, Joint) or self.variadic
        self.functions = functions_of(op, rule)
        self.sources = tuple(
            () if f is None else parameters_of(op, f, names) for f in self.functions
        )
        self.tensors = names.tensors
        self.keeps_float = tuple(r.kind in _FLOAT_KINDS for r in op.signature.results)
        self._plans: dict[tuple[bool, ...], OpPlan] = {}

    def uses(self, operand: int) -> bool:
        """Whether the rule gives a cotangent for the operand."""
        return self.joint or self.functions[operand] is not None

    def form(self) -> str:
        """Which of the short entries an op can have, if any.

        Returns:
            ``"unary"`` for an elementwise op of one tensor, ``"binary"`` for one tensor out of
            two, ``"attributes"`` for one tensor out of one and attributes, else ``"any"``.
        """
        signature = self.op.signature
        simple = (
            len(signature.results) == 1
            and not self.joint
            and not any(operand.optional for operand in signature.operands)
            and None not in self.functions
        )
        told = all(
            s.kind in ("cotangent", "pool") or (s.kind == "shape" and s.place == i)
            for i, sources in enumerate(self.sources)
            for s in sources
        )
        count = len(signature.operands)
        if not simple or count > 2:
            return "any"
        if count == 1:
            plain = told and not signature.attributes and self.op.op_class.diagonal
            return "unary" if plain else "attributes"
        return "binary" if told and not signature.attributes else "any"

    def plan(self, tracked: tuple[bool, ...]) -> OpPlan:
        """Return the plan for a set of tracked operands."""
        plan = self._plans.get(tracked)
        if plan is None:
            plan = self._plans.setdefault(tracked, OpPlan(self, tracked))
        return plan
