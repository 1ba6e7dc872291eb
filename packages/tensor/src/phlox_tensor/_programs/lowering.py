"""From graphs to programs: which ops are instructions, and what they take."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf, prod
from typing import Any, Final, NamedTuple

from .._device.program import Instr, Program
from .._errors.classes import CompileError
from .._op.declaration import Op, Spec, is_built_in
from .._recording.graph import Node, Value, values_of
from .._values.dtype import DType
from .._values.number import Number, Scalar


class Taken(NamedTuple):
    """A number that an instruction takes, and the element type as which it takes it."""

    number: bool | int | float | Number
    dtype: str


class Lowered(NamedTuple):
    """A program, and what its kernel is called with.

    Attributes:
        program: the ops.
        inputs: the values of the graph that are its inputs.
        numbers: what stands for its numbers: plain ones, and those that a replay computes.
        results: the values of the graph that are its outputs.
    """

    program: Program
    inputs: tuple[int, ...]
    numbers: tuple[Any, ...]
    results: tuple[int, ...]


# What bounds of elements that are not given do, as numbers.
_UNBOUNDED: Final = {"max": inf, "min": -inf}


def arguments_of(node: Node, specs: Sequence[Spec]) -> tuple[int | Taken, ...] | str:
    """Return what a node takes as an instruction, values and numbers; or why it is none."""
    op = node.op
    if not op.op_class.diagonal or op.signature.several:
        return f"{op.op_class.name} is not elementwise"
    found: list[int | Taken] = []
    types: dict[str, DType] = {}
    for item, declared in zip(node.operands, op.signature.operands, strict=True):
        if type(item) is Value:
            dtype = types.setdefault(declared.kind, specs[item.number].dtype)
            if dtype is not specs[item.number].dtype:
                return "operands of different element types"
            if dtype.kind == "Int" and op.signature.divides:
                return "integers are taken as floats first"
    result = specs[node.results[0]].dtype
    for item, declared in zip(node.operands, op.signature.operands, strict=True):
        if type(item) is Value:
            found.append(item.number)
        elif not isinstance(item, Scalar) or declared.kind not in types:
            return "an operand is neither a tensor nor a number beside one"
        else:
            found.append(Taken(item, types[declared.kind].name))
    for name, attribute in zip(op.attribute_names, node.attributes, strict=True):
        item = attribute
        if item is None and result.kind == "Float" and is_built_in(op):
            item = _UNBOUNDED.get(name)
        if isinstance(item, DType):
            if item is not result:
                return "an element type that is not that of the result"
        elif not isinstance(item, Scalar):
            return f"an attribute is no number: {item!r}"
        else:
            found.append(Taken(item, next(reversed(types.values())).name))
    return tuple(found)


# The element types as which a source takes its numbers.
_NUMBERS: Final = {"float": "float64", "int": "uint64"}


def source_of(op: Op) -> tuple[str, ...]:
    """Return the element types of the numbers that a source takes."""
    kinds = [item.type for item in op.signature.attributes]
    return tuple(_NUMBERS[kind] for kind in kinds if kind in _NUMBERS)


def _drawn_by(node: Node) -> tuple[Taken, ...]:
    """What a source takes as an instruction."""
    kinds = [item.type for item in node.op.signature.attributes]
    given = zip(kinds, node.attributes, strict=True)
    return tuple(Taken(item, _NUMBERS[kind]) for kind, item in given if kind in _NUMBERS)


def fold_of(node: Node, specs: Sequence[Spec]) -> int | str:
    """Return how many axes, the last ones, a node folds; or why it is no instruction that does."""
    if not node.op.traits.folds:
        return f"{node.op.op_class.name} is not elementwise"
    (operand,) = node.operands
    given = dict(zip(node.op.attribute_names, node.attributes, strict=True))
    axes, shape = given["axis"], specs[operand.number].shape
    first = len(shape) - len(axes)
    if specs[operand.number].dtype is not specs[node.results[0]].dtype:
        return "it gives another element type"
    if not axes or tuple(axes) != tuple(range(first, len(shape))):
        return "it folds other axes than the last ones"
    if prod(shape[first:]) == 1 or 0 in shape:
        return "there is nothing to fold"
    return len(axes)


def lowered(
    nodes: Sequence[Node],
    specs: Sequence[Spec],
    wanted: Sequence[int],
    inner: int = 0,
    keepdims: bool = True,
) -> Lowered:
    """Return nodes that all are instructions as one program with these results.

    Args:
        nodes: in an order in which they can run.
        specs: the spec of each value.
        wanted: the results.
        inner: how many axes the folds among the nodes fold.
        keepdims: whether they keep them.

    Raises:
        CompileError: naming an op that is no instruction.
    """
    made = {result for node in nodes for result in node.results}
    inputs: dict[int, int] = {}
    numbers: dict[Hashable, int] = {}
    given: list[Any] = []
    types: list[str] = []
    taken: list[tuple[int | Taken, ...]] = []
    for node in nodes:
        args: tuple[int | Taken, ...] | str
        if node.op.traits.source:
            args = _drawn_by(node)
        else:
            args = (
                (*values_of(node),) if node.op.traits.folds and inner else arguments_of(node, specs)
            )
        if isinstance(args, str):
            raise in_the_way("kernel", node, args)
        taken.append(args)
        for arg in args:
            if isinstance(arg, Taken):
                if numbers.setdefault(_key(arg), len(numbers)) == len(given):
                    given.append(arg.number)
                    types.append(arg.dtype)
            elif arg not in made:
                inputs.setdefault(arg, len(inputs))
    values = {node.results[0]: at for at, node in enumerate(nodes, len(inputs) + len(numbers))}
    values |= inputs

    def value(arg: int | Taken) -> int:
        return len(inputs) + numbers[_key(arg)] if isinstance(arg, Taken) else values[arg]

    instrs = tuple(
        Instr(node.op.name, tuple(map(value, args)), specs[node.results[0]].dtype.name)
        for node, args in zip(nodes, taken, strict=True)
    )
    outputs = tuple(values[result] for result in wanted)
    rows = [at for v, at in inputs.items() if {1}.issuperset(specs[v].shape[-inner:])]
    dtypes = tuple(specs[v].dtype.name for v in inputs)
    program = Program(dtypes, tuple(types), instrs, outputs)
    if inner:
        program = program._replace(inner=inner, keepdims=keepdims, rows=tuple(rows))
    program.check()
    return Lowered(program, tuple(inputs), tuple(given), tuple(wanted))


def _key(arg: Taken) -> Hashable:
    number = arg.number
    if type(number) is Number:
        return number.place, arg.dtype
    return type(number), repr(number), arg.dtype


def in_the_way(name: str, node: Node, why: str) -> CompileError:
    """The error for an op that keeps a function from being one kernel."""
    return CompileError(
        name,
        f"{node.op.name} is in the way of one kernel",
        got=f"{why}, at {node.line}",
        expected="elementwise ops of tensors and numbers",
        hint="px.compile, which fuses what it can",
    )
