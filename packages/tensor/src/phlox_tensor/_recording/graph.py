"""Graphs as data: what a function did on the base devices, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .._device.backend import Backend
from .._device.table import Entry
from .._op.declaration import Op, Spec
from .._values.number import Number


class Node(NamedTuple):
    """One op that ran.

    Attributes:
        op: the op.
        device: the base device.
        entry: what the device runs for the op.
        operands: a Value for each, a tuple of them, a number, or None.
        attributes: as the entry gets them; a Number where a replay computes one.
        results: the values that it gave.
        line: where the user's program called it.
    """

    op: Op
    device: Backend
    entry: Entry
    operands: tuple[Any, ...]
    attributes: tuple[Any, ...]
    results: tuple[int, ...]
    line: str


class Value(NamedTuple):
    """Which value of a graph an operand is: inputs, constants and results in one count."""

    number: int


class Formula(NamedTuple):
    """How a number comes about; an input has no function."""

    function: Callable[..., Any] | None
    args: tuple[Any, ...]


class Guard(NamedTuple):
    """What a replay must find again: ``function(*args)`` is ``value``."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    value: Any
    line: str


class Graph(NamedTuple):
    """What a function did, from values that it was given to values that it returned.

    Attributes:
        inputs: the values that arguments and cells brought.
        constants: primitives that the function took from elsewhere, by value.
        nodes: the ops in the order in which they ran.
        outputs: the values that results and cells take away.
        numbers: how each number comes about.
        guards: what must hold for the graph to be right.
        specs: shape and element type of each value.
    """

    inputs: tuple[int, ...]
    constants: dict[int, Any]
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    numbers: tuple[Formula, ...]
    guards: tuple[Guard, ...]
    specs: tuple[Spec, ...]

    def live(self) -> tuple[Node, ...]:
        """Return the nodes that a replay has to run: what outputs need, and what may raise.

        An op with integers among its operands may refuse their values, so it always runs.
        """
        needed = set(self.outputs)
        kept = []
        for node in reversed(self.nodes):
            values = values_of(node)
            integers = any(self.specs[v].dtype.kind == "Int" for v in values)
            if integers or not needed.isdisjoint(node.results):
                kept.append(node)
                needed.update(values)
        return tuple(reversed(kept))

    def __str__(self) -> str:
        lines = [f"inputs   {', '.join(map(self._typed, self.inputs)) or 'none'}"]
        if self.constants:
            lines.append(f"captured {', '.join(map(self._typed, self.constants))}")
        for place, (function, args) in enumerate(self.numbers):
            how = "given" if function is None else written(function, args)
            lines.append(f"n{place} = {how}")
        lines += [f"guard    {written(g.function, g.args)} is {g.value!r}" for g in self.guards]
        for node in self.live():
            results = ", ".join(f"v{v}" for v in node.results)
            shapes = ", ".join(_typed(self.specs[v]) for v in node.results)
            given = ", ".join(shown(x) for x in (*node.operands, *node.attributes))
            lines.append(f"{results} = {node.op.name}({given})  # {shapes}")
        lines.append(f"outputs  {', '.join(f'v{v}' for v in self.outputs) or 'none'}")
        return "\n".join(lines)

    def _typed(self, value: int) -> str:
        return f"v{value}: {_typed(self.specs[value])}"


def values_of(node: Node) -> list[int]:
    """Return the values that a node takes."""
    found = []
    for item in node.operands:
        if type(item) is Value:
            found.append(item.number)
        elif type(item) is tuple:
            found += [each.number for each in item]
    return found


def filled(item: Any, values: Mapping[int, Any], numbers: Sequence[Any] | None = None) -> Any:
    """Return what an operand or attribute stands for.

    Args:
        item: a Value, a Number, a tuple of them; anything else stands for itself.
        values: what values stand for.
        numbers: what numbers stand for; None: what they were when they were recorded.
    """
    cls = type(item)
    if cls is Value:
        return values[item.number]
    if cls is Number:
        return item.value if numbers is None else numbers[item.place]
    if cls is tuple and any(type(each) is Value for each in item):
        return tuple([filled(each, values, numbers) for each in item])
    return item


def needed(nodes: Sequence[Node], wanted: Iterable[int]) -> tuple[Node, ...]:
    """Return the nodes that values need; the others may be left out, whatever they would refuse."""
    missing = set(wanted)
    kept = []
    for node in reversed(nodes):
        if not missing.isdisjoint(node.results):
            kept.append(node)
            missing.update(values_of(node))
    return tuple(reversed(kept))


def shown(item: Any) -> str:
    """An operand or an attribute on one line."""
    if type(item) is Value:
        return f"v{item.number}"
    if type(item) is Number:
        return f"n{item.place}"
    if type(item) is tuple:
        inside = ", ".join(map(shown, item))
        return f"({inside},)" if len(item) == 1 else f"({inside})"
    return str(getattr(item, "name", None) or repr(item))


def written(function: Callable[..., Any], args: Sequence[Any]) -> str:
    """A call of a function on one line."""
    name = getattr(function, "__name__", None) or repr(function)
    return f"{name}({', '.join(map(shown, args))})"


def _typed(spec: Spec) -> str:
    return f"{spec.dtype.name}[{', '.join(map(str, spec.shape))}]"
