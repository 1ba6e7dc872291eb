"""What a derivative rule is, and what its parameter names mean.

A rule is one function for each operand, from what its parameters name to the cotangent of that
operand. The names are

- an operand or attribute of the op, by its name in the signature;
- ``y``, or the name of a result where there are several: the output;
- ``g``, or ``g_<result>`` where there are several: the cotangent of the output, where None means
  that none arrived;
- ``<operand>_shape`` and ``<operand>_dtype``, which keep no data.

Where an op has an operand ``g`` or ``y`` of its own, the cotangent is ``gg``, the output ``out``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, Final, NamedTuple, final

from phlox_tensor import Backend, Op, Tensor

RuleFunction = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class Joint:
    """A rule of one function that gives the cotangents of all operands as a tuple."""

    function: RuleFunction


@final
@dataclass(frozen=True, slots=True)
class NoDerivative:
    """Says that an op has no derivative, or only a zero one, and why."""

    reason: str


SimpleRule = RuleFunction | tuple[RuleFunction | None, ...] | Joint


@final
@dataclass(frozen=True, slots=True)
class ByAttribute:
    """A rule for each value of an attribute, so that none keeps what only another needs."""

    attribute: str
    rules: Mapping[str, SimpleRule]


Rule = SimpleRule | ByAttribute | NoDerivative

# A second line, for forward mode: from operands, tangents (None for 0), results and attributes to
# the tangents of the results.
Second = Callable[[Any, Any, Any, Mapping[str, Any]], "tuple[Tensor | None, ...]"]


def none(reason: str) -> NoDerivative:
    """The row of an op without a derivative."""
    return NoDerivative(reason)


class Source(NamedTuple):
    """Where an argument of a rule comes from.

    Attributes:
        kind: ``"cotangent"``, ``"pool"`` (operands, results, attributes), ``"shape"``, ``"dtype"``.
        place: the place in that list; shapes and dtypes count operands.
    """

    kind: str
    place: int


class Names(NamedTuple):
    """The names that rules of an op may use, and which places of the pool hold tensors."""

    sources: dict[str, Source]
    tensors: int  # operands and results come first in the pool, attributes after them


KINDS: Final = ("cotangent", "pool", "shape", "dtype")


def names_of(op: Op) -> Names:
    """Return what the names in a rule of ``op`` mean."""
    operands = [o.name for o in op.signature.operands]
    results = [r.name for r in op.signature.results]
    sources: dict[str, Source] = {}
    for i, name in enumerate(operands):
        sources[f"{name}_shape"] = Source("shape", i)
        sources[f"{name}_dtype"] = Source("dtype", i)
    count = len(operands)
    if len(results) == 1:
        sources["gg" if "g" in operands else "g"] = Source("cotangent", 0)
        sources["out" if "y" in operands else "y"] = Source("pool", count)
    else:
        for i, name in enumerate(results):
            sources[f"g_{name}"] = Source("cotangent", i)
            sources[name] = Source("pool", count + i)
    tensors = count + len(results)
    for i, name in enumerate(op.attribute_names):
        sources[name] = Source("pool", tensors + i)
    for i, name in enumerate(operands):
        sources[name] = Source("pool", i)
    return Names(sources, tensors)


def parameters_of(op: Op, function: RuleFunction, names: Names) -> tuple[Source, ...]:
    """Return the sources of the parameters of a rule."""
    out = []
    for name in signature(function).parameters:
        if name not in names.sources:
            expected = ", ".join(sorted(names.sources))
            raise ValueError(
                f"rule of {op.name}: unknown name {name!r}, expected one of {expected}"
            )
        out.append(names.sources[name])
    return tuple(out)


def functions_of(op: Op, rule: SimpleRule) -> tuple[RuleFunction | None, ...]:
    """Return one function per operand, or the one function of a joint rule."""
    if isinstance(rule, Joint):
        return (rule.function,)
    functions = rule if isinstance(rule, tuple) else (rule,)
    if len(functions) != len(op.signature.operands):
        raise ValueError(
            f"rule of {op.name}: got {len(functions)} functions, "
            f"expected {len(op.signature.operands)}, one per operand"
        )
    return functions


def rounds_otherwise(op: Op, device: Backend) -> bool:
    """Whether the value of an op may differ from that of its expansion, which rounds each step.

    Not where tests hold it to the exact bits, nor where the device at the bottom runs the
    expansion itself, unless as one kernel whose driver may round a product and a sum once.
    """
    base = device.base
    if base.entry(op.name) is not None:
        return bool(op.tested.ulp or op.tested.atol)
    return op.op_class.diagonal and not base.strict and base.limits.bindings > 0
