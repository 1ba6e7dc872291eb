"""The Autodiff device: a function from table to table that records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from phlox_tensor import (
    Backend,
    Decorator,
    DType,
    Entry,
    GradientError,
    Op,
    Pull,
    Ready,
    Standing,
    Tensor,
    WrongTypeError,
)

from . import _entries as entries
from . import _nan, _part
from ._backward import Gradients, backward
from ._checkpoint_call import checkpoint
from ._checkpoint_strategies import Checkpointing, NoCheckpointing
from ._derived import rule_of
from ._graph import LEAF, USED, Node, Primitive, is_leaf, new, next_id, primitive
from ._levels import is_argument, note_read
from ._mode import MODE, paused
from ._plan import OpRule
from ._propose import proposed
from ._rule import ByAttribute, NoDerivative, SimpleRule
from .rules import RULES


@final
class Autodiff(Decorator):
    """A device that records what is computed on another one, for derivatives of any order.

    ``Autodiff(Autodiff(backend))`` gives second derivatives. Equal arguments give the same object.

    Args:
        backend: the device to record on, or its name.
        checkpointing: what to keep for the backward pass.

    Raises:
        WrongTypeError: for a strategy that is none, such as its class.

    Example:
        >>> import phlox_tensor as pt
        >>> w = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> w.grad((w * w).sum().backward()).tolist()
        [2.0, 4.0]
    """

    name = "autodiff"

    def __init__(
        self,
        backend: Backend | str,
        checkpointing: Checkpointing = NoCheckpointing(),  # noqa: B008 - has no state
    ) -> None:
        """Take over what the inner device says about itself."""
        given: object = checkpointing
        if not isinstance(given, Checkpointing):
            raise WrongTypeError(
                "autodiff",
                "checkpointing is no strategy",
                got=repr(given),
                expected="an object such as BalancedCheckpointing()",
                hint=f"Autodiff({backend!r}, checkpointing=BalancedCheckpointing())",
            )
        super().__init__(backend, checkpointing)
        self.checkpointing = checkpointing
        self.records = True
        self.recorder = self

    def __repr__(self) -> str:
        if self.checkpointing == NoCheckpointing():
            return f"Autodiff({self._inner!r})"
        return f"Autodiff({self._inner!r}, checkpointing={self.checkpointing!r})"

    def rerun(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Return ``checkpoint(function)``, for packages that know only devices."""
        return checkpoint(function)

    # The table

    def decorate(self, op: Op, inside: Entry) -> Entry:
        """Return a closure over the inner entry, by the class and the rule of the op."""
        rule = rule_of(op, Autodiff)
        if isinstance(rule, NoDerivative) or not op.signature.operands:
            return entries.constant(op, inside)
        if rule is None:
            formula = self.expanded(op)
            if formula is None:
                return entries.undifferentiable(op, inside)
            return entries.expanded(op, inside, formula, self)
        if isinstance(rule, ByAttribute):
            cases = {value: self._recorded(op, inside, r) for value, r in rule.rules.items()}
            return entries.by_attribute(op, rule.attribute, cases)
        return self._recorded(op, inside, rule)

    def _recorded(self, op: Op, inside: Entry, rule: SimpleRule) -> Entry:
        inner, strategy = self._inner, self.checkpointing
        made = OpRule(op, rule, inner)
        if made.variadic:
            return entries.variadic(op, inside, made)
        if type(strategy) is not NoCheckpointing:
            return entries.recomputed(op, inside, made, strategy)
        form = made.form()
        if form == "unary":
            return entries.unary(inside, made)
        if form == "binary":
            return entries.binary(op, inside, made)
        if form == "attributes":
            return entries.with_attributes(op, inside, made)
        return entries.recorded(op, inside, made)

    def resolve(self, op: Op) -> Entry:
        """Return the entry of an op, watched inside ``detect_nan``."""
        entry = super().resolve(op)
        return _nan.watched(op, entry, self) if _nan.MODE.blocks else entry

    def unlisted(self, op: Op, entry: Entry) -> Entry:
        """Return the entry of an op that is in no table, watched inside ``detect_nan``."""
        made = super().unlisted(op, entry)
        return _nan.watched(op, made, self) if _nan.MODE.blocks else made

    def checks_operands(self, op: Op) -> bool:
        """Whether the inner entry does; a formula would blame another op for its operands."""
        return op.name in RULES and self._inner.checks_operands(op)

    # Runs at every call, so written out: this saves a call of ``lower``.

    def shape_of(self, primitive: Any, /) -> tuple[int, ...]:
        """Return the shape of a primitive."""
        return self._inner.shape_of(primitive.value)

    def spec_of(self, primitive: Any, /) -> tuple[tuple[int, ...], DType]:
        """Return shape and element type of a primitive at once."""
        return self._inner.spec_of(primitive.value)

    def key_of(
        self, op: Op, attributes: tuple[Any, ...], first: Any, /, *others: Any
    ) -> tuple[Any, ...] | None:
        """What decides whether a call passes its checks; None if it has to be checked always."""
        if type(first) is Primitive:  # the usual forms, without a loop
            if not others:
                return self._inner.key_of(op, attributes, first.value)
            if len(others) == 1 and type(others[0]) is Primitive:
                return self._inner.key_of(op, attributes, first.value, others[0].value)
        return self._inner.key_of(op, attributes, *map(_value, (first, *others)))

    def dtype_of(self, primitive: Any, /) -> DType:
        """Return the element type of a primitive."""
        return self._inner.dtype_of(primitive.value)

    def without_recording(self) -> Backend:
        """Return the device inside."""
        return self._inner

    # Primitives

    def lift(self, inside: Any, /) -> Any:
        """Make a constant from a primitive of the inner device."""
        return primitive(inside)

    def lower(self, primitive: Any, /) -> Any:
        """Return the primitive of the inner device."""
        return primitive.value

    def require_grad(self, inside: Any, /) -> Any:
        """Return the primitive as a leaf.

        Raises:
            GradientError: when it is the result of an op that was recorded, or not a float.
        """
        if inside.node is not None:
            if is_leaf(inside.node):
                return inside
            raise GradientError(
                "require_grad",
                "the tensor is a recorded result, not a leaf",
                hint="x.detach().require_grad(), or call it on what x was computed from",
            )
        dtype = self.dtype_of(inside)
        if dtype.kind != "Float":
            raise GradientError(
                "require_grad",
                "only Float tensors have gradients",
                got=dtype,
                hint='x.astype("float32").require_grad()',
            )
        return self.leaf(inside.value)

    def leaf(self, inside: Any, /) -> Any:
        """Make a leaf from a primitive of the inner device."""
        out = new(Primitive)
        out.value = inside
        out.node = node = new(Node)
        node.id = next_id()
        node.parents = node.saved = ()
        node.plan = LEAF
        node.shape = self._inner.shape_of(inside)
        return out

    def read(self, primitive: Any, /) -> np.ndarray[Any, Any]:
        """Return the data as a NumPy array, which no derivative goes through."""
        if primitive.node is not None:
            note_read(self)
        return self._inner.read(primitive.value)

    def standing(self, primitive: Any, /) -> Standing:
        """Return what the primitive is to this device, by its node."""
        node = primitive.node
        if node is None:
            return "constant"
        if is_leaf(node):
            return "leaf"
        return "freed" if node.plan is USED else "result"

    def is_followed(self, primitive: Any, /) -> bool:
        """Whether a derivative would be lost on the device inside.

        That of a result is, and that of what a transform under way differentiates; a leaf of
        somebody's own is a value that he may use elsewhere.
        """
        how = self.standing(primitive)
        return how == "result" or (how == "leaf" and is_argument(self, primitive.node))

    def backward(
        self,
        tensor: Tensor[Any],
        seed: Tensor[Any] | None,
        retain_graph: bool,
        ready: Ready | None = None,
    ) -> Gradients:
        """Return the gradients of a tensor; see ``Tensor.backward``."""
        return backward(self, tensor, seed, retain_graph, ready)

    def as_one_step(
        self, name: str, operands: Sequence[Any], values: Sequence[Any], pull: Pull
    ) -> tuple[Any, ...]:
        """Return values of the device inside as the results of one recorded step."""
        return _part.as_one_step(self, name, operands, values, pull)

    def pull_back(
        self,
        results: Sequence[Tensor[Any]],
        cotangents: Sequence[Tensor[Any] | None],
        operands: Sequence[Any],
    ) -> list[tuple[Tensor[Any], ...]]:
        """Carry cotangents of results back to operands."""
        return _part.pull_back(self, results, cotangents, operands)

    def propose(self, result: Any, target: Tensor[Any], value: Tensor[Any], /) -> Any:
        """Return ``result`` with a new value for ``target`` in the graph of the target's device."""
        if target.device is not self:
            inside = self._inner.propose(result.value, target, value)
            return primitive(inside, result.node, getattr(result, "recipe", None))
        if MODE.pauses and paused():
            return result
        kept = value.detach().to_device(self._inner)
        return proposed(result, target.primitive, kept, self.shape_of(result))

    def is_tracked(self, primitive: Any, /) -> bool:
        """Whether a gradient would flow to the primitive."""
        return primitive.node is not None


def rule_kind(op: Op) -> str:
    """How an op is differentiated: ``"rule"``, ``"expansion"`` or ``"none: reason"``."""
    rule = rule_of(op, Autodiff)
    if isinstance(rule, NoDerivative):
        return f"none: {rule.reason}"
    if rule is not None:
        return "rule"
    return "expansion" if op.expand is not None else "none: no rule and no expansion"


def _value(operand: Any) -> Any:
    """The primitives of the inner device in an operand."""
    if type(operand) is tuple:
        return tuple([x.value for x in operand])
    return None if operand is None else operand.value
