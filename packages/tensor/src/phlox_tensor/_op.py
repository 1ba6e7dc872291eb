"""What an op is: one declaration, one class that carries its rules, one registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from . import _signature
from ._dtype import DType
from ._signature import Signature

if TYPE_CHECKING:
    from ._backend import Backend

Shape = tuple[int, ...]
Attributes = tuple[Any, ...]


class Spec(NamedTuple):
    """Shape and element type of a tensor, without its data."""

    shape: Shape
    dtype: DType


Specs = Sequence[Any]  # a Spec for each operand; None for an absent one, a tuple for a variadic one
PrepareRule = Callable[[Specs, Attributes, "Backend"], Attributes]
ShapeRule = Callable[["Op", Specs, Attributes], Sequence[Shape]]


@dataclass(frozen=True, slots=True)
class OpClass:
    """The rules that all ops of one class share.

    Attributes:
        name: the class, such as ``"elementwise"``.
        shape: the rule from operand shapes to result shapes.
        memory_bound: cheap to compute again; BalancedCheckpointing recomputes such results
            instead of keeping them.
        fuses: may become a part of a larger kernel.
        checked: entries of this class may check their operands themselves; calls without
            attributes try those entries at once.
    """

    name: str
    shape: ShapeRule
    memory_bound: bool = False
    fuses: bool = False
    checked: bool = False


class IndexSample(NamedTuple):
    """In a test case: an integer operand with values in [-size, size).

    A negative size asks for values counted from the front alone, in [0, -size).
    """

    shape: Shape
    size: int


class MaskSample(NamedTuple):
    """In a test case: an operand drawn from few values, so that ties and zeros occur."""

    shape: Shape


class Case(NamedTuple):
    """One test case of an op: operand shapes (or samples) and attributes by name."""

    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]


def case(*operands: object, **attributes: object) -> Case:
    """Write down a test case: ``case((2, 3), (3, 4))`` or ``case((2, 3), axis=1)``."""
    return Case(operands, attributes)


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One op, declared once; everything else is derived from this record.

    Attributes:
        name: the one spelling, used in every layer.
        family: the class that carries the rules.
        signature: operands, attributes and results.
        doc: one sentence, then formula, special cases, source.
        example: a line of code and its printed result, run by the tests.
        numpy: the reference, a function of arrays and attributes.
        expand: the formula in terms of other ops, a function of Tensors and attributes.
        shape: a shape rule of its own, where the class has none.
        prepare: fills attributes that depend on shapes, types or the backend.
        floats: Int operands are taken in the default float type.
        domain: the interval that tests draw from, or one per operand name.
        ulp: allowed error in units of the result type's epsilon.
        atol: allowed absolute error, in units of epsilon, for results near zero.
        cases: test cases for ops whose class cannot make them up.
        signed_zeros: whether the sign of a zero result is defined.
        special_ints: whether tests try every pair of extreme integers.
        method: whether tensors get a method of this name.
        internal: only rules, optimizers and other functions call it: no method, no function of the
            package; ``ops.name`` has it, as it has every op.
        attribute_names: the names of the attributes, in order.
        takes_numbers: whether an attribute may be a float.
    """

    name: str
    family: OpClass
    signature: Signature
    doc: str
    example: str = ""
    numpy: Callable[..., Any] | None = None
    expand: Callable[..., Any] | None = None
    shape: ShapeRule | None = None
    prepare: PrepareRule | None = None
    floats: bool = False
    domain: tuple[float, float] | Mapping[str, tuple[float, float]] = (-3.0, 3.0)
    ulp: float = 0.0
    atol: float = 0.0
    cases: tuple[Case, ...] = ()
    signed_zeros: bool = True
    special_ints: bool = True
    method: bool = True
    internal: bool = False
    attribute_names: tuple[str, ...] = ()
    takes_numbers: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the op to tensors, then attributes, by position or name."""
        return _apply[0](self, args, kwargs)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature.text}>"

    def interval(self, operand: str) -> tuple[float, float]:
        """The interval from which tests draw the values of ``operand``."""
        if isinstance(self.domain, tuple):
            return self.domain
        return self.domain.get(operand, (-3.0, 3.0))


REGISTRY: Final[dict[str, Op]] = {}
_apply: list[Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]] = []
_reserved: list[Callable[[Op], str | None]] = []
_listeners: list[Callable[[Op], None]] = []
_NUMBERS: Final = ("Scalar", "Scalar?", "float")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def declare(family: OpClass, name: str, signature: str, **fields: Any) -> Op:
    """Register an op and return it.

    Raises:
        ValueError: when the name is taken or malformed, the signature does not parse, or there
            is neither a ``numpy`` reference nor an ``expand`` formula.
    """
    if name in REGISTRY or not _NAME.fullmatch(name):
        raise ValueError(f"op name {name!r} is taken or malformed")
    parsed = _signature.parse(signature)
    if fields.get("numpy") is None and fields.get("expand") is None:
        raise ValueError(f"op {name!r} needs numpy= or expand=")
    if fields.get("internal"):
        fields["method"] = False
    op = Op(
        name=name,
        family=family,
        signature=parsed,
        attribute_names=tuple(a.name for a in parsed.attributes),
        takes_numbers=any(a.type in _NUMBERS for a in parsed.attributes),
        **fields,
    )
    for reserved in _reserved:
        problem = reserved(op)
        if problem is not None:
            raise ValueError(problem)
    REGISTRY[name] = op
    for listener in _listeners:
        listener(op)
    return op


def applied_by(call: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Let ``call`` be what calling an op does."""
    _apply[:] = [call]


def on_declare(listener: Callable[[Op], None]) -> None:
    """Call ``listener`` for every op declared from now on (it gives Tensor its methods)."""
    _listeners.append(listener)


def reserve(check: Callable[[Op], str | None]) -> None:
    """Let ``check`` refuse ops declared from now on, by saying why."""
    _reserved.append(check)
