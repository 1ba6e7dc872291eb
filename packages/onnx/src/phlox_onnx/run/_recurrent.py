"""Recurrent nodes with constant weights as layers of nn: each weight alone, gates in our order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, final

import numpy as np

from phlox_tensor import Numpy, PhloxError

from .._errors import RAW
from .._graph import OWN, Array, Graph, Key, Node, Value, all_constants, graphs_of, walk
from ..table.recurrent import GATES
from ._paths import home
from ._program import Program, on_host
from ._table import row_of


@final
@dataclass(frozen=True)
class _Kind:
    """A recurrent op that may be a layer.

    Attributes:
        activations: those that the layer has, of one direction.
        named: whether the layer has one of several, by name.
        resets: whether the state may be reset before it is multiplied, which the layer does after.
    """

    activations: tuple[tuple[str, ...], ...]
    named: bool = False
    resets: bool = False


_KINDS: Final[dict[Key, _Kind]] = {
    ("", "GRU"): _Kind((("sigmoid", "tanh"),), resets=True),
    ("", "LSTM"): _Kind((("sigmoid", "tanh", "tanh"),)),
    ("", "RNN"): _Kind((("tanh",), ("relu",)), named=True),
}
_LONGEST: Final = 64  # nodes between a constant and a weight
_ROUNDS: Final = 64  # in which nodes whose weights others read are taken out
_WORDS: Final = ("weight_input", "weight_hidden", "bias_input", "bias_hidden")


@final
@dataclass
class _Made:
    """A weight, and how constants make it.

    Attributes:
        place: which input of the node it is.
        leaves: the constants of floats that it is made of.
        nodes: the nodes on the way, by id.
    """

    place: int
    array: Array
    leaves: frozenset[str]
    nodes: dict[int, Node]


_Ready = list[tuple[Node, list[_Made | None]]]


def with_recurrent_layers(graph: Graph, origins: dict[str, str]) -> dict[str, list[str]]:
    """Put layers in the place of recurrent nodes that are some, in a graph and in those inside.

    Args:
        graph: changed in place.
        origins: takes what each weight is called in the file.

    Returns:
        Why nodes are none, each reason with those nodes.
    """
    nodes = [node for node in walk(graph) if node.key in _KINDS]
    if not nodes:
        return {}
    found = _Constants(graph)
    kept: dict[str, list[str]] = defaultdict(list)
    ready: _Ready = []
    for node in nodes:
        parts = [found.made(node, place) for place in (1, 2, 3)]
        why = no_layer(node) or _unfit(node, parts)
        if why:
            kept[why].append(node.where())
        else:
            ready.append((node, parts))
    for node, _ in found.without_others(ready):
        kept["has weights that something else reads, too"].append(node.where())
    replacing = _Replacing(graph, found, origins)
    for node, parts in ready:
        replacing.replace(node, parts)
    replacing.clean(ready)
    return dict(kept)


def no_layer(node: Node) -> str:
    """Why no layer of nn does what a recurrent node does; nothing where one does."""
    words, inputs, kind = node.attributes, [*node.inputs, *[""] * 8], _KINDS[node.key]
    named = tuple(str(name).lower() for name in words.get("activations") or ())
    count = 2 if words.get("direction") == "bidirectional" else 1
    if words.get("clip") is not None:
        return "clips what goes into its gates"
    if named and named not in [each * count for each in kind.activations]:
        return f"has the activations {', '.join(named)}"
    if kind.resets and not words.get("linear_before_reset", 0):
        return "resets the state before it is multiplied, not after"
    if words.get("input_forget", 0):
        return "forgets what it takes in"
    if inputs[7]:
        return "lets its gates see the cell"
    if words.get("direction") == "reverse" and inputs[4]:
        return "runs backwards alone, over sequences of several lengths"
    return ""


def _unfit(node: Node, parts: list[_Made | None]) -> str:
    """Why weights are none of a layer."""
    given = [bool(name) for name in [*node.inputs, "", "", ""][1:4]]
    arrays = [part.array for part in parts if part is not None]
    if given != [part is not None for part in parts] or not all(given[:2]):
        return "computes its weights, or takes them as inputs"
    types = {str(a.dtype) for a in arrays if a.dtype != np.float32}
    if types:
        return f"has weights of {', '.join(sorted(types))}"
    w, r, gates = arrays[0], arrays[1], len(GATES[node.op])
    count = 2 if node.attributes.get("direction") == "bidirectional" else 1
    size = node.attributes.get("hidden_size") or r.shape[-1]
    fits = w.ndim == 3 and r.shape == (count, gates * size, size) and w.shape[:2] == r.shape[:2]
    fits = fits and all(a.shape == (count, 2 * gates * size) for a in arrays[2:])
    return "" if fits else "has weights of other sizes"


@final
class _Constants:
    """Weights that constants alone make, and who else reads these."""

    def __init__(self, graph: Graph) -> None:
        self.values = all_constants(graph)
        self._makers = {o: node for node in walk(graph) for o in node.outputs if o}
        self._order = {id(node): i for i, node in enumerate(walk(graph))}
        self._readers: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for node in walk(graph):
            for place, name in enumerate(node.inputs):
                self._readers[name].add((id(node), place))
        for each in graphs_of(graph):
            for value in each.outputs:
                self._readers[value.name].add((0, 0))
        self._digests: dict[int, Any] = {}
        self._numbers: dict[str, int] = defaultdict(int)
        self.names = {*self.values, *self._makers, *(v.name for v in graph.inputs)}

    def made(self, reader: Node, place: int) -> _Made | None:
        """What an input is, if constants alone say it and nothing but their places changes."""
        name = reader.inputs[place] if place < len(reader.inputs) else ""
        nodes: dict[int, Node] = {}
        leaves: set[str] = set()
        waiting = [name]
        while waiting:
            each = waiting.pop()
            node = self._makers.get(each)
            if each in self.values:
                leaves.add(each)
            elif node is None or not _moves(node) or len(nodes) > _LONGEST:
                return None
            elif id(node) not in nodes:
                nodes[id(node)] = node
                waiting += [n for n in node.inputs if n]
        given = {leaf: self.values[leaf] for leaf in leaves}
        floats = frozenset(leaf for leaf, a in given.items() if a.dtype.kind == "f")
        if not nodes:
            return _Made(place, given[name], floats, nodes)
        array = self._computed(name, nodes, given, sum(given[leaf].size for leaf in floats))
        return None if array is None else _Made(place, array, floats, nodes)

    def _computed(
        self, name: str, nodes: dict[int, Node], given: dict[str, Array], size: int
    ) -> Array | None:
        """What nodes make of constants, if it has all of their elements."""
        order = sorted(nodes.values(), key=lambda node: self._order[id(node)])
        single = Graph("", [], [Value(name)], order, given)
        try:
            found = on_host(Program(single, [], 2 * size + _LONGEST).run([], {}, Numpy())[0])
        except (PhloxError, *RAW):
            return None
        return found if isinstance(found, np.ndarray) and found.size == size else None

    def without_others(self, ready: _Ready) -> _Ready:
        """Take out the nodes whose constants are read in other ways, too, and return these."""
        out: _Ready = []
        for _ in range(_ROUNDS):
            wrong = self._shared(ready)
            out += [each for each in ready if id(each[0]) in wrong]
            ready[:] = [each for each in ready if id(each[0]) not in wrong]
            if not wrong:
                return out
        out += ready
        ready.clear()
        return out

    def _shared(self, ready: _Ready) -> set[int]:
        """Nodes some of whose constants are not only read for the same weight, made alike."""
        alike: dict[Any, list[tuple[Node, _Made]]] = defaultdict(list)
        for node, parts in ready:
            for part in parts:
                if part is not None:
                    key = (part.leaves, part.place, self._digest(part.array))
                    alike[key].append((node, part))
        out: set[int] = set()
        for (leaves, place, _), group in alike.items():
            direct = {(id(node), place) for node, _ in group}
            between = {number for _, part in group for number in part.nodes}
            constants = self._only(leaves, direct, between)
            for node, part in group:
                made = (o for each in part.nodes.values() for o in each.outputs if o)
                if not (constants and self._only(made, direct, between)):
                    out.add(id(node))
        return out

    def _only(self, names: Iterable[str], direct: set[tuple[int, int]], between: set[int]) -> bool:
        """Whether nothing reads these names but what is known."""
        readers = (reader for name in names for reader in self._readers[name])
        return all(reader in direct or reader[0] in between for reader in readers)

    def _digest(self, array: Array) -> Any:
        """What tells arrays apart; each array is looked at once."""
        if id(array) not in self._digests:
            data = np.ascontiguousarray(array)
            found = (array.shape, array.dtype.str, blake2b(data.tobytes()).digest())
            self._digests[id(array)] = found
        return self._digests[id(array)]

    def fresh(self, name: str) -> str:
        """A name that nothing has."""
        found = name
        while found in self.names:
            self._numbers[name] += 1
            found = f"{name}_{self._numbers[name]}"
        self.names.add(found)
        return found


@final
class _Replacing:
    """Makes layers of nodes; what has the same weights shares them."""

    def __init__(self, graph: Graph, found: _Constants, origins: dict[str, str]) -> None:
        self._graph, self._found, self._origins = graph, found, origins
        self._known: dict[Any, str] = {}

    def replace(self, node: Node, parts: list[_Made | None]) -> None:
        """Give a node the inputs and attributes of a layer."""
        words, kind = node.attributes, _KINDS[node.key]
        names = [name for part in parts if part is not None for name in sorted(part.leaves)]
        names = [self._origins.get(name, name) for name in names]
        where = home(names, node.name)
        base = ".".join(where) or node.op.lower()
        origin = f"{base}.weight" if where else names[0]
        inputs = [node.inputs[0], *[*node.inputs, *[""] * 7][4:7]]
        two = words.get("direction") == "bidirectional"
        for d in range(1 + two):
            for word, array in zip(_WORDS, _of_direction(node.op, parts, d), strict=True):
                part = parts[_WORDS.index(word) if "weight" in word else 2]
                inputs.append("")
                if part is None or array is None:
                    continue
                key = (node.op, part.leaves, word, d)
                if key not in self._known:
                    made = self._found.fresh(f"{base}.layers.{d}.{word}")
                    self._known[key] = made
                    self._graph.constants[made] = array
                    self._origins[made] = origin
                inputs[-1] = self._known[key]
        while not inputs[-1]:
            inputs.pop()
        kept = {k: words[k] for k in ("direction", "layout") if words.get(k)}
        activation = str((words.get("activations") or ("tanh",))[0]).lower()
        node.attributes = kept | ({"activation": activation} if kind.named else {})
        node.domain, node.inputs = OWN, inputs

    def clean(self, ready: _Ready) -> None:
        """Leave out what made the weights before."""
        parts = [part for _, parts in ready for part in parts if part is not None]
        nodes = {number for part in parts for number in part.nodes}
        leaves = {name for part in parts for name in part.leaves}
        for each in graphs_of(self._graph):
            each.nodes = [node for node in each.nodes if id(node) not in nodes]
            each.constants = {k: v for k, v in each.constants.items() if k not in leaves}


def _of_direction(op: str, parts: list[_Made | None], d: int) -> list[Array | None]:
    """Weights and biases of one direction, as a layer has them."""
    w, r, b = (None if part is None else part.array[d] for part in parts)
    half = 0 if b is None else len(b) // 2
    biases = (None, None) if b is None else (b[:half], b[half:])
    weights = (None if v is None else _gates(op, v).T for v in (w, r))
    made = (*weights, *(None if v is None else _gates(op, v) for v in biases))
    return [None if v is None else np.ascontiguousarray(v) for v in made]


def _gates(op: str, value: Array) -> Array:
    split = np.split(value, len(GATES[op]), axis=0)
    return np.concatenate([split[i] for i in GATES[op]], axis=0)


def _moves(node: Node) -> bool:
    """Whether a node only moves elements."""
    row = row_of(node.key)
    return row is not None and row.movement
