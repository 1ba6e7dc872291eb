"""Elementwise entries: find how operands are walked, then launch the chain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from phlox_tensor import REGISTRY, DType, Rejected, as_dtype, bool_, float32, int32
from phlox_tensor.capture import Kernel, Program
from phlox_tensor.inference import result_dtype

from ._array import ITEM_BYTES, GpuArray, Result, dense_strides, is_dense, layout_of
from ._copy import contiguous
from ._launch import Launch
from ._layout import broadcast_strides, merge_axes
from ._random import numbers_of
from ._runtime import GpuDevice
from ._split import Piece, bindings, pieces
from ._table import Entries
from .wgsl import table
from .wgsl.chain import Chain, Node, Walk, chain_source, has_row, reporting_op, steps, stride_axes
from .wgsl.random import NUMBERS

Operand = GpuArray | bool | int | float

# The kind sets of signatures that an array of a kind belongs to.
_SETS = {
    "Bool": ("Any", "Bits", "Bool"),
    "Float": ("Any", "Float", "Num"),
    "Int": ("Any", "Bits", "Int", "Num"),
}
# The Python numbers that an array of a kind takes as operands.
_NUMBERS = {"Bool": (bool,), "Float": (float, int, bool), "Int": (int, bool)}
_COPY_FROM = 1 << 18  # elements from which a transposed operand is copied first
_FLOAT32_MAX = 3.4028235677973366e38  # numbers from here on round to infinity
_INT_RANGES = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


class Chained:
    """A chain and the element types of its results; ``token`` names it in the caches."""

    __slots__ = ("chain", "dtypes", "token")

    _tokens = count()

    def __init__(self, chain: Chain, dtypes: tuple[DType, ...]) -> None:
        self.chain = chain
        self.dtypes = dtypes
        self.token = next(Chained._tokens)


@dataclass(slots=True)
class Plan:
    """How a program runs over operands of one layout, and what it gives."""

    program: Chained
    shape: tuple[int, ...]
    pieces: tuple[tuple[Piece, Chained], ...] = ()
    launch: Launch | None = None  # None: it runs in pieces
    copies: tuple[bool, ...] = ()
    numbers: tuple[tuple[int, str], ...] = ()  # which operands are some, and of what type
    results: tuple[Result, ...] = ()


def run_program(
    device: GpuDevice, program: Chained, operands: tuple[Operand, ...]
) -> tuple[GpuArray, ...]:
    """Run a chain over operands of its element types whose shapes broadcast.

    At least one operand is an array. Scalars take the element type that the chain gives their
    input.

    Raises:
        Rejected: the shapes do not broadcast, or a number does not fit the element type it meets.
    """
    key = (
        program.token,
        *[x.known or x.layout if type(x) is GpuArray else type(x) for x in operands],
    )
    plan: Plan = device.plans.get(key) or device.plans.find(
        key, lambda: _plan(device, program, operands)
    )
    return tuple(_run(device, plan, operands))


def _run(device: GpuDevice, plan: Plan, operands: tuple[Any, ...]) -> Sequence[GpuArray]:
    if plan.launch is None:
        return _run_pieces(device, plan, operands)
    if plan.copies:
        pairs = zip(operands, plan.copies, strict=True)
        dense = [contiguous(device, x) if c and type(x) is GpuArray else x for x, c in pairs]
        return run_program(device, plan.program, tuple(dense))
    inputs: Sequence[Any] = operands
    numbers: list[float] = []
    if plan.numbers:
        inputs = [x for x in operands if type(x) is GpuArray]
        numbers = [scalar(operands[place], kind) for place, kind in plan.numbers]
    return plan.launch.run(device, inputs, [], numbers, plan.results)


def _run_pieces(
    device: GpuDevice, plan: Plan, operands: tuple[Operand, ...]
) -> tuple[GpuArray, ...]:
    """Run a chain over more arrays than a kernel binds, piece by piece."""
    values: dict[int, Any] = dict(enumerate(operands))
    for piece, part in plan.pieces:
        results = run_program(device, part, tuple(values[i] for i in piece.takes))
        values |= zip(piece.gives, results, strict=True)
    return tuple(
        x.view(plan.shape, broadcast_strides(x.shape, x.strides, plan.shape), x.offset)
        for x in (values[i] for i in plan.program.chain.outputs)
    )


def scalar(value: float, dtype: str) -> float:
    """A Python number as the parameter of an element type: rounded as that type would round it.

    Raises:
        Rejected: an integer that the type does not hold; the full path tells users.
    """
    if dtype == "float32":
        if -_FLOAT32_MAX < value < _FLOAT32_MAX:
            return value
        try:
            return value if math.isnan(value) else math.copysign(math.inf, value)
        except OverflowError:  # an integer beyond every float
            raise Rejected from None
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return float(np.float16(value))
    if dtype == "bool":
        return int(bool(value))
    low, high = _INT_RANGES[dtype]
    if not low <= value <= high:
        raise Rejected(f"{value} does not fit {dtype}")
    return int(value)


def _plan(device: GpuDevice, program: Chained, operands: tuple[Operand, ...]) -> Plan:
    chain = program.chain
    arrays = [x for x in operands if isinstance(x, GpuArray)]
    try:
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
    except ValueError:
        raise Rejected from None
    if bindings(chain, len(arrays)) > device.max_bindings:
        return Plan(program, shape, pieces=_pieces(device, chain, operands))
    size = math.prod(shape)
    strides = [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
    # What an element draws depends on its place in row-major order.
    order = None if chain.sources() else _memory_order(shape, strides)
    if order is not None:
        strides = [tuple(own[i] for i in order) for own in strides]
    ordered = shape if order is None else tuple(shape[i] for i in order)
    lengths, merged = merge_axes(ordered, strides)
    walk = choose(operands, arrays, lengths, merged, allowed=not reporting_op(chain))
    total = -(-size // 4) if walk.vector else size
    inputs, params = walked(walk, lengths, merged)
    groups, kernel = -(-total // steps(walk)), (chain_source, chain, walk)
    result = dense_strides(ordered)
    if order is not None:
        result = tuple(result[order.index(i)] for i in range(len(shape)))
    dense = is_dense(shape, result)
    return Plan(
        program=program,
        launch=Launch.of(device, kernel, groups, (), inputs, (total, *params)),
        shape=shape,
        copies=() if walk.vector or size < _COPY_FROM else _against(operands, merged),
        numbers=tuple(
            (place, chain.inputs[place])
            for place, x in enumerate(operands)
            if not isinstance(x, GpuArray)
        ),
        results=tuple(
            (
                shape,
                result,
                size,
                size * ITEM_BYTES[t.name],
                t,
                layout_of(t, shape, result, 0),
                dense,
            )
            for t in program.dtypes
        ),
    )


def walked(
    walk: Walk, lengths: tuple[int, ...], strides: list[tuple[int, ...]]
) -> tuple[tuple[tuple[int, tuple[()]], ...], tuple[int, ...]]:
    """The arrays that a walk reads as a launch has them, and its lengths and strides."""
    axes = list(lengths)
    if walk.vector and len(axes) > 1:
        axes[-1] //= 4
    kinds = [kind for kind in walk.access if kind != "c"]
    params = axes[1:]
    for kind, own in zip(kinds, strides, strict=True):
        params += [own[axis] // 4 if kind == "v" else own[axis] for axis in stride_axes(walk)]
    return tuple((4 if kind == "v" else 1, ()) for kind in kinds), (*params,)


def _pieces(
    device: GpuDevice, chain: Chain, operands: tuple[Operand, ...]
) -> tuple[tuple[Piece, Chained], ...]:
    is_array = [isinstance(x, GpuArray) for x in operands]
    return tuple(
        (piece, Chained(piece.chain, tuple(as_dtype(chain.dtype(i)) for i in piece.gives)))
        for piece in pieces(chain, is_array, device.max_bindings)
    )


def _memory_order(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The axes by falling stride, where all arrays that are not broadcast agree and it differs.

    The result then takes the layout of the operands, as NumPy's does: transposed plus transposed is
    a walk along memory, and a transposed view of a dense array.
    """
    whole = [
        own for own in strides if all(step or n == 1 for n, step in zip(shape, own, strict=True))
    ]
    orders = {
        tuple(sorted(range(len(shape)), key=lambda i: -abs(own[i]) if shape[i] > 1 else 0))
        for own in whole
    }
    if len(orders) != 1 or 0 in shape:
        return None
    (order,) = orders
    moved = [i for i in order if shape[i] > 1]
    return None if moved == sorted(moved) else order


def _against(operands: tuple[Operand, ...], strides: list[tuple[int, ...]]) -> tuple[bool, ...]:
    """Which operands are read against the grain: a copy through tiles costs less. None: empty."""
    each = iter(strides)
    copies = []
    for x in operands:
        own = next(each) if isinstance(x, GpuArray) else ()
        copies.append(bool(own) and own[-1] not in (0, 1) and 1 in own)
    return tuple(copies) if any(copies) else ()


def choose(
    operands: tuple[Operand, ...],
    arrays: list[GpuArray],
    lengths: tuple[int, ...],
    strides: list[tuple[int, ...]],
    *,
    allowed: bool,
) -> Walk:
    """Vectors when all arrays step by 1 or 0 along the last axis and sit on multiples of four."""
    rank = max(len(lengths), 1)
    vector = allowed and (len(lengths) < 2 or lengths[-1] % 4 == 0)
    letters = []
    for x, own in zip(arrays, strides, strict=True):
        inner = own[-1] if own else 0
        aligned = x.offset % 4 == 0 and all(step % 4 == 0 for step in own[:-1])
        vector = vector and (inner == 0 or (inner == 1 and aligned))
        letters.append("v" if inner else "s")
    each = iter(letters)
    access = "".join(
        (next(each) if vector else "e") if isinstance(x, GpuArray) else "c" for x in operands
    )
    return Walk(access, rank if vector else len(lengths), vector)


def _entry(op: str) -> Callable[..., GpuArray]:
    """Make the entry of one op; it raises Rejected for operands that it does not take as is."""
    programs: dict[DType, Chained] = {}
    declared = REGISTRY[op].signature.operands
    # A condition in front is Bool beside values of another type.
    first = int(declared[0].kind == "Bool" != declared[-1].kind)

    def run(device: GpuDevice, *operands: Operand) -> GpuArray:
        # Plans depend on the layouts of arrays and on the types of numbers.
        key = (op, *[x.known or x.layout if type(x) is GpuArray else type(x) for x in operands])
        plan: Plan = device.plans.get(key) or device.plans.find(
            key, lambda: found(device, operands)
        )
        return _run(device, plan, operands)[0]

    def found(device: GpuDevice, operands: tuple[Operand, ...]) -> Plan:
        if first and not _is_bool(operands[0]):
            raise Rejected
        dtype = _common(operands[first:] if first else operands)
        program = programs.get(dtype)
        if program is None:
            program = programs[dtype] = _program(op, dtype)
        return _plan(device, program, operands)

    return run


def _program(op: str, dtype: DType) -> Chained:
    """The program of one op on operands of one element type."""
    declared = REGISTRY[op]
    signature = declared.signature
    takes = signature.operands[-1].kind in _SETS[dtype.kind]
    if not takes or (dtype.kind == "Int" and signature.divides):
        raise Rejected
    kinds = [o.kind for o in signature.operands]
    types = [bool_ if kind == "Bool" else dtype for kind in kinds]
    result = result_dtype(declared, signature.results[0].kind, types, (), int32)
    number = len(signature.operands) + len(signature.attributes)
    inputs = tuple("bool" if kind == "Bool" else dtype.name for kind in kinds)
    inputs += (dtype.name,) * len(signature.attributes)
    chain = Chain(inputs, (Node(op, tuple(range(number)), result.name),), (number,))
    return Chained(chain, (result,))


def _is_bool(x: Operand) -> bool:
    return x.dtype is bool_ if type(x) is GpuArray else isinstance(x, bool)


def _common(operands: tuple[Operand, ...]) -> DType:
    """The one element type of the operands.

    Raises:
        Rejected: they differ, a number is of another kind, or something is neither array nor
        number.
    """
    dtype: DType | None = None
    numbers = False
    for x in operands:
        if type(x) is GpuArray:
            if dtype is None:
                dtype = x.dtype
            elif x.dtype is not dtype:
                raise Rejected
        else:
            numbers = True
    if dtype is None:
        if all(isinstance(x, bool) for x in operands):
            return bool_
        if not all(isinstance(x, (float, int)) for x in operands):
            raise Rejected  # tensors of other devices among them
        return float32 if any(isinstance(x, float) for x in operands) else int32
    if numbers:
        for x in operands:
            if type(x) is not GpuArray and not isinstance(x, _NUMBERS[dtype.kind]):
                raise Rejected
    return dtype


def clip(device: GpuDevice, x: GpuArray, low: float | None, high: float | None) -> GpuArray:
    """Maximum with `low`, then minimum with `high`."""
    bounds = [("maximum", low), ("minimum", high)]
    used = [(op, bound) for op, bound in bounds if bound is not None]
    if not used:
        return x
    dtype = x.dtype.name
    nodes = []
    value = 0
    for number, (op, _) in enumerate(used):
        nodes.append(Node(op, (value, number + 1), dtype))
        value = len(used) + 1 + number
    chain = Chain((dtype,) * (len(used) + 1), tuple(nodes), (value,))
    limits = [_held(bound, x.dtype) for _, bound in used]
    return run_program(device, _known(chain, x.dtype), (x, *limits))[0]


def _held(bound: float, dtype: DType) -> float:
    """The bound itself, or for integers the limit of the type where the bound is past it."""
    if dtype.kind != "Int":
        return bound
    low, high = _INT_RANGES[dtype.name]
    return min(max(bound, low), high)


def cast(device: GpuDevice, x: GpuArray, dtype: DType) -> GpuArray:
    """The elements in another type."""
    if dtype is x.dtype:
        return x
    chain = Chain((x.dtype.name,), (Node("cast", (0,), dtype.name),), (1,))
    return run_program(device, _known(chain, dtype), (x,))[0]


@cache
def _known(chain: Chain, dtype: DType) -> Chained:
    return Chained(chain, (dtype,))


# Ops that are rows one after the other, each of which takes one more argument.
_STEPS = {"clip": ("maximum", "minimum")}


def kernel(device: GpuDevice, program: Program) -> Kernel | None:
    """The kernel of a program: a chain whose last inputs are numbers; None where a row is missing.

    Its text is compiled at the first call, for the layout of the operands.
    """
    chain = chain_of(program)
    if chain is None:
        return None
    chained = Chained(chain, tuple(as_dtype(chain.dtype(value)) for value in chain.outputs))
    sources = [instr for instr in program.instrs if REGISTRY[instr.op].traits.source]
    if not sources:
        return lambda *operands: run_program(device, chained, operands)
    taken = _taken(program)

    def run(*operands: Any) -> tuple[GpuArray, ...]:
        given = [operands[value] for value in taken]
        for law, args, _ in sources:
            given += numbers_of(law, *(operands[value] for value in args))
        return run_program(device, chained, tuple(given))

    return run


def _taken(program: Program) -> list[int]:
    """The inputs, and the numbers that others than sources take, as values."""
    asked = {arg for i in program.instrs if REGISTRY[i.op].traits.source for arg in i.args}
    used = {arg for i in program.instrs if not REGISTRY[i.op].traits.source for arg in i.args}
    return [v for v in range(program.start) if v not in asked or v in used]


def chain_of(program: Program) -> Chain | None:
    """A program without folds as a chain; None where a row is missing."""
    taken = _taken(program)
    inputs = [program.dtype(value) for value in taken]
    values = {value: at for at, value in enumerate(taken)}  # as those of the chain
    drawn = sum(REGISTRY[instr.op].traits.source for instr in program.instrs)
    free = len(inputs)
    inputs += [*NUMBERS] * drawn
    nodes: list[Node] = []

    def add(op: str, args: tuple[int, ...], dtype: str) -> int:
        nodes.append(Node(op, args, dtype))
        return len(inputs) + len(nodes) - 1

    for value, instr in enumerate(program.instrs, program.start):
        if REGISTRY[instr.op].traits.source:
            values[value] = add(instr.op, tuple(range(free, free + len(NUMBERS))), instr.dtype)
            free += len(NUMBERS)
            continue
        args = tuple(values[arg] for arg in instr.args)
        steps = _STEPS.get(instr.op)
        if steps is None:
            values[value] = add(instr.op, args, instr.dtype)
            continue
        made = args[0]
        for step, arg in zip(steps, args[1:], strict=True):
            made = add(step, (made, arg), instr.dtype)
        values[value] = made
    outputs = tuple(values[value] for value in program.outputs)
    chain = Chain(tuple(inputs), tuple(nodes), outputs)
    return chain if all(has_row(chain, node) for node in nodes) else None


ENTRIES: Entries = {op: _entry(op) for op in table.ELEMENTWISE} | {"cast": cast, "clip": clip}
