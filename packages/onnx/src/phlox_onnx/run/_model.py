"""A loaded file: a module whose parameters are its weights, under the names of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from phlox_nn import Module, Param
from phlox_tensor import ArgumentError, Backend, Tensor, default_device

from .._errors import OnnxError
from .._graph import Array, Graph, Node, graphs_of, in_order, walk, with_names_once
from ..read._inline import inlined
from ..read._limits import Limits
from ..read._read import Source, read
from ..read._upgrades import upgraded
from ._inputs import as_input, put, refuse_others
from ._paths import Taken, paths_of_layers, words_of
from ._program import Program, bound, lifted, refuse_attributes
from ._quantized import Quantized, without_whole_numbers
from ._recurrent import with_recurrent_layers
from ._roles import roles
from ._sound import refuse_unsound
from ._table import nearest, row_of, unsupported


class OnnxModel(Module):
    """The module of an ONNX file: its weights by their names in the file, and what it computes.

    Names are cut at dots and slashes: ``encoder.layer.0.weight`` is the parameter at that path.
    The module is called with its inputs, in order or by name, and returns its output, or a tuple
    of outputs. Inputs are tensors or arrays of the type that the file gives, or numbers.

    Attributes:
        inputs: names of the inputs.
        outputs: names of the outputs.

    Example:
        >>> import onnx
        >>> from phlox_onnx import load
        >>> text = '<ir_version: 8, opset_import: ["" : 18]> f (float[2] x) => (float[2] y)'
        >>> model = load(onnx.parser.parse_model(text + " { y = Relu(x) }"))
        >>> model.inputs, model.outputs, model(x=[-1.0, 2.0]).tolist()
        (('x',), ('y',), [0.0, 2.0])
    """

    def __init__(
        self, program: Program, paths: dict[str, tuple[str, ...]], params: dict[str, Param]
    ) -> None:
        """Hold a program and its parameters, by name in the file."""
        self.inputs = tuple(v.name for v in program.graph.inputs)
        self.outputs = tuple(v.name for v in program.graph.outputs)
        self.program = program
        self.paths = _Paths(paths)
        for top, branch in _tree(paths, params).items():
            setattr(self, top, branch)

    def forward(self, /, *args: Any, **named: Any) -> Any:
        """Run the graph.

        Raises:
            ArgumentError: when an input is missing, unknown, or of another type or number of axes
                than in the file.
        """
        given = self._given(args, named)
        weights = {self.program.weights[name]: at(self).value for name, at in self.paths}
        device = self._device(weights, given)
        refuse_others(self.program.graph.inputs, given, device)
        found = self.program.run([put(v, device) for v in given], weights, device)
        return found[0] if len(found) == 1 else tuple(found)

    def _given(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        values = dict(zip(self.inputs, args, strict=False))
        unknown = sorted(set(named) - set(self.inputs))
        missing = [name for name in self.inputs if name not in values and name not in named]
        if len(args) > len(self.inputs) or unknown or missing or set(values) & set(named):
            raise ArgumentError(
                "onnx",
                "the inputs do not fit the model",
                got=f"{len(args)} by position, {', '.join(named) or 'none'} by name",
                expected=", ".join(self.inputs),
            )
        values |= named
        inputs = self.program.graph.inputs
        return [as_input(v, values[v.name]) for v in inputs]

    def _device(self, weights: dict[int, Tensor[Any]], given: list[Any]) -> Backend:
        """The device that computes: that of the weights, or that of the inputs where none are."""
        found = [t.device for t in weights.values()] or [
            v.device for v in given if isinstance(v, Tensor)
        ]
        return found[0] if found else default_device()


class _Paths:
    """How the parameters of a module are found, by their names in the file."""

    def __init__(self, paths: dict[str, tuple[str, ...]]) -> None:
        self._paths = paths
        self._found = [(name, _at(path)) for name, path in paths.items()]

    def __iter__(self) -> Any:
        return iter(self._found)

    def __repr__(self) -> str:
        return f"those of {len(self._paths)} constants"

    def __reduce__(self) -> Any:
        return _Paths, (self._paths,)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Paths:
        return self


def _at(path: tuple[str, ...]) -> Callable[[Module], Any]:
    top, *rest = path

    def find(module: Module) -> Any:
        found = getattr(module, top)
        for name in rest:
            found = found[name]
        return found

    return find


def _tree(paths: dict[str, tuple[str, ...]], params: dict[str, Param]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, path in paths.items():
        branch = out
        for word in path[:-1]:
            branch = branch.setdefault(word, {})
        branch[path[-1]] = params[name]
    return out


def paths_of(
    names: list[str], known: Mapping[str, tuple[str, ...]] | None = None
) -> dict[str, tuple[str, ...]]:
    """Where each name of the file stands in the module: no two at one place or inside of another.

    Words are those of ``words_of``, as in sources, but where a path is ``known``.
    """
    taken, number = Taken(), dict[str, int]()
    out: dict[str, tuple[str, ...]] = {}
    for name in names:
        path = (known or {}).get(name) or words_of(name)
        joined = "_".join(path)
        while not taken.take(path):
            number[joined] = number.get(joined, 0) + 1
            path = (f"{joined}_{number[joined]}",)
        out[name] = path
    return out


def model_of(
    source: Source, device: Backend, quantized: Quantized = "fake", limits: Limits | None = None
) -> OnnxModel:
    """Return the module of a file under the names of the file; see ``load``."""
    limits = Limits() if limits is None else limits
    graph = prepared(source, limits)
    without_whole_numbers(graph, quantized)
    refuse_unsupported(graph)
    with_weights_as_layers_have_them(graph)
    with_recurrent_layers(graph, {})
    found = roles(graph)
    ours = {name: (array, "weight") for name, array in found.trained.items()}
    ours |= {name: (array, "state") for name, array in found.state.items()}
    paths = paths_of(list(ours), paths_of_layers(graph))
    return built(graph, ours, paths, device, limits.elements)


def prepared(source: Source, limits: Limits) -> Graph:
    """Read a file as a graph of newest ops, in order, without functions."""
    _refuse_no_limits(limits)
    graph = inlined(read(source, limits), limits)
    upgraded(graph)
    _constants(graph)
    in_order(graph)
    with_names_once(graph)
    return graph


def with_weights_as_layers_have_them(graph: Graph) -> None:
    """Turn matrices that every product of a graph reads transposed: as ``Linear`` has them."""
    constants = {k: v for k, v in graph.constants.items() if v.ndim == 2 and v.dtype.kind == "f"}
    readers: dict[str, list[Node | None]] = {}
    for node in walk(graph):
        for place, name in enumerate(node.inputs):
            turns = place == 1 and node.attributes.get(_turned(node), 0)
            readers.setdefault(name, []).append(node if turns else None)
    for each in graphs_of(graph):
        for value in each.outputs:
            readers.setdefault(value.name, []).append(None)
    for name, array in constants.items():
        nodes = [node for node in readers.get(name, [None]) if node is not None]
        if nodes and len(nodes) == len(readers[name]):
            graph.constants[name] = np.ascontiguousarray(array.T)
            for node in nodes:
                node.attributes = {**node.attributes, _turned(node): 0}


def _turned(node: Node) -> str:
    """The attribute that says that a node reads its second input transposed, or nothing."""
    row = row_of(node.key)
    return "" if row is None else row.transposed_by


def _refuse_no_limits(limits: object) -> None:
    """Refuse what are no limits."""
    if not isinstance(limits, Limits):
        hint = "limits=px.onnx.Limits(nodes=1000)"
        got = type(limits).__name__
        raise ArgumentError("onnx", "these are no limits", got=got, expected="Limits", hint=hint)


def _constants(graph: Graph) -> None:
    """Constant nodes among the constants of their graph."""
    kept: list[Node] = []
    for node in graph.nodes:
        for inner in node.graphs.values():
            _constants(inner)
        if node.key == ("", "Constant"):
            graph.constants[node.outputs[0]] = _constant(node)
        else:
            kept.append(node)
    graph.nodes = kept


_NUMBERS: Final[dict[str, Any]] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def _constant(node: Node) -> Array:
    if len(node.attributes) != 1 or len(node.outputs) != 1:
        raise OnnxError("onnx", "a constant without one value", got=node.where())
    ((name, value),) = node.attributes.items()
    if name in _NUMBERS:
        return np.array(value, _NUMBERS[name])
    if not isinstance(value, np.ndarray):
        raise OnnxError("onnx", "a constant of an unknown form", got=f"{name} of {node.where()}")
    return value


# What to do where a function of tensors would be no way out.
_ADVICE: Final = {
    ("ai.onnx.preview.training", "Gradient"): "px.grad(loss_of)(model) of a file without it",
    ("ai.onnx.ml", "ZipMap"): 'skl2onnx.to_onnx(model, X, options={"zipmap": False})',
}


def refuse_unsupported(graph: Graph) -> None:
    """Name every op without a row at once, and the first node that does not fit its row."""
    missing = unsupported(graph)
    if not missing:
        for node in walk(graph):
            row = row_of(node.key)
            assert row is not None
            bound(node, row)
            refuse_attributes(node, row)
        refuse_unsound(graph)
        return
    lines = [
        f"{op if not domain else f'{domain}.{op}'} ({len(nodes)}, first {nodes[0].where()})"
        for (domain, op), nodes in sorted(missing.items())
    ]
    (domain, op) = sorted(missing)[0]
    near = nearest(op) if not domain else None
    hint = f"px.onnx.register({domain!r}, {op!r}, function)"
    hint = _ADVICE.get((domain, op), hint)
    if near is not None:
        hint = f"{near[1]!r} has a row; {hint} adds one"
    raise OnnxError("onnx", "ops without a row", got="; ".join(lines), hint=hint)


def built(
    graph: Graph,
    params: Mapping[str, tuple[Array, Any]],
    paths: dict[str, tuple[str, ...]],
    device: Backend,
    elements: int,
) -> OnnxModel:
    """Return the module of a graph whose parameters are constants of it, each with its role."""
    ours = {name: Param(lifted(array, device), role=role) for name, (array, role) in params.items()}
    for each in graphs_of(graph):
        each.constants = {k: v for k, v in each.constants.items() if k not in ours}
    return OnnxModel(Program(graph, list(ours), elements), paths, ours)
