"""The emitter of elementwise kernels: an expression graph over inputs in, one kernel out.

An eager op is a chain of one node; a fusion decorator may hand in a graph of any size. The text
depends on the ops, the element types and the way the inputs are walked, never on lengths, strides
or scalar values: those are parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

from phlox_tensor import REGISTRY

from .._kernel import Kernel
from . import random, table
from .reduce import Reduction, reduction_body, reduction_params
from .tile import SIGNATURE
from .walk import WORKGROUP, Params, coordinates, lengths, strides

VECTORS_PER_THREAD = 2  # measured: two vec4 per thread move a fifth more bytes per second than one

_LETTERS = {"bool": "b", "float16": "f", "float32": "f", "int32": "i", "uint32": "u"}
_VALUES = {"b": "bool", "f": "f32", "i": "i32", "u": "u32"}
_STORED = {"bool": "u32", "float16": "f16", "float32": "f32", "int32": "i32", "uint32": "u32"}
_PARAMETERS = {"b": "u32", "f": "f32", "i": "i32", "u": "u32"}


@dataclass(frozen=True, slots=True)
class Node:
    """One op: its name, the values that it takes, the element type of its result.

    Values are counted from 0, inputs first, then nodes. A source of random numbers takes scalars
    alone: those that ``random.NUMBERS`` tells.
    """

    op: str
    args: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Chain:
    """An expression graph: element types of its inputs, nodes in order, which values it stores."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def dtype(self, value: int) -> str:
        """The element type of a value."""
        count = len(self.inputs)
        return self.inputs[value] if value < count else self.nodes[value - count].dtype

    def sources(self) -> list[tuple[int, Node]]:
        """The nodes that draw random numbers, by value."""
        found = enumerate(self.nodes, len(self.inputs))
        return [(value, node) for value, node in found if REGISTRY[node.op].traits.source]


@dataclass(frozen=True, slots=True)
class Walk:
    """How a kernel goes through its inputs; the outputs are dense.

    ``access`` has a letter per input: v a vec4 per step, s one element for four (stride 0 along the
    last axis), e an element per step, c a scalar parameter. ``vector`` walks hold v, s and c;
    others e and c. ``rank`` counts the axes after merging.
    """

    access: str
    rank: int
    vector: bool


def chain_source(chain: Chain, walk: Walk) -> Kernel:
    """The kernel of a chain.

    Bindings: the inputs that are not scalars, in order, then the outputs. Parameters: for every
    input that is not a scalar its offset (in vec4 for v); the number of steps; the lengths of all
    axes but the first; for every input that is not a scalar its strides (in vec4 for v) along all
    axes but a vector walk's last; the values of the scalars. `steps` says how many steps one
    workgroup takes.
    """
    first, last = _params(chain, walk)
    outputs = tuple(stored_type(chain.dtype(value), walk.vector) for value in chain.outputs)
    main = _vector_main(chain, walk) if walk.vector else _element_main(chain, walk)
    body = kept(function(chain) + main, "count")
    params = (*first, ("count", "u32"), *last)
    return Kernel(body, _inputs(chain, walk), outputs, params, reporting_op(chain))


def fold_source(chain: Chain, walk: Walk, reduction: Reduction) -> Kernel:
    """The kernel of a reduction over rows of float32 that a chain makes and nobody stores.

    Bindings: the inputs that are not scalars, then what a pass of the reduction gives. Parameters:
    those of ``chain_source`` in front of its number of steps, those of the reduction, then those
    after that number.
    """
    first, last = _params(chain, walk)
    lines = _loads(chain, walk) if walk.vector else []
    kind = "vec4<f32>" if reduction.vector else "f32"
    one = "\n".join([*_positions(walk, "e"), f"  return {_called(chain, walk)};"])
    if walk.vector:
        body = "\n".join([*lines, f"  return {kind}({', '.join(f'r{x}' for x in 'xyzw')});"])
        element = f"fn element_at(i: u32) -> {kind} {{\n{body}\n}}\n"
    elif reduction.vector:
        parts = ", ".join(f"one_at(4u * i + {n}u)" for n in range(4))
        element = f"fn one_at(i: u32) -> f32 {{\n{one}\n}}\n"
        element += f"fn element_at(i: u32) -> {kind} {{ return {kind}({parts}); }}\n"
    else:
        element = f"fn element_at(i: u32) -> f32 {{\n{one}\n}}\n"
    params = (*first, *reduction_params(reduction), *last)
    outputs = (reduction.target or reduction.accumulator,)
    text = kept(function(chain, inner=True) + element + reduction_body(reduction), "length")
    return Kernel(text, _inputs(chain, walk), outputs, params)


def _params(chain: Chain, walk: Walk) -> tuple[Params, Params]:
    """The parameters in front of the number of steps, and those after."""
    tensors = [i for i, kind in enumerate(walk.access) if kind != "c"]
    last = [*lengths(walk.rank)]
    last += [pair for i in tensors for pair in strides(f"s{i}_", stride_axes(walk))]
    scalars = [i for i, kind in enumerate(walk.access) if kind == "c"]
    last += [(f"c{i}", _PARAMETERS[_LETTERS[chain.inputs[i]]]) for i in scalars]
    return tuple((f"o{i}", "i32") for i in tensors), tuple(last)


def _inputs(chain: Chain, walk: Walk) -> tuple[str, ...]:
    given = zip(chain.inputs, walk.access, strict=True)
    return tuple(stored_type(dtype, kind == "v") for dtype, kind in given if kind != "c")


def reporting_op(chain: Chain) -> str:
    """The op of the chain that may report an error, or "". Its walk must not be a vector one.

    The last vector of a vector walk may reach past the array, over whatever lies there.
    """
    for node in chain.nodes:
        if (node.op, _LETTERS[chain.dtype(node.args[0])]) in table.REPORTING:
            return node.op
    return ""


def has_row(chain: Chain, node: Node) -> bool:
    """Whether there is an expression for a node, and a storage type for all that it meets."""
    dtypes = [*map(chain.dtype, node.args), node.dtype]
    if not {*dtypes} <= _STORED.keys():
        return False
    if node.op == "cast":
        return True
    if REGISTRY[node.op].traits.source:
        return random.has_source(node.op, node.dtype) and node.args[0] < len(chain.inputs)
    try:
        table.expression(node.op, _LETTERS[dtypes[-2]])
    except KeyError:
        return False
    return True


def steps(walk: Walk) -> int:
    """Vectors or elements that one workgroup handles."""
    return WORKGROUP * VECTORS_PER_THREAD if walk.vector else WORKGROUP


def stride_axes(walk: Walk) -> range:
    """The axes along which an input has a stride parameter."""
    if walk.vector:
        return range(walk.rank - 1)
    return range(walk.rank)


def convert(text: str, source: str, target: str) -> str:
    """The cast of an expression of element type `source` to `target`, as the numeric spec says."""
    a, b = _LETTERS[source], _LETTERS[target]
    if a == b:
        return text
    if b == "b":
        return {
            "f": f"(is_nan_f32({text}) || {text} != 0.0)",
            "i": f"{text} != 0",
            "u": f"{text} != 0u",
        }[a]
    if a == "f":
        return f"to_{_VALUES[b]}({text})"
    return f"{_VALUES[b]}({text})"


def stored_type(dtype: str, vector: bool) -> str:
    """How a buffer of an element type is bound."""
    stored = _STORED[dtype]
    return f"vec4<{stored}>" if vector else stored


def value_type(dtype: str) -> str:
    """The WGSL type in which an element type is computed."""
    return _VALUES[_LETTERS[dtype]]


def kept(text: str, size: str) -> str:
    """A kernel, with the function that hides what a value is made of where it is called.

    Compilers take floats for real numbers: (x + c) - c became x, and x - x was 0 for nan too. They
    know no bit of a parameter; the top one of a size, which is below 2^31, is 0.
    """
    if "keep_f(" not in text:
        return text
    keep = f"return bitcast<f32>(bitcast<u32>(x) ^ (p.{size} >> 31u));"
    return f"fn keep_f(x: f32) -> f32 {{\n  {keep}\n}}\n{text}"


def function(
    chain: Chain, called: str = "chain", struct: str = "Results", *, inner: bool = False
) -> str:
    """The chain as a function of scalars; several outputs come back in a struct.

    `inner`: what it gives is used further in the same kernel.
    """
    names = [f"a{i}" for i in range(len(chain.inputs))]
    sources = dict(chain.sources())
    used = {value for node in chain.nodes for value in node.args}
    used |= {*chain.outputs} if inner else set()
    lines = []
    for node in chain.nodes:
        name = f"a{len(names)}"
        if len(names) not in sources:
            text = _expression(chain, node, names)
            if len(names) in used and value_type(node.dtype) == "f32":
                text = f"keep_f({text})"
            lines.append(f"  let {name} = {text};")
        names.append(name)
    takes = [*enumerate(chain.inputs), *((value, node.dtype) for value, node in sources.items())]
    arguments = ", ".join(f"a{i}: {value_type(dtype)}" for i, dtype in takes)
    types = [value_type(chain.dtype(value)) for value in chain.outputs]
    results = ", ".join(names[value] for value in chain.outputs)
    text = random.drawing(node.op for node in sources.values()) if sources else ""
    if len(types) == 1:
        result, value = types[0], results
    else:
        fields = ", ".join(f"r{i}: {kind}" for i, kind in enumerate(types))
        text += f"struct {struct} {{ {fields} }}\n"
        result, value = struct, f"{struct}({results})"
    body = "\n".join(lines)
    return f"{text}fn {called}({arguments}) -> {result} {{\n{body}\n  return {value};\n}}\n"


def _expression(chain: Chain, node: Node, names: list[str]) -> str:
    args = [names[i] for i in node.args]
    if node.op == "cast":
        return _narrow(convert(args[0], chain.dtype(node.args[0]), node.dtype), node, chain)
    # The condition of `where` comes first; the letter is that of the values.
    letter = _LETTERS[chain.dtype(node.args[-1])]
    # Two nodes may be one to the compiler, as an operand that stands twice is.
    if (
        letter == "f"
        and len(args) == 2
        and (args[0] == args[1] or min(node.args) >= len(chain.inputs))
    ):
        args[1] = f"keep_f({args[1]})"
    fields = {"x": args[0]} if len(args) == 1 else {"c": args[0], "x1": args[-2], "x2": args[-1]}
    return _narrow(table.expression(node.op, letter).format(*args, **fields), node, chain)


def _narrow(text: str, node: Node, chain: Chain) -> str:
    """Inside a longer chain, round to float16 what an eager op would have stored as float16."""
    if node.dtype == "float16" and len(chain.nodes) > 1:
        return f"round_half_f({text})"
    return text


def load(dtype: str, text: str) -> str:
    """What is stored, as a value."""
    return {"bool": f"{text} != 0u", "float16": f"f32({text})"}.get(dtype, text)


def store(dtype: str, text: str) -> str:
    """A value, as it is stored."""
    if dtype == "bool":
        return f"select(0u, 1u, {text})"
    return f"f16({text})" if dtype == "float16" else text


def _positions(walk: Walk, kinds: str) -> list[str]:
    """Statements that turn step `i` into ``at{k}``, the place in input k."""
    used = [k for k, kind in enumerate(walk.access) if kind in kinds]
    lines = [f"  var at{k} = p.o{k};" for k in used]
    axes = stride_axes(walk)
    if not used or not (walk.rank > 1 or axes):
        return lines
    places = {f"at{k}": f"s{k}_" for k in used}
    return [*lines, "  var rest = i;", *coordinates(walk.rank, places, axes=axes)]


def _loads(chain: Chain, walk: Walk) -> list[str]:
    """Statements that make the four results `rx` to `rw` of step `i`."""
    dense = walk.rank == 1
    lines = [] if dense else _positions(walk, "vs")
    bound = 0
    for k, kind in enumerate(walk.access):
        if kind == "c":
            continue
        at = f"p.o{k}" if dense else f"at{k}"
        if kind == "v":
            at += " + i32(i)" if dense else f" + c{walk.rank - 1}"
        lines.append(f"  let b{k} = in{bound}[{at}];")
        bound += 1
    sources = chain.sources()
    lines += [f"  let b{value} = {_drawn(node, 'i')};" for value, node in sources]
    for lane in "xyzw":
        args = []
        for k, kind in enumerate(walk.access):
            place = {"c": f"p.c{k}", "s": f"b{k}", "v": f"b{k}.{lane}"}[kind]
            args.append(load(chain.inputs[k], place))
        args += [_narrow(f"b{value}.{lane}", node, chain) for value, node in sources]
        lines.append(f"  let r{lane} = chain({', '.join(args)});")
    return lines


def _drawn(node: Node, block: str) -> str:
    """Four numbers of a source: those of a block, counted along the walk."""
    return random.drawn(node.op, node.dtype, block, [f"p.c{value}" for value in node.args])


def _vector_main(chain: Chain, walk: Walk) -> str:
    lines = _loads(chain, walk)
    for number, value in enumerate(chain.outputs):
        dtype = chain.dtype(value)
        field = "" if len(chain.outputs) == 1 else f".r{number}"
        parts = ", ".join(store(dtype, f"r{lane}{field}") for lane in "xyzw")
        lines.append(f"  out{number}[i] = {stored_type(dtype, True)}({parts});")
    body = "\n".join(lines)
    calls = "\n".join(
        f"  apply(first + {WORKGROUP * turn}u);" for turn in range(VECTORS_PER_THREAD)
    )
    return (
        f"fn apply(i: u32) {{\n  if (i >= p.count) {{ return; }}\n{body}\n}}\n"
        + SIGNATURE.format(threads=WORKGROUP)
        + f"  let first = linear_group(group, groups) * {steps(walk)}u + lane_index;\n{calls}\n}}\n"
    )


def _called(chain: Chain, walk: Walk) -> str:
    """The results of an element, whose places in the inputs are known."""
    args = []
    bound = 0
    for k, kind in enumerate(walk.access):
        if kind == "c":
            args.append(load(chain.inputs[k], f"p.c{k}"))
        else:
            args.append(load(chain.inputs[k], f"in{bound}[at{k}]"))
            bound += 1
    for _, node in chain.sources():
        args.append(_narrow(f"({_drawn(node, '(i >> 2u)')})[i & 3u]", node, chain))
    return f"chain({', '.join(args)})"


def _element_main(chain: Chain, walk: Walk) -> str:
    lines = [*_positions(walk, "e"), f"  let r = {_called(chain, walk)};"]
    for number, value in enumerate(chain.outputs):
        field = "" if len(chain.outputs) == 1 else f".r{number}"
        lines.append(f"  out{number}[i] = {store(chain.dtype(value), f'r{field}')};")
    body = "\n".join(lines)
    return (
        SIGNATURE.format(threads=WORKGROUP)
        + f"  let i = linear_group(group, groups) * {WORKGROUP}u + lane_index;\n"
        + f"  if (i >= p.count) {{ return; }}\n{body}\n}}\n"
    )
