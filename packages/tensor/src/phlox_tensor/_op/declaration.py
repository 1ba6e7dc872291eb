"""What an op is: one declaration, one class that carries its rules, one registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, final

from .._errors.classes import ArgumentError, UnknownOpError, WrongTypeError
from .._values.dtype import DType
from . import checks as _declaring
from .signature import Signature

if TYPE_CHECKING:
    from .._device.backend import Backend

Shape = tuple[int, ...]
Attributes = tuple[Any, ...]


class Spec(NamedTuple):
    """Shape and element type of a tensor, without its data."""

    shape: Shape
    dtype: DType

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take."""
        return prod(self.shape) * self.dtype.itemsize


# A Spec for each operand; None for an absent one or a number, a tuple for a variadic one.
Specs = Sequence[Any]
PrepareRule = Callable[[Specs, Attributes, "Backend"], Attributes]
ShapeRule = Callable[["Op", Specs, Attributes], Sequence[Shape]]
WorkRule = Callable[[Specs, Attributes], int]


@dataclass(frozen=True, slots=True)
class OpClass:
    """The rules that all ops of one class share.

    The name is for people: what a class means to a decorator, a backend or a test is one of the
    properties, and nothing compares names.

    Attributes:
        name: the class, such as ``"elementwise"``.
        shape: the rule from operand shapes to result shapes; None where every op brings its own.
        cases: makes up test cases for an op; None where every op brings its own.
        broadcasts: operands broadcast together to the shape of the result.
        checking: entries of this class may check their operands themselves; calls without
            attributes try those entries at once.
        contracts: elements are multiplied and summed, by the op itself where it declares its work,
            else by those that it is made of.
        diagonal: an element of the result depends on the elements at its place alone, so that a
            derivative scales, and a chain of such ops can be one kernel.
        hosted: a library on the host does the work. A device whose data the host sees runs the
            reference; others run the expansion, or refuse the call by name where there is none.
        lines: each line along the attribute ``axis`` is worked on for itself; operands have one
            shape.
        matrices: each matrix in the last two axes is worked on for itself; the axes in front are
            batches, which broadcast.
        memory_bound: cheap to compute again; BalancedCheckpointing recomputes such results
            instead of keeping them.
        moves: elements come to other places, and at most meet there.
        orders: the result depends on how the elements along an axis compare; tests draw ties.
        reduces: an element of the result depends on a group of elements along axes, and groups do
            not overlap.
        refuses: makes up calls that an op of the class refuses, beside those that it declares.
        takes_numbers: a Python number may stand for an operand beside a tensor, and entries get
            it as it is.
        weights: operands that are no images but go with every window, by name.
        windows: the op moves windows over images (N, C, H, W).
    """

    name: str
    shape: ShapeRule | None = None
    cases: Callable[[Op], Iterable[Case]] | None = None
    broadcasts: bool = False
    checking: bool = False
    contracts: bool = False
    diagonal: bool = False
    hosted: bool = False
    lines: bool = False
    matrices: bool = False
    memory_bound: bool = False
    moves: bool = False
    orders: bool = False
    reduces: bool = False
    refuses: Callable[[Op], Iterable[Refusal]] | None = None
    takes_numbers: bool = False
    weights: frozenset[str] = frozenset()
    windows: bool = False


class IndexSample(NamedTuple):
    """In a test case: an integer operand with values in [-size, size).

    A negative size asks for values counted from the front alone, in [0, -size).
    """

    shape: Shape
    size: int


class DefiniteSample(NamedTuple):
    """In a test case: symmetric matrices whose eigenvalues are well above 0."""

    shape: Shape


class MaskSample(NamedTuple):
    """In a test case: an operand of truth values."""

    shape: Shape


class SortedSample(NamedTuple):
    """In a test case: an operand whose values ascend along the last axis, with ties."""

    shape: Shape


class Given(NamedTuple):
    """In a test case: an operand of these values, whole numbers in the default type of integers."""

    values: Any


class Case(NamedTuple):
    """One test case of an op: operand shapes (or samples) and attributes by name."""

    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]


def case(*operands: object, **attributes: object) -> Case:
    """Write down a test case: ``case((2, 3), (3, 4))`` or ``case((2, 3), axis=1)``."""
    return Case(operands, attributes)


class Refusal(NamedTuple):
    """One call that an op refuses, and the class of the error on every device."""

    error: type[Exception]
    case: Case


def refusal(error: type[Exception], *operands: object, **attributes: object) -> Refusal:
    """Write down a call that is refused: ``refusal(ShapeError, (2, 3), (2, 3))``."""
    return Refusal(error, Case(operands, attributes))


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One op, declared once; everything else is derived from this record.

    Attributes:
        name: the one spelling, used in every layer.
        op_class: the class that carries the rules.
        signature: operands, attributes and results.
        doc: one sentence, then formula, special cases, source.
        example: a line of code and its printed result, run by the tests.
        numpy: the reference, a function of arrays and attributes.
        expand: the formula in terms of other ops, a function of Tensors and attributes; of the
            device and attributes where there are no operands.
        shape: the rule from operand shapes to result shapes; that of the class by default.
        linear: linear in all Float operands together, so that the op itself maps tangents.
        multilinear: linear in each Float operand for itself, so that the product rule holds.
        work: multiplications with an addition, from operands and attributes; 0 by default.
        compares: tells how numbers lie to each other, so a Python integer may be outside the type
            of the tensor beside it.
        with_tensors: the formula for attributes given as tensors that are no plain numbers: of
            several elements, or with a derivative; others are read.
        prepare: fills attributes that depend on shapes, types or the backend.
        floats: Int operands are taken in the default float type.
        counts: an Int result has the default integer type, whatever that of Int operands is.
        folds: a reduction that makes elements of one type one of the same type, so that a program
            may hold it.
        measured: the values tell a size of a result, for which the shape rule gives -1; asked of
            the ops of the package alone.
        positive: operands of which a number, as a tensor is not read, is refused unless it is above
            0 and finite.
        source: draws each element by its place and by numbers alone, in a shape that is its first
            attribute, so that a program may draw it where it is read.
        truths: operands of other kinds are taken as Bool, by whether they are not 0.
        domain: the interval that tests draw from, or one per operand name.
        ulp: allowed error in units of the result type's epsilon.
        atol: allowed absolute error, in units of epsilon, for results near zero.
        rounded: given, ``ulp`` and ``atol`` are in units of float32's epsilon for narrower types
            too, whose results are rounded and may be off by so many of their epsilons more, for
            what is rounded on the way. For ops of the package it is 0 by default.
        cases: test cases for ops whose class cannot make them up.
        far: test cases whose operand x lies far from 0, is large or is led by an outlier, for ops
            that subtract a mean or a largest element, or add squares.
        refuses: calls that are refused, by the same error on every device.
        unpromised: operands whose nan and infinities give what the device makes of them, each with
            the reason; beside them, only results that are finite everywhere are compared.
        unreferenced: why an op of the package that has no ``numpy`` needs none.
        signed_zeros: whether the sign of a zero result is defined; not said, it is where ``ulp``
            is at most 1: what rounds on its way may round to either zero.
        special_ints: whether tests try every pair of extreme integers.
        method: whether tensors get a method of this name.
        function: whether the function of this name is generated; ``_functions.standard`` has the
            others, which take more than the entries.
        absent: for each optional number, the float with the effect of None, as inf for a maximum.
        derive: makes an op of the same sort out of a function of operands, attributes and the
            cotangent of the result, which gives the cotangent of the operand at a place. Ops that
            have it are in no table.
        internal: only rules, optimizers and other functions call it: no method, no function of the
            package; ``ops.name`` has it, as it has every op.
        attribute_names: the names of the attributes, in order.
    """

    name: str
    op_class: OpClass
    signature: Signature
    doc: str
    shape: ShapeRule
    example: str = ""
    numpy: Callable[..., Any] | None = None
    expand: Callable[..., Any] | None = None
    linear: bool = False
    multilinear: bool = False
    work: WorkRule | None = None
    compares: bool = False
    with_tensors: Callable[..., Any] | None = None
    prepare: PrepareRule | None = None
    floats: bool = False
    counts: bool = False
    folds: bool = False
    measured: bool = False
    positive: tuple[str, ...] = ()
    source: bool = False
    truths: bool = False
    domain: tuple[float, float] | Mapping[str, tuple[float, float]] = (-3.0, 3.0)
    ulp: float = 0.0
    atol: float = 0.0
    rounded: float | None = None
    cases: tuple[Case, ...] = ()
    far: tuple[Case, ...] = ()
    refuses: tuple[Refusal, ...] = ()
    unpromised: Mapping[str, str] = field(default_factory=dict)
    unreferenced: str = ""
    signed_zeros: bool | None = None
    special_ints: bool = True
    method: bool = True
    function: bool = True
    absent: Mapping[str, float] = field(default_factory=dict)
    derive: Callable[[Callable[..., Any], int], Any] | None = None
    internal: bool = False
    attribute_names: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the op to tensors, then attributes, by position or name."""
        return _apply[0](self, args, kwargs)

    def infer(self, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        """Return what a call would give, as a Spec or a tuple of them, without running anything.

        Arguments are those of the call; a ``Spec(shape, dtype)`` may stand for each tensor. A size
        of -1 in the result is one that only the values tell.

        Args:
            args: operands, then attributes, by position or name.
            device: whose default element types count; that of the tensors by default, else the
                default device.
            kwargs: the same, by name.

        Raises:
            PhloxError: as the call would, for operands that do not fit.

        Example:
            >>> REGISTRY["matmul"].infer(Spec((2, 3), float32), Spec((3, 4), float32)).shape
            (2, 4)
        """
        return _infer[0](self, args, kwargs, device)

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature.text}>"

    @property
    def keeps_signs(self) -> bool:
        """Whether the sign of a zero result is defined."""
        return self.ulp <= 1 if self.signed_zeros is None else self.signed_zeros

    def interval(self, operand: str) -> tuple[float, float]:
        """The interval from which tests draw the values of ``operand``."""
        if isinstance(self.domain, tuple):
            return self.domain
        return self.domain.get(operand, (-3.0, 3.0))


@final
@dataclass(frozen=True, slots=True)
class Restated:
    """An expansion that is one call of another op, whose attributes the operand tells.

    Attributes:
        op: the other op, of one operand.
        attributes: they, from the operand or its spec and the attributes of the call.
    """

    op: Op
    attributes: Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]

    def __call__(self, x: Any, *attributes: Any) -> Any:
        """Run the other op without its checks, which have nothing to find."""
        entry = getattr(x.device.ops, self.op.name)
        return type(x)(entry(x.primitive, *self.attributes(x, attributes)), x.device)


class _Registry(dict[str, Op]):
    """The ops by name."""

    def __missing__(self, name: object) -> Never:
        text = name if isinstance(name, str) else ""
        near = get_close_matches(text, self, n=1)
        raise UnknownOpError(
            "REGISTRY",
            "no such op",
            got=repr(name),
            expected="the name of a declared op",
            hint=f'REGISTRY["{near[0]}"]' if near else "phlox ops",
        )


REGISTRY: Final[dict[str, Op]] = _Registry()
_apply: list[Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]] = []
_infer: list[Callable[[Op, tuple[Any, ...], dict[str, Any], Any], Any]] = []
_promised: list[Callable[[Op], Callable[..., Any]]] = []
_reserved: list[Callable[[Op], str | None]] = []
_built_in: Final[set[str]] = set()
_listeners: list[Callable[[Op], None]] = []
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def declare(op_class: OpClass, name: Any, signature: str, **fields: Any) -> Op:
    """Register an op and return it; it takes the place of an op that a user declared before.

    Raises:
        ArgumentError: when the name is taken or malformed, the signature does not parse, there is
            neither a ``numpy`` reference nor an ``expand`` formula, one of them does not take the
            operands and attributes, nothing gives the shape or the element type of a result, or
            there are no test cases.
        UnknownArgumentError: for a field that no op has.
        WrongTypeError: for a field of another type.
    """
    given: Any = op_class
    if not isinstance(given, OpClass):
        got = repr(given)
        raise WrongTypeError("declare", "not a class of ops", got=got, expected="an OpClass")
    if not isinstance(name, str) or name in _built_in or not _NAME.fullmatch(name):
        taken = name in _built_in
        raise ArgumentError(
            "declare",
            "the name is taken" if taken else "the name is malformed",
            got=repr(name),
            expected="a name that phlox has not" if taken else "small letters, digits and _",
        )
    parsed = _declaring.parsed(name, signature)
    if _built_in:  # those of the package are looked at by its tests, not at each import
        _declaring.check_fields(name, parsed, fields)
    if fields.get("numpy") is None and fields.get("expand") is None:
        raise ArgumentError("declare", f"op {name!r} needs numpy= or expand=")
    if fields.get("internal"):
        fields["method"] = False
    shape = fields.pop("shape", None) or op_class.shape
    if shape is None:
        why = f"op {name!r} needs shape=, a rule: class {op_class.name} has none for all"
        raise ArgumentError("declare", why)
    if op_class.cases is None and not fields.get("cases"):
        why = f"op {name!r} needs cases=: class {op_class.name} makes up none"
        raise ArgumentError("declare", why)
    op = Op(
        name=name,
        op_class=op_class,
        signature=parsed,
        shape=shape,
        attribute_names=tuple(a.name for a in parsed.attributes),
        **fields,
    )
    for reserved in _reserved:
        problem = reserved(op)
        if problem is not None:
            raise ArgumentError("declare", problem)
    if _built_in and op.expand is not None and not isinstance(op.expand, Restated):
        op = replace(op, expand=_promised[0](op))
    if name in REGISTRY:
        _replaced[0] = object()
    REGISTRY[name] = op
    for listener in _listeners:
        listener(op)
    return op


_replaced: Final = [object()]


def registry_mark() -> object:
    """Return what is another object as soon as an op takes the place of one of its name."""
    return _replaced[0]


def is_built_in(op: Op) -> bool:
    """Whether the package has declared an op."""
    return op.name in _built_in


def seal() -> None:
    """Let nobody declare the ops anew that there are now; ops of users may be."""
    _built_in.update(REGISTRY)


def applied_by(call: Callable[[Op, tuple[Any, ...], dict[str, Any]], Any]) -> None:
    """Let ``call`` be what calling an op does."""
    _apply[:] = [call]


def inferred_by(infer: Callable[[Op, tuple[Any, ...], dict[str, Any], Any], Any]) -> None:
    """Let ``infer`` be what ``op.infer`` does."""
    _infer[:] = [infer]


def promised_by(hold: Callable[[Op], Callable[..., Any]]) -> None:
    """Let ``hold`` make the formula of an op that a user declares into one that is checked."""
    _promised[:] = [hold]


def on_declare(listener: Callable[[Op], None]) -> None:
    """Call ``listener`` for every op declared from now on (it gives Tensor its methods)."""
    _listeners.append(listener)


def reserve(check: Callable[[Op], str | None]) -> None:
    """Let ``check`` refuse ops declared from now on, by saying why."""
    _reserved.append(check)
