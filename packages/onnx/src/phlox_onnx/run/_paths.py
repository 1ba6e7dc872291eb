"""Names of a file as paths of a module: what exporters call a weight is where it stands."""

from __future__ import annotations

import keyword
import re
from typing import Final, final

from .._graph import Graph, Node, walk
from .._reserved import ATTRIBUTES, CLASSES
from ._table import row_of

_SPLIT: Final = re.compile(r"[./]")
_WORD: Final = re.compile(r"[^0-9A-Za-z_]+")
# What quantizing puts behind the name of a weight, which is one of floats here.
_APPENDED: Final = re.compile(r"(_DequantizeLinear_Output|(_Q[48]|_quantized)?/unpacked/.*)$")
# Names that exporters make up.
_MADE_UP: Final = ("Constant", "const_fold", "onnx_", "val_")
_TAKEN: Final = ATTRIBUTES | CLASSES | {"init", "load"}


@final
class Taken:
    """Paths of a module, none of which is another one, inside of one or around one."""

    def __init__(self) -> None:
        """Start with none."""
        self._paths: set[tuple[str, ...]] = set()
        self._branches: set[tuple[str, ...]] = set()

    def take(self, path: tuple[str, ...]) -> bool:
        """Take a path, if it is free."""
        around = {path[:k] for k in range(1, len(path))}
        if path in self._paths or path in self._branches or not around.isdisjoint(self._paths):
            return False
        self._paths.add(path)
        self._branches |= around
        return True


def words_of(name: str) -> tuple[str, ...]:
    """A name of a file as the words of a path, cut at dots and slashes.

    What is no letter, digit or underscore becomes one; a word that can be no attribute, and a
    number in front, get ``n_``. What ONNX Runtime's quantizer appends to a weight is left out.
    """
    words = [_WORD.sub("_", word).strip("_") for word in _SPLIT.split(_APPENDED.sub("", name))]
    words = [word for word in words if word] or ["value"]
    return tuple(word if i and word.isdigit() else _attribute(word) for i, word in enumerate(words))


def _attribute(word: str) -> str:
    free = word[0].isalpha() and not keyword.iskeyword(word) and word not in _TAKEN
    return word if free else f"n_{word}"


def is_made_up(words: tuple[str, ...]) -> bool:
    """Whether an exporter numbered a weight that had no name."""
    numbered = len(words) == 1 and words[0].removeprefix("n_").isdigit()
    return numbered or not tells(words)


def tells(words: tuple[str, ...]) -> bool:
    """Whether a path is no word that exporters make up."""
    return not any(word.startswith(_MADE_UP) for word in (words[:1] + words[-1:]))


def paths_of_layers(graph: Graph) -> dict[str, tuple[str, ...]]:
    """Where weights and biases without a name of their own stand: in the layer that reads them.

    The layer is known by its other constant, or else by the scope of its node.
    """
    constants = {name for node in walk(graph) for name in node.inputs if name in graph.constants}
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    out: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes:
        weight = node.inputs[1] if len(node.inputs) > 1 else ""
        row = row_of(node.key)
        if row is None or not row.bias or not node.outputs or weight not in constants:
            continue
        if graph.constants[weight].ndim < 2:
            continue
        if row.bias == "input":
            bias = node.inputs[2] if len(node.inputs) > 2 else ""
        else:
            bias = _added(readers.get(node.outputs[0], []), node.outputs[0], graph)
        bias = bias if bias in constants else ""
        where = home([name for name in (weight, bias) if name], node.name)
        for name, word in ((weight, "weight"), (bias, "bias")):
            if where and name and is_made_up(words_of(name)) and len(readers[name]) == 1:
                out[name] = (*where, word)
    return out


def _added(readers: list[Node], product: str, graph: Graph) -> str:
    """The vector that is added to a product, if nothing else reads it."""
    if len(readers) != 1 or readers[0].key != ("", "Add"):
        return ""
    name = next((n for n in readers[0].inputs if n != product), "")
    array = graph.constants.get(name)
    return name if array is not None and array.ndim == 1 and array.size > 1 else ""


def home(constants: list[str], node: str) -> tuple[str, ...]:
    """The module in the first name that tells."""
    for name in (*constants, node):
        words = words_of(name) if name else ()
        if len(words) > 1 and tells(words[:-1]):
            return words[:-1]
    return ()
