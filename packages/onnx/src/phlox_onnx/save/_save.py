"""Modules as files: one run is recorded, or two of different batches, and each op is spelled."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from phlox_nn import Module
from phlox_tensor import (
    ArgumentError,
    Backend,
    CompileError,
    Tensor,
    asarray,
    default_device,
    use_device,
)
from phlox_tensor.capture import Graph, Node, Number, Recording, Value, plain, recorded
from phlox_tensor.scope import watching

from .._errors import OnnxError
from ._rows import ROWS
from ._spelled import Spelled
from ._writer import FREE, OPSET, Call, Writer, type_of

# Larger files keep their weights beside them; protobuf ends at 2 GiB.
EXTERNAL: Final = 1 << 30
_IR: Final = 10  # that of opset 21


def save(
    module: Module,
    inputs: Any,
    path: str | os.PathLike[str],
    *,
    names: Sequence[str] | None = None,
    dynamic_batch: bool = False,
) -> Path:
    """Write what a module computes for example inputs as a file of ONNX, opset 21.

    Parameters keep their paths as names. Decisions of Python are those of the example: sizes are
    fixed, but with ``dynamic_batch`` the first axis of all inputs, which a second run tells apart.
    A file of more than 1 GiB has its weights in ``path`` + ``".data"``.

    Args:
        module: is written as it computes in inference.
        inputs: a tensor or array, or several in a tuple, as the module is called with.
        path: where the file goes.
        names: of the inputs; ``x0``, ``x1`` … by default.
        dynamic_batch: whether the first axis may have any size.

    Raises:
        ArgumentError: for names that do not fit the inputs.
        OnnxError: for an op that ONNX has no word for; it is named, with the module that asks.

    Example:
        >>> import tempfile, phlox_nn as nn
        >>> from phlox_tensor import zeros
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(nn.Linear(4, 2), zeros((1, 4)), f"{folder}/linear.onnx")
        ...     path.name
        'linear.onnx'
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    words = list(names) if names is not None else [f"x{i}" for i in range(len(given))]
    if len(words) != len(given) or len(set(words)) < len(words):
        raise ArgumentError("save", "names do not fit the inputs", got=words, expected=len(given))
    net = module.valid()
    own = next((param.device for param in net.param_list()), default_device())
    device = Spelled(own.base)
    net = net.to_device(device)
    params = {path: param.value for path, param in net.params().items()}
    tensors = [_on(v, device) for v in given]
    with use_device(device):
        net(*tensors)  # what a module computes once and keeps is no part of what it does
        first = _run(net, tensors, params)
        other = first
        if dynamic_batch:
            other = _run(net, [_longer(t) for t in tensors], params)
    model = _model(first, other, words)
    target = Path(path)
    large = sum(t.ByteSize() for t in model.graph.initializer) > EXTERNAL
    beside: dict[str, Any] = {"save_as_external_data": True, "location": f"{target.name}.data"}
    onnx.save_model(model, str(target), **(beside if large else {}))
    return target


def _on(value: Any, device: Backend) -> Tensor[Any]:
    while isinstance(value, Tensor) and value.device.records:
        value = value.inner()
    if isinstance(value, Tensor):
        return value.to_device(device)
    return asarray(value, device=device)


def _longer(x: Tensor[Any]) -> Tensor[Any]:
    """The same with its first row once more."""
    if not x.ndim or not x.shape[0]:
        raise ArgumentError("save", "an input without a batch", got=x.shape, expected="an axis")
    host = x.numpy()
    return asarray(np.concatenate([host, host[:1]]), device=x.device)


class _Run:
    """A recorded run: the graph, what its constants are called, which module asked for what."""

    def __init__(self, graph: Graph, names: dict[int, str], where: dict[int, str]) -> None:
        self.graph, self.names, self.where = graph, names, where


def _run(net: Module, tensors: list[Tensor[Any]], params: Mapping[str, Tensor[Any]]) -> _Run:
    def cell(_: Any, __: Any) -> Any:
        raise OnnxError("save", "a module with state that a call changes", got=type(net).__name__)

    made = Recording(cell)
    given = []
    for tensor in tensors:
        primitive = made.handle(tensor.device, tensor.primitive)
        made.input(tensor.device, primitive)
        given.append(Tensor[Any](primitive, tensor.device))
    where: dict[int, str] = {}

    def around(_: object, path: str, call: Callable[[], Any]) -> Any:
        start = len(made.graph(()).nodes)
        out = call()
        for i in range(start, len(made.graph(()).nodes)):
            where.setdefault(i, path or type(net).__name__)
        return out

    with recorded(made), watching(around):
        try:
            found = net(*given)
        except CompileError as error:
            raise OnnxError("save", "what runs hangs on a value", got=str(error)) from error
        outputs = found if isinstance(found, tuple | list) else (found,)
        if not all(isinstance(t, Tensor) for t in outputs):
            kinds = ", ".join(type(t).__name__ for t in outputs)
            raise OnnxError("save", "a result that is no tensor", got=kinds, expected="tensors")
        values = tuple(made.value_of(t.device, t.primitive) for t in outputs)
        names = {made.value_of(t.device, t.primitive): path for path, t in params.items()}
        graph = made.graph(values)
    return _Run(graph, names, where)


def _model(run: _Run, other: _Run, words: list[str]) -> onnx.ModelProto:
    graph, second = run.graph, other.graph
    if [n.op.name for n in graph.nodes] != [n.op.name for n in second.nodes]:
        raise OnnxError("save", "the ops differ from batch to batch", expected="one way for all")
    w = Writer()
    values: dict[int, str] = {}
    for value, word in zip(graph.inputs, words, strict=True):
        values[value] = w.name(word)
    w.first = words[0] if words else ""
    needed = _needed(graph)
    for value, primitive in graph.constants.items():
        if value in needed:
            values[value] = _constant(w, run, value, primitive)
    for i, (node, twin) in enumerate(zip(graph.nodes, second.nodes, strict=True)):
        if needed.isdisjoint(node.results):
            continue
        wanted = tuple(v in needed for v in node.results)
        where = run.where.get(i, node.line)
        call = _call(node, twin, run, other, values, wanted, where)
        if node.op.name not in ROWS:
            raise call.refuse("an op without a spelling")
        found = ROWS[node.op.name](w, call)
        results = found if isinstance(found, list) else [found]
        values |= dict(zip(node.results, results, strict=True))
    outputs = _outputs(w, run, other, values)
    ins = [
        helper.make_tensor_value_info(word, *_typed(run, other, a, b))
        for word, a, b in zip(words, graph.inputs, second.inputs, strict=True)
    ]
    made = helper.make_graph(w.nodes, "phlox", ins, outputs, w.initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(made, opset_imports=opsets, ir_version=_IR, producer_name="phlox")


def _needed(graph: Graph) -> set[int]:
    """The values that the outputs hang on."""
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.results):
            needed.update(_values(node))
    return needed


def _outputs(w: Writer, run: _Run, other: _Run, values: dict[int, str]) -> list[Any]:
    out = []
    for i, (a, b) in enumerate(zip(run.graph.outputs, other.graph.outputs, strict=True)):
        name = w.name(f"y{i}")
        w.nodes.append(helper.make_node("Identity", [values[a]], [name]))
        out.append(helper.make_tensor_value_info(name, *_typed(run, other, a, b)))
    return out


def _constant(w: Writer, run: _Run, value: int, primitive: Any) -> str:
    device = next(n.device for n in run.graph.nodes)
    array = device.read(primitive)
    return w.array(array, run.names.get(value, "constant"))


def _values(node: Node) -> list[int]:
    found = []
    for item in node.operands:
        if isinstance(item, Value):
            found.append(item.number)
        elif isinstance(item, tuple):
            found += [v.number for v in item]
    return found


def _shape(run: _Run, other: _Run, a: int, b: int) -> tuple[int | None, ...]:
    """The sizes that both runs have in common."""
    one, two = run.graph.specs[a].shape, other.graph.specs[b].shape
    return tuple(m if m == n else FREE for m, n in zip(one, two, strict=True))


def _typed(run: _Run, other: _Run, a: int, b: int) -> tuple[int, list[int | str]]:
    shape = ["batch" if n is None else n for n in _shape(run, other, a, b)]
    return type_of(run.graph.specs[a].dtype), shape


def _call(
    node: Node,
    twin: Node,
    run: _Run,
    other: _Run,
    values: dict[int, str],
    wanted: tuple[bool, ...],
    where: str,
) -> Call:
    inputs: list[Any] = []
    shapes: list[Any] = []
    dtypes: list[Any] = []
    for mine, theirs in zip(node.operands, twin.operands, strict=True):
        if isinstance(mine, Value):
            inputs.append(values[mine.number])
            shapes.append(_shape(run, other, mine.number, theirs.number))
            dtypes.append(run.graph.specs[mine.number].dtype)
            continue
        named = isinstance(mine, tuple) and not isinstance(mine, Number)
        inputs.append([values[v.number] for v in mine] if named else plain(mine))
        shapes.append(None)
        dtypes.append(None)
    attributes = tuple(
        _common(plain(a), plain(b)) for a, b in zip(node.attributes, twin.attributes, strict=True)
    )
    outs = tuple(
        (_shape(run, other, a, b), run.graph.specs[a].dtype)
        for a, b in zip(node.results, twin.results, strict=True)
    )
    batches = _batches(run, other, node.results[0], twin.results[0])
    facts = (tuple(inputs), attributes, tuple(shapes), tuple(dtypes), outs, wanted, batches)
    return Call(node.op.name, *facts, where)


def _batches(run: _Run, other: _Run, a: int, b: int) -> bool:
    """Whether sizes that differ are those of the first input's first axis."""
    if not run.graph.inputs:
        return True
    first = [r.graph.specs[r.graph.inputs[0]].shape for r in (run, other)]
    batch = tuple(s[0] if s else 0 for s in first)
    pairs = zip(run.graph.specs[a].shape, other.graph.specs[b].shape, strict=True)
    return all(m == n or (m, n) == batch for m, n in pairs)


def _common(a: Any, b: Any) -> Any:
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_common(m, n) for m, n in zip(a, b, strict=True))
    return a if a is b or a == b else FREE
