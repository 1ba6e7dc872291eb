"""One recorded run of a function: what goes in, what is done, what comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from phlox_tensor import Backend, CompileError, DType, tree
from phlox_tensor.capture import Cell, Graph, Number, Recording, Value, plain, recorded, same, shown

from ._layout import Layout, StaticPart, TensorPart, flatten

# Where an output comes from: a value of the graph, a number, or a plain number as it is.
Ref = Value | Number | int | float
_PLAIN = (bool, bytes, str, type(None), DType, Backend, type)


class Place(NamedTuple):
    """What a cell or a result holds: its layout and where its leaves come from or go to."""

    layout: Layout
    refs: tuple[Ref, ...]


class Trace(NamedTuple):
    """A recorded run.

    Attributes:
        graph: what was done.
        arguments: what the arguments bring, by leaf.
        opened: the cells that were read first, with what they held.
        left: the cells that were set, with what they hold in the end.
        result: what was returned.
        kept: the parts of a result that never change, by their place in it; None: the whole.
        copied: host data that became constants, with the line.
    """

    graph: Graph
    arguments: tuple[Ref, ...]
    opened: dict[Cell[Any], Place]
    left: dict[Cell[Any], Place]
    result: Place
    kept: dict[int | None, Place]
    copied: dict[int, tuple[bytes, str]]


def packed(cell: Cell[Any]) -> Any:
    """Return the content of a cell in parts, taken apart now where nobody has."""
    found = cell.packed
    if found is None or not isinstance(found.layout, Layout):
        value = cell.current()
        layout, leaves, _ = flatten(value, "state in a cell")
        found = layout.pack(leaves)
        cell.keep_packed(value, found)
    return found


def run(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a function as it is, on other handles of its arguments, and note what it does.

    Returns:
        The result, and the trace.
    """
    opened: dict[Cell[Any], Place] = {}

    def open_cell(cell: Cell[Any], made: Recording) -> Any:
        found = packed(cell)
        refs, given = _given(made, found.layout, found.leaves)
        opened[cell] = Place(found.layout, refs)
        return found.layout.build(given)

    made = Recording(open_cell)
    layout, leaves, _ = flatten((args, kwargs))
    refs, given = _given(made, layout, leaves)
    own_args, own_kwargs = layout.build(given)
    left: dict[Cell[Any], Place] = {}
    with recorded(made):
        try:
            out = function(*own_args, **own_kwargs)
        finally:  # as after an error in a run that nobody records
            for cell, value in made.outcomes.items():
                left[cell] = _left(made, cell, value)
        result_layout, result_leaves, _ = flatten(out, "the result")
        _refuse_strange(result_layout, layout)
        result = Place(result_layout, _refs(made, result_layout, result_leaves))
        kept = _kept(made, out)
        places = [result, *left.values()]
        outputs = tuple(r.number for p in places for r in p.refs if type(r) is Value)
        graph = made.graph(outputs)
    trace = Trace(graph, refs, opened, left, result, kept, made.copied)
    return result_layout.build([*map(plain, result_leaves)]), trace


def _kept(made: Recording, out: Any) -> dict[int | None, Place]:
    """What may come back as an argument and need not be taken apart then."""
    pairs: list[tuple[int | None, Any]] = [(None, out)]
    if type(out) is tuple:
        pairs += enumerate(out)
    kept: dict[int | None, Place] = {}
    for place, item in pairs:
        node = tree.node_of(item)
        if node is not None and node.static is not None:
            layout, leaves, _ = flatten(item, "the result")
            kept[place] = Place(layout, _refs(made, layout, leaves))
    return kept


def _given(
    made: Recording, layout: Layout, leaves: Sequence[Any]
) -> tuple[tuple[Ref, ...], list[Any]]:
    """Make leaves into inputs: other handles of their data, and numbers."""
    refs: list[Ref] = []
    given: list[Any] = []
    for part, leaf in zip(layout.leaves, leaves, strict=True):
        if isinstance(part, TensorPart):
            device = part.levels[-1][0]
            given.append(made.handle(device, leaf))
            refs.append(Value(made.input(device, given[-1])))
        else:
            number = made.given(leaf)
            given.append(number)
            refs.append(number)
    return tuple(refs), given


def _left(made: Recording, cell: Cell[Any], value: Any) -> Place:
    layout, leaves, _ = flatten(value, "state in a cell")
    refs = _refs(made, layout, leaves)
    cell.pack(layout.pack([*map(plain, leaves)]))
    return Place(layout, refs)


def _refs(made: Recording, layout: Layout, leaves: Sequence[Any]) -> tuple[Ref, ...]:
    refs: list[Ref] = []
    for part, leaf in zip(layout.leaves, leaves, strict=True):
        if isinstance(part, TensorPart):
            refs.append(Value(made.value_of(part.levels[-1][0], leaf)))
        else:
            refs.append(leaf)
    return tuple(refs)


def _refuse_strange(result: Layout, arguments: Layout) -> None:
    """Refuse to return an object that only this run made.

    Raises:
        CompileError: naming its class.
    """
    known = [p.value for p in arguments.parts if isinstance(p, StaticPart)]
    for part in result.parts:
        if not isinstance(part, StaticPart) or isinstance(part.value, _PLAIN):
            continue
        if callable(part.value) or any(part.value is item for item in known):
            continue
        raise CompileError(
            "compile",
            "the function returns an object that a replay cannot make",
            got=type(part.value).__name__,
            expected="tensors, numbers, modules, and containers of them",
            hint="px.value_and_grad(loss_of)(model) gives gradients as a tree; or "
            "phlox_tensor.tree.register(type, flatten, rebuild)",
        )


# What two runs have to agree in


def difference(a: Trace, b: Trace) -> str | None:
    """Return how two runs differ in more than their inputs; None where they agree."""
    for left, right in zip(a.graph.nodes, b.graph.nodes, strict=False):
        what = (left.op, left.device, left.results) == (right.op, right.device, right.results)
        if not what or not _same(left.operands, right.operands):
            return (
                f"{_call(left)} at {left.line} in the first run, "
                f"{_call(right)} at {right.line} in the second"
            )
        if not _same(left.attributes, right.attributes):
            return (
                f"{left.op.name} at {left.line} got {shown(left.attributes)} in the first run, "
                f"{shown(right.attributes)} in the second"
            )
    if len(a.graph.nodes) != len(b.graph.nodes):
        longer = max(a.graph.nodes, b.graph.nodes, key=len)
        extra = longer[min(len(a.graph.nodes), len(b.graph.nodes))]
        return f"{extra.op.name} at {extra.line} ran in one run only"
    return _other_captures(a, b) or _other_numbers(a, b) or _other_places(a, b)


def _call(node: Any) -> str:
    return f"{node.op.name}{shown(node.operands)}"


def _other_captures(a: Trace, b: Trace) -> str | None:
    left, right = a.graph.constants, b.graph.constants
    if left.keys() != right.keys() or a.graph.inputs != b.graph.inputs:
        return "the function took other tensors from outside in the second run"
    for value, primitive in left.items():
        if value in a.copied and value in b.copied:
            if a.copied[value][0] != b.copied[value][0]:
                return f"host data at {a.copied[value][1]} was other data in the second run"
        elif primitive is not right[value]:
            spec = a.graph.specs[value]
            lines = [n.line for n in a.graph.nodes if Value(value) in n.operands]
            used = f", used at {lines[0]}" if lines else ""
            return f"a tensor of shape {spec.shape} from outside was another one{used}"
    return None


def _other_numbers(a: Trace, b: Trace) -> str | None:
    if not _same(a.graph.numbers, b.graph.numbers):
        return "numbers came about in another way"
    for left, right in zip(a.graph.guards, b.graph.guards, strict=False):
        if not _same(left[:3], right[:3]):
            return f"the program went on in another way at {left.line}"
    return None if len(a.graph.guards) == len(b.graph.guards) else "more was asked of numbers"


def _other_places(a: Trace, b: Trace) -> str | None:
    if a.opened.keys() != b.opened.keys() or a.left.keys() != b.left.keys():
        return "other cells were read or set"
    pairs = [(a.result, b.result)]
    pairs += [(a.opened[c], b.opened[c]) for c in a.opened]
    pairs += [(a.left[c], b.left[c]) for c in a.left]
    for left, right in pairs:
        if left.layout is not right.layout or not _same(left.refs, right.refs):
            return "results or state had another form, or came about in another way"
    return None


def _same(a: Any, b: Any) -> bool:
    """Whether two lists of operands, attributes or refs are one, numbers by their place."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is Number:
        return bool(a.place == b.place)
    if isinstance(a, int | float):
        return same(a, b)
    return bool(a is b or a == b)
