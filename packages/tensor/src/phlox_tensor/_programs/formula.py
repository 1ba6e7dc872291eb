"""Formulas: functions of elements as ops of their own, which run as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, final

from .._call.dispatch import wrap
from .._call.operands import device_of, lift
from .._device.backend import Backend
from .._device.program import Instr, Kernel, Program
from .._device.table import Entry, Table
from .._errors.classes import CompileError, Rejected
from .._op.declaration import Op
from .._op.expansion import expansion
from .._op.signature import Attribute, Operand, Result, Signature
from .._recording.graph import Formula, Guard, filled
from .._recording.record import recording
from .._values.cell import RECORDINGS
from .._values.dtype import DType
from .._values.number import Number, plain, same
from .._values.tensor import Tensor
from ..ops._expansion import PART_AS
from ..ops._families import elementwise as _elementwise
from ..shapes._broadcast import elementwise
from .limits import has_programs, lacks_types, too_much
from .lowering import Lowered, in_the_way
from .tracing import Sketch, Sketched, sketched

# How a call looks: an element type for each tensor, a type for each number, else the value.
Form = tuple[Any, ...]
MOST_KEPT: Final = 256  # forms of a formula; numbers that it asks about have one for each answer


@final
class ElementFormula:
    """A function of elements that is an op of its own: it runs as one kernel, with a derivative.

    Decorators see an op with an expansion, which is in no table. Where they need its derivative,
    they derive further formulas from it, which are kernels too.

    Args:
        name: what errors and profiles call it.
        function: from tensors and numbers to one tensor.
        strict: raise where it cannot be one kernel; else its ops run one by one there.
    """

    def __init__(self, name: str, function: Callable[..., Any], *, strict: bool) -> None:
        """Keep the function."""
        self.name: Final = name
        self.function: Final = function
        self._strict = strict
        self._ops: dict[tuple[Backend, Form], tuple[Op, BaseEntry]] = {}
        self._entries: dict[tuple[Backend, Form], tuple[Table, Entry]] = {}

    def __call__(self, *args: Any) -> Tensor[Any]:
        """Apply the function to tensors and numbers."""
        device, given, form = self._looked_at(args)
        found = self._entries.get((device, form))
        if found is None or found[0] is not device.ops:
            if isinstance(device.base, Sketch):  # a formula inside of another one
                return self.function(*given)
            found = self._made(device, form, given)
        operands = []
        attributes = []
        for item in given:
            if type(item) is Tensor:
                operands.append(item.primitive)
            else:
                attributes.append(item)
        return wrap(found[1](*operands, *attributes), device)

    def direct(self, *args: Any) -> Direct | None:
        """Return what a call runs that is like one before; None where that is more than a kernel.

        So it is on devices that wrap another one, and where the function asks about its numbers.
        """
        device, _, form = self._looked_at(args)
        known = self._ops.get((device, form))
        found = self._entries.get((device, form))
        if known is None or found is None or found[0] is not device.ops:
            return None
        version = known[1].only_kernel()
        if version is None or version.kernel is None:
            return None
        tensors = [place for place, item in enumerate(form) if isinstance(item, DType)]
        inputs = tuple([tensors[at] for at in version.inputs])
        return Direct(
            device, found[0], form, version.kernel, inputs, version.numbers, version.given
        )

    def program(self, *args: Any) -> Program:
        """Return the program that a call with these arguments runs.

        Raises:
            CompileError: where there is none.
        """
        device, given, form = self._looked_at(args)
        found = self._sketched(device.base, _sample(form, given))
        if isinstance(found.lowered, CompileError):
            raise found.lowered
        return found.lowered.program

    def _looked_at(self, args: Sequence[Any]) -> tuple[Backend, Sequence[Any], Form]:
        """The device of a call, its arguments there, and its form."""
        form: list[Any] = []
        device: Backend | None = None
        alike = True
        for item in args:
            if type(item) is Tensor:
                own: Backend = item.device
                if own is not device:
                    alike = device is None
                    device = own
                form.append(own.dtype_of(item.primitive))
            else:
                form.append(_kind_of(self.name, item))
        if device is None:
            raise CompileError(
                self.name,
                "no tensor among the arguments",
                got=", ".join(type(item).__name__ for item in args) or "nothing",
                expected="at least one tensor",
                hint="px.asarray(x)",
            )
        if not alike:
            device = device_of(self.name, [x for x in args if type(x) is Tensor])
            args = [lift(x, device) if type(x) is Tensor else x for x in args]
        return device, args, tuple(form)

    # The op of a form, and its entries

    def _made(self, device: Backend, form: Form, given: Sequence[Any]) -> tuple[Table, Entry]:
        """Make the entry on a device, through all that it wraps."""
        base = device.base
        known = self._ops.get((base, form))
        if known is None:
            if len(self._ops) >= MOST_KEPT:
                self._ops.clear()
            op = self._op(base, form, given)
            known = self._ops[base, form] = op, BaseEntry(self, op, base, form, strict=self._strict)
        entry = device.unlisted(*known)
        table = device.ops
        if len(self._entries) >= MOST_KEPT:
            self._entries.clear()
        self._entries[device, form] = table, entry
        return table, entry

    def _op(self, base: Backend, form: Form, given: Sequence[Any]) -> Op:
        sample = _sample(form, given)
        found = self._sketched(base, sample)
        tensors = [place for place, item in enumerate(form) if isinstance(item, DType)]
        if self._strict:
            _require_all(self.name, tensors, found)
        order = [*tensors, *(place for place in range(len(form)) if place not in tensors)]
        back = [order.index(place) for place in range(len(form))]
        ordered = [sample[place] for place in order]

        def expand(*args: Any) -> Any:
            return self.function(*[args[place] for place in back])

        known: dict[int, Derived | None] = {}

        def derive(cotangent: Callable[..., Any], operand: int) -> Derived | None:
            if operand not in known:
                name = f"{self.name} by x{operand}"
                known[operand] = _derived(name, cotangent, base, [*ordered, found.dtype])
            return known[operand]

        return Op(
            name=self.name,
            op_class=_elementwise,
            signature=_signature(ordered, len(tensors), found.dtype),
            doc=self.name,
            shape=elementwise,
            expand=expand,
            derive=derive,
            attribute_names=tuple(f"a{at}" for at in range(len(form) - len(tensors))),
        )

    def _sketched(self, base: Backend, sample: Sequence[Any]) -> Sketched:
        return sketched(self.name, self.function, base, sample)


class Direct(NamedTuple):
    """The kernel that calls of one form run.

    Attributes:
        device: the device of all tensors, a base device.
        table: its ops, as long as it runs them so.
        form: the form of the arguments.
        kernel: runs the program.
        inputs: the places of the arguments that it takes.
        numbers: how numbers come about of those among the arguments.
        given: the numbers that it takes.
    """

    device: Backend
    table: Table
    form: Form
    kernel: Kernel
    inputs: tuple[int, ...]
    numbers: tuple[Formula, ...]
    given: tuple[Any, ...]


class Derived(NamedTuple):
    """The cotangent of an operand of a formula, as one more formula.

    Attributes:
        formula: from some operands, the attributes, and the cotangent of the result.
        operands: which ones.
    """

    formula: ElementFormula
    operands: tuple[int, ...]


def _derived(
    name: str, cotangent: Callable[..., Any], base: Backend, sample: Sequence[Any]
) -> Derived | None:
    """A function of operands, attributes and the cotangent g as a formula; None where it is 0."""
    found = sketched(name, cotangent, base, sample)
    g = len(sample) - 1
    count = sum(isinstance(item, DType) for item in sample[:g])
    if found.graph.guards:  # other numbers may ask for other operands
        return Derived(ElementFormula(name, cotangent, strict=False), tuple(range(count)))
    if g not in found.used:
        return None
    used = tuple(place for place in found.used if place < count)

    def of_used(*args: Any) -> Any:
        whole = [args[-1]] * count  # the others are not looked at; any tensor will do
        for place, item in zip(used, args, strict=False):
            whole[place] = item
        return cotangent(*whole, *args[len(used) :])

    return Derived(ElementFormula(name, of_used, strict=False), used)


def _signature(sample: Sequence[Any], count: int, dtype: DType) -> Signature:
    """The signature of an op of ``count`` tensors, then attributes."""
    operands = tuple(Operand(f"x{at}", item.kind) for at, item in enumerate(sample[:count]))
    attributes = tuple(Attribute(f"a{at}", "Scalar", None) for at in range(len(sample) - count))
    text = ", ".join(f"{operand.name}: {operand.kind}" for operand in operands)
    return Signature(operands, attributes, (Result("y", dtype.kind),), f"{text} -> {dtype.kind}")


def _require_all(name: str, tensors: Sequence[int], found: Sketched) -> None:
    """Refuse what is no kernel, and arguments that are there for nothing."""
    if isinstance(found.lowered, CompileError):
        raise found.lowered
    idle = [place for place in tensors if place not in found.used]
    if idle:
        raise CompileError(
            name,
            "the result does not depend on a tensor that is an argument",
            got=f"argument {idle[0]}, which is not used",
            expected="a result that depends on every tensor",
            hint="leave the argument out",
        )


PART_AS.append(partial(ElementFormula, strict=False))

# Running on a base device


class Bound(NamedTuple):
    """A kernel, which operands it takes, and the numbers that it takes after them."""

    kernel: Kernel
    inputs: tuple[int, ...]
    given: tuple[Any, ...]


class _Version(NamedTuple):
    """What runs a formula, as long as it asks the same of its numbers.

    Attributes:
        numbers: how its numbers come about.
        guards: what it asked of them.
        kernel: runs the program; None: the ops run one by one.
        inputs: which operands the kernel takes.
        given: the numbers that it takes.
    """

    numbers: tuple[Formula, ...]
    guards: tuple[Guard, ...]
    kernel: Kernel | None
    inputs: tuple[int, ...]
    given: tuple[Any, ...]


@final
class BaseEntry:
    """The entry of a formula on a base device."""

    def __init__(
        self, formula: ElementFormula, op: Op, device: Backend, form: Form, *, strict: bool
    ) -> None:
        self._formula = formula
        self._device = device
        self._strict = strict
        self._one_by_one = expansion(op, device)
        # In the order of the entry: operands, then attributes.
        self._expand: Any = op.expand
        self._count = len(op.signature.operands)
        self._dtypes = [item for item in form if isinstance(item, DType)]
        self._statics = [item for item in form if not isinstance(item, DType)]
        self._versions: list[_Version] = []
        self._settled = False  # ``_only`` holds for all calls: it takes no numbers
        self._only: Bound | None = None

    def __call__(self, *args: Any) -> Any:
        if RECORDINGS.count and recording() is not None:
            return self._one_by_one(*args)  # the ops join what stands around them
        found = self._only if self._settled else self.bound(args[self._count :])
        if found is None:
            return self._one_by_one(*args)
        try:
            return found.kernel(*[args[place] for place in found.inputs], *found.given)[0]
        except Rejected:
            return self._one_by_one(*args)

    def bound(self, numbers: Sequence[Any]) -> Bound | None:
        """The kernel for these numbers; None where the ops run one by one."""
        version, values = self._version(list(map(plain, numbers)))
        found = None
        if version.kernel is not None:
            given = tuple([values[n.place] if type(n) is Number else n for n in version.given])
            found = Bound(version.kernel, version.inputs, given)
        if not version.numbers:
            self._only, self._settled = found, True
        return found

    def only_kernel(self) -> _Version | None:
        """What runs for all numbers; None where they decide."""
        one = self._versions[0] if len(self._versions) == 1 else None
        return None if one is None or one.guards else one

    def _version(self, numbers: list[Any]) -> tuple[_Version, list[Any]]:
        """What runs for these numbers, and what it computes of them."""
        dynamic = [n for n, form in zip(numbers, self._statics, strict=True) if moves(form)]
        for version in self._versions:
            try:
                values = _computed(version.numbers, dynamic)
                if all(
                    same(g.function(*[filled(a, {}, values) for a in g.args]), g.value)
                    for g in version.guards
                ):
                    return version, values
            except Exception:  # the function is asked what it does then
                continue
        made = self._made(numbers)
        if len(self._versions) >= MOST_KEPT:
            self._versions.clear()
        self._versions.append(made)
        return made, _computed(made.numbers, dynamic)

    def _made(self, numbers: list[Any]) -> _Version:
        device = self._device
        try:
            found = sketched(self._formula.name, self._expand, device, [*self._dtypes, *numbers])
        except CompileError:
            if self._strict:
                raise
            return _Version((), (), None, (), ())
        graph, parts = found.graph, found.lowered
        if self._strict:
            _require_all(self._formula.name, range(self._count), found)
        if isinstance(parts, CompileError) or not has_programs(device):
            return _Version(graph.numbers, graph.guards, None, (), ())
        program = parts.program
        why = too_much(device, program)
        kernel = None if why else device.kernel(program)
        if kernel is None and self._strict and not lacks_types(device, program):
            raise self._refused(program, parts, found, why)
        return _Version(graph.numbers, graph.guards, kernel, parts.inputs, parts.numbers)

    def _refused(
        self, program: Program, parts: Lowered, found: Sketched, why: str | None
    ) -> CompileError:
        """Why a device has no kernel for a program."""
        if why is None:
            nodes = {node.results[0]: node for node in found.graph.nodes}
            own = [nodes[v] for v in nodes if nodes[v].op.name in {i.op for i in program.instrs}]
            for instr, node in zip(program.instrs, own, strict=False):
                types = tuple(program.dtype(arg) for arg in instr.args)
                alone = Program(
                    types,
                    (),
                    (Instr(instr.op, tuple(range(len(types))), instr.dtype),),
                    (len(types),),
                )
                if self._device.kernel(alone) is None:
                    return in_the_way(
                        self._formula.name, node, f"no kernel for {', '.join(types)} here"
                    )
        return CompileError(
            self._formula.name,
            f"{self._device!r} has no kernel for all of it at once",
            got=why or "ops that it runs only by themselves",
            expected=f"at most {self._device.limits.instrs} ops, {self._device.limits.bindings} "
            "inputs and outputs",
            hint="two kernels in place of one; or px.compile, which fuses what it can",
        )


def moves(form: Any) -> bool:
    """Whether an argument is a number that may be another at each call."""
    return form is int or form is float


def _computed(numbers: Sequence[Formula], given: Sequence[Any]) -> list[Any]:
    """The numbers of a version, those that are given first come."""
    rest = iter(given)
    values: list[Any] = []
    for function, args in numbers:
        values.append(
            next(rest) if function is None else function(*[filled(a, {}, values) for a in args])
        )
    return values


def _kind_of(name: str, item: Any) -> Any:
    """What stands for an argument that is no tensor in the form of a call."""
    cls = type(item)
    if cls is float or cls is int:
        return cls
    if cls is Number:
        return type(item.value)
    if item is None or cls in (bool, str):
        return cls, item
    raise CompileError(
        name,
        "an argument is neither a tensor nor a number",
        got=cls.__name__,
        expected="tensors, numbers, bool, str, None",
        hint="px.asarray(x) for data; float(x) for a number of another library",
    )


def _sample(form: Form, given: Sequence[Any]) -> list[Any]:
    """Element types in the places of tensors, and plain numbers."""
    return [
        item if isinstance(item, DType) else plain(x) for item, x in zip(form, given, strict=True)
    ]
