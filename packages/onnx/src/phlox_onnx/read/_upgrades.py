"""Old forms of ops to the newest one, so that an op has one row: a table of what changed when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

import numpy as np

from .._errors import OnnxError, within
from .._graph import OWN, Graph, Node
from . import _trees


@final
class Maker:
    """Makes nodes beside the one that is rewritten."""

    def __init__(self) -> None:
        self.made: list[Node] = []
        self._count = 0

    def name(self) -> str:
        """Return a name that no file has."""
        self._count += 1
        return f"\N{MIDDLE DOT}{self._count}"

    def constant(self, value: Any, dtype: str) -> str:
        """Return the name of a value that stands in front of the node."""
        return self.node("Constant", [], value=np.array(value, dtype))

    def node(self, op: str, inputs: list[str], domain: str = "", **attributes: Any) -> str:
        """Return the output of a node in front of the one that is rewritten."""
        out = self.name()
        self.made.append(Node(op, domain, [*inputs], [out], attributes, opset=28))
        return out


Rewrite = Callable[[Node, Maker], list[Node] | None]

# Hints to runtimes of before version 7, which changed no result.
EVERYWHERE: Final = {"consumed_inputs": 6, "is_test": 7}


def _put(node: Node, place: int, name: str) -> None:
    node.inputs += [""] * (place + 1 - len(node.inputs))
    node.inputs[place] = name


def _moved(*places: tuple[str, int, str]) -> Rewrite:
    """Attributes, each to the input at a place, as a constant of a type."""

    def rewrite(node: Node, make: Maker) -> None:
        for name, place, dtype in places:
            if name in node.attributes:
                _put(node, place, make.constant(node.attributes.pop(name), dtype))

    return rewrite


def _default(**values: Any) -> Rewrite:
    def rewrite(node: Node, make: Maker) -> None:
        node.attributes = values | node.attributes

    return rewrite


def _without(*names: str) -> Rewrite:
    def rewrite(node: Node, make: Maker) -> None:
        for name in names:
            node.attributes.pop(name, None)

    return rewrite


def _flat(node: Node, make: Maker) -> list[Node]:
    """Softmax before 13 saw a matrix: the axes before ``axis``, and those from it on."""
    axis = node.attributes.pop("axis", 1)
    source, out = node.inputs[0], node.outputs[0]
    shape = make.node("Shape", [source])
    node.inputs[0] = make.node("Flatten", [source], axis=axis)
    node.outputs[0] = make.name()
    node.attributes["axis"] = 1
    return [Node("Reshape", "", [node.outputs[0], shape], [out], {"allowzero": 1}, opset=28)]


def _aligned(node: Node, make: Maker) -> None:
    """Broadcasting before 7: the second operand lies along axes from ``axis`` on."""
    broadcast = node.attributes.pop("broadcast", 0)
    axis = node.attributes.pop("axis", None)
    if broadcast and axis is not None:
        node.inputs[1] = make.node("Align", node.inputs, OWN, axis=axis)


def _channels(node: Node, make: Maker) -> None:
    """The slope of PRelu before 7 lies along the channels."""
    node.inputs[1] = make.node("Align", node.inputs, OWN, axis=1)


def _pad1(node: Node, make: Maker) -> None:
    if "paddings" in node.attributes:
        node.attributes["pads"] = node.attributes.pop("paddings")
    _moved(("pads", 1, "int64"), ("value", 2, "float32"))(node, make)


def _clip(node: Node, make: Maker) -> None:
    for place, name in ((1, "min"), (2, "max")):
        if name in node.attributes:
            value = np.array(node.attributes.pop(name), np.float32)
            _put(node, place, make.constant(value, "float32"))


_CAST: Final = """
    UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32
    UINT64""".split()  # noqa: SIM905 - words


def _cast(node: Node, make: Maker) -> None:
    to = node.attributes.get("to")
    if isinstance(to, str):
        if to not in _CAST:
            raise OnnxError("onnx", "a cast to an unknown type", got=repr(to))
        node.attributes["to"] = _CAST.index(to)


def _tile(node: Node, make: Maker) -> None:
    """Before 6 one axis was repeated, named by an input."""
    if len(node.inputs) == 3:
        node.inputs = [make.node("TileAxis", node.inputs, OWN)]
        node.op = "Identity"


def _normalized(node: Node, make: Maker) -> None:
    if not node.attributes.pop("spatial", 1):
        raise OnnxError("onnx", "statistics per element have no row", got=node.where())
    node.outputs = node.outputs[:1]


def _resized(node: Node, make: Maker) -> None:
    """Resize of 10 had no region and one way of counting."""
    node.inputs = [node.inputs[0], "", node.inputs[1]]
    node.attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _upsampled1(node: Node, make: Maker) -> None:
    take = node.attributes.pop
    if "height_scale" in node.attributes:
        node.attributes["scales"] = (1.0, 1.0, take("height_scale"), take("width_scale"))


def _upsampled(node: Node, make: Maker) -> None:
    """Upsample is a Resize that only exists in old files."""
    _moved(("scales", 1, "float32"))(node, make)
    node.op = "Resize"
    _resized(node, make)


def _grid(node: Node, make: Maker) -> None:
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.attributes.get("mode", "bilinear")
    node.attributes["mode"] = names.get(mode, mode)


def _transformed(node: Node, make: Maker) -> None:
    """DFT of 17 had its axis as an attribute, 1 by default."""
    _put(node, 2, make.constant(node.attributes.pop("axis", 1), "int64"))


def _scanned(node: Node, make: Maker) -> None:
    """Scan of 8 ran over a batch, with lengths."""
    node.op, node.domain = "BatchScan", OWN


_AXES = _moved(("axes", 1, "int64"))
_REDUCTIONS: Final = """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
    ReduceSumSquare""".split()  # noqa: SIM905 - words
_BINARY = ["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"]
_LAYERS = ["GRU", "LSTM", "RNN"]

_ANY: Final = 1 << 62  # what has no row in any version
# Each rewrite is for nodes of before a version; they run in this order.
UPGRADES: Final[dict[str, tuple[tuple[int, Rewrite], ...]]] = {
    "BatchNormalization": ((14, _normalized),),
    "Cast": ((6, _cast),),
    "Clip": ((11, _clip),),
    "Concat": ((4, _default(axis=1)),),
    "DFT": ((20, _transformed),),
    "Dropout": ((12, _moved(("ratio", 1, "float32"))),),
    "Gemm": ((7, _without("broadcast")),),
    "GridSample": ((20, _grid),),
    "Hardmax": ((13, _flat),),
    "LogSoftmax": ((13, _flat),),
    "PRelu": ((7, _channels),),
    "Pad": ((2, _pad1), (11, _moved(("pads", 1, "int64"), ("value", 2, "float32")))),
    "ReduceSum": ((13, _AXES),),
    "Reshape": ((5, _moved(("shape", 1, "int64"))),),
    "Resize": ((11, _resized),),
    "Scan": ((9, _scanned),),
    "Selu": ((6, _default(alpha=1.6732, gamma=1.0507)),),
    "Slice": ((10, _moved(("starts", 1, "int64"), ("ends", 2, "int64"), ("axes", 3, "int64"))),),
    "Softmax": ((13, _flat),),
    "Split": ((13, _moved(("split", 1, "int64"))),),
    "Squeeze": ((13, _AXES),),
    "Tile": ((6, _tile),),
    "TopK": ((10, _moved(("k", 1, "int64"))),),
    "TreeEnsemble": ((_ANY, lambda node, make: _trees.ensemble(node, make.constant)),),
    "TreeEnsembleClassifier": (
        (_ANY, lambda node, make: [_trees.classifier(node, make.constant, make.name())]),
    ),
    "TreeEnsembleRegressor": ((_ANY, lambda node, make: _trees.regressor(node, make.constant)),),
    "Unsqueeze": ((13, _AXES),),
    "Upsample": ((7, _upsampled1), (10, _upsampled)),
    **dict.fromkeys(_REDUCTIONS, ((18, _AXES),)),
    **dict.fromkeys(_BINARY, ((7, _aligned),)),
    **{name: ((7, _without("output_sequence")),) for name in _LAYERS},
}


def upgraded(graph: Graph) -> None:
    """Rewrite the nodes of a graph and of those inside, in place."""
    maker = Maker()
    _upgrade(graph, maker)


def _upgrade(graph: Graph, maker: Maker) -> None:
    nodes: list[Node] = []
    for node in graph.nodes:
        for inner in node.graphs.values():
            _upgrade(inner, maker)
        nodes += _newest(node, maker)
    graph.nodes = nodes


def _newest(node: Node, maker: Maker) -> list[Node]:
    if node.domain not in ("", "ai.onnx.ml"):
        return [node]
    for name, before in EVERYWHERE.items():
        if node.opset < before:
            node.attributes.pop(name, None)
    out = [node]
    for before, rewrite in UPGRADES.get(node.op, ()):
        if node.opset < before:
            maker.made = []
            with within(node.where()):
                after = rewrite(node, maker) or []
            out = [*out[:-1], *maker.made, node, *after]
    return out
