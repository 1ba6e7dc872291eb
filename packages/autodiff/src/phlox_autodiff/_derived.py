"""Rules that nobody writes: they are derived from the formula of an op."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from phlox_tensor import Backend, Op, Tensor, broadcast_shapes

from ._graph import next_id
from ._levels import outermost, running
from ._rule import NoDerivative, Rule, RuleFunction
from .rules import RULES


def rule_of(op: Op, recording: Callable[[Backend], Backend]) -> Rule | None:
    """The rule of an op: its row, or one that is derived; None where its expansion is followed.

    Args:
        op: the op.
        recording: makes the device that records around another one.
    """
    if op.derive is None:
        return RULES.get(op.name)
    if op.signature.results[0].kind != "Float":
        return NoDerivative("the result is not Float")
    found = tuple(
        _cotangent_of(op, place, recording) if operand.kind == "Float" else None
        for place, operand in enumerate(op.signature.operands)
    )
    return found if any(found) else NoDerivative("constant between jumps")


def _cotangent_of(
    op: Op, place: int, recording: Callable[[Backend], Backend]
) -> RuleFunction | None:
    """The derivative by one operand, as one more op; None where it is 0."""
    formula, derive = op.expand, op.derive
    assert formula is not None
    assert derive is not None

    def cotangent(*args: Any) -> Any:
        *given, g = args
        inner = outermost(op.name, args)
        assert inner is not None
        device = recording(inner)
        # Element by element, so that nothing is summed: operands may be smaller than the result.
        full = broadcast_shapes(*[x.shape for x in args if isinstance(x, Tensor)])
        x = _over(full, given[place].to_device(inner))
        leaf = x.to_device(device).require_grad()
        with running(device, next_id()):
            out = formula(*given[:place], leaf, *given[place + 1 :])
        if out.device is not device or not device.is_tracked(out.primitive):
            return x.zeros()
        found = device.backward(out, _over(full, g), False).get(leaf)
        return x.zeros() if found is None else found

    made = derive(cotangent, place)
    if made is None:
        return None

    def rule(g: Any, *given: Any) -> Any:
        return made.formula(*given, g)

    names = [op.signature.operands[i].name for i in made.operands]
    parameters = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in ("g", *names)]
    parameters += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in op.attribute_names]
    rule.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return rule


def _over(shape: tuple[int, ...], x: Any) -> Any:
    return x if x.shape == shape else x.broadcast_to(shape)
