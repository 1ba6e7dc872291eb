"""What an op is: one declaration, one class that carries its rules, one registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, final

from .._errors.classes import ArgumentError, UnknownOpError, WrongTypeError
from .._values.dtype import DType
from . import checks as _declaring
from .records import Case, Refusal, Tested, Traits
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
        no_numbers: a Python number, which has no device, stands for no operand.
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
    no_numbers: bool = False
    reduces: bool = False
    refuses: Callable[[Op], Iterable[Refusal]] | None = None
    takes_numbers: bool = False
    weights: frozenset[str] = frozenset()
    windows: bool = False

    def __call__(self, name: str, signature: str, **fields: Any) -> Op:
        """Declare an op of the class, which has an entry in each device or an ``expand=``."""
        return declare(self, name, signature, **fields)

    def formula(self, signature: str, **fields: Any) -> Callable[[Callable[..., Any]], Op]:
        """Declare an op by the function below, which expands it and has its name."""

        def declared(expand: Callable[..., Any]) -> Op:
            return declare(self, expand.__name__.rstrip("_"), signature, expand=expand, **fields)

        return declared


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
        work: multiplications with an addition, from operands and attributes; 0 by default.
        with_tensors: the formula for attributes given as tensors that are no plain numbers: of
            several elements, or with a derivative; others are read.
        prepare: fills attributes that depend on shapes, types or the backend.
        traits: what devices, decorators and rules may know of it.
        tested: how it is tested.
        method: whether tensors get a method of this name.
        function: whether the function of this name is generated; ``_functions.standard`` has the
            others, which take more than the entries.
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
    work: WorkRule | None = None
    with_tensors: Callable[..., Any] | None = None
    prepare: PrepareRule | None = None
    traits: Traits = field(default_factory=Traits)
    tested: Tested = field(default_factory=Tested)
    method: bool = True
    function: bool = True
    derive: Callable[[Callable[..., Any], int], Any] | None = None
    internal: bool = False
    attribute_names: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the op to tensors, then attributes, by position or name."""
        return _apply[0](self, args, kwargs)

    def or_formula(self, x: Any, *rest: Any) -> Any:
        """Apply the op where the device has an entry for it, else its formula without checks.

        A formula of a few small ops costs less by itself than as one call.
        """
        formula = self.expand
        if formula is None or x.device.base.entry(self.name) is not None:
            return self(x, *rest)
        return formula(x, *rest)

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
    traits, tested = (_taken(fields, kind.__slots__) for kind in (Traits, Tested))
    op = Op(
        name=name,
        op_class=op_class,
        signature=parsed,
        shape=shape,
        attribute_names=tuple(a.name for a in parsed.attributes),
        traits=Traits(**traits),
        tested=Tested(**tested),
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


def _taken(fields: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: fields.pop(name) for name in names if name in fields}


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
