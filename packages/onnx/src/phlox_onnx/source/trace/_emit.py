"""A graph as lines of source: nodes become layers, what their rows write, or calls of copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import numpy as np

import phlox_tensor as px
from phlox_tensor import DTYPES, PhloxError

from ..._errors import RAW, OnnxError, refused
from ..._graph import Graph, Node
from ...run._growth import META
from ...run._program import bound, keywords_of, stacked_of
from ...run._table import row_of
from ...table._row import Parameter, Row
from ..graph._simplify import FOLDED, Forms
from . import _expr as e
from ._control import body, branch
from ._copy import Copies
from ._expr import Block, FieldRef, Ref
from ._layers import Layer, fits, layer_of
from ._recurrent import RECURRENT, recurrent
from ._run import spelled_call, written
from ._size import Size, UnknownError
from ._specs import specs_of
from ._traced import Trace, Traced, TracedDevice, sliced, source_of
from ._values import LITERAL, STATE, Field, Values
from ._writers import HOST, MAKERS, WRITERS, ints, truth

# A row that writes more lines than this is a function of its own.
ROW_LINES: Final = 8


@final
class Emitter:
    """Writes a graph; ``fields`` and ``copies`` are what its lines stand on."""

    def __init__(
        self,
        trained: set[str],
        forms: Forms,
        sizes: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]] | None],
    ) -> None:
        """Take which constants are trained, their forms, and both shapes of each input."""
        self.trace = Trace()
        self.copies = Copies()
        self.called: Counter[str] = Counter()
        self.unsized: Counter[str] = Counter()
        self._sizes, self._forms = sizes, forms
        self.results: list[Any] = []
        self._values = Values(self.trace, trained, forms)
        self.fields, self._keys = self._values.fields, self._values.keys
        self._constants = self._values.constants
        self.tensor, self.whole = self._values.tensor, self._values.whole
        self.brought = self._values.brought
        self.device = self._values.device

    def model(self, graph: Graph) -> tuple[list[int], Block]:
        """The numbers of the inputs, and the lines."""
        env: dict[str, Any] = {}
        numbers = []
        for value in graph.inputs:
            number = self.trace.fresh()
            numbers.append(number)
            env[value.name] = Traced(self.trace, Ref(number), self._input(value))
            if self._values.place is None and value.dtype:
                self._values.place = TracedDevice(e.member(Ref(number), "device"))
        block = self.write(graph, env)
        return numbers, block

    def _input(self, value: Any) -> Any:
        shapes = self._sizes.get(value.name)
        if shapes is None or value.dtype not in DTYPES:
            return None
        kind = DTYPES[value.dtype]
        return tuple(px.zeros(s, dtype=kind, device=META) for s in shapes)

    def write(self, graph: Graph, env: dict[str, Any], truth: bool = False) -> Block:
        """The lines of a graph; ``results`` are its values, the first perhaps only a truth."""
        before, self.trace.block = self.trace.block, Block()
        self.brought(graph.constants)
        try:
            for node in graph.nodes:
                self.node(node, env)
            found = [self.value(v.name, env) for v in graph.outputs]
            lifts = [self.tensor if truth and not i else self.whole for i in range(len(found))]
            values = [lift(value) for lift, value in zip(lifts, found, strict=True)]
            self.trace.block.results = [source_of(v) for v in values]
            self.results = values
            return self.trace.block
        finally:
            self.trace.block = before

    def value(self, name: str, env: dict[str, Any]) -> Any:
        """What a name of the graph stands for."""
        if name in env:
            return env[name]
        if name not in self._constants:
            raise OnnxError("source", "a value that its node does not give", got=ascii(name))
        return self._constants[name]

    # Nodes

    def node(self, node: Node, env: dict[str, Any]) -> None:
        """Write a node, and note what its names stand for."""
        row = row_of(node.key)
        on_host = row is not None and any(p.takes in ("Host", "Scalar") for p in row.inputs)
        try:
            with e.wide_numbers(on_host):  # NumPy reckons in float64
                found = self._found(node, env)
        except PhloxError as error:
            error.add_note(f"in {node.where()} of the ONNX model")
            raise
        except (UnknownError, *RAW) as error:
            raise refused(error, node.where()) from error
        results = found if isinstance(found, tuple) else (found,)
        env |= {o: v for o, v in zip(node.outputs, results, strict=False) if o}

    def _found(self, node: Node, env: dict[str, Any]) -> Any:
        row = row_of(node.key)
        if row is not None and row.inner == "branch":
            return branch(self, node, env)
        values = [self.value(n, env) if n else None for n in node.inputs]
        for way in (self._on_host, self._layer, self._short, self._by_row):
            found = self._tried(way, node, values)
            if found is not None:
                return found
        return self._called(node, values, env)

    def _tried(self, way: Callable[..., Any], node: Node, values: list[Any]) -> Any:
        """What a way gives, or None and no lines."""
        back = self.mark()
        self.trace.limit = len(self.trace.block.lines) + ROW_LINES
        try:
            return way(node, values)
        except (UnknownError, PhloxError, *RAW):
            back()
            return None
        finally:
            self.trace.limit = None

    def mark(self) -> Callable[[], None]:
        """Return what takes back all that is written from now on."""
        lines, fields, count = self.trace.block.lines, len(self.fields), self.trace.count
        length, called, unsized = len(lines), self.called.copy(), self.unsized.copy()
        growing: tuple[dict[Any, Any], ...] = (self._keys, self._values.owned)
        sizes = [len(each) for each in growing]

        def back() -> None:
            del lines[length:]
            del self.fields[fields:]
            for each, size in zip(growing, sizes, strict=True):
                while len(each) > size:
                    each.popitem()
            self.trace.count, self.called, self.unsized = count, called, unsized

        return back

    def _on_host(self, node: Node, values: list[Any]) -> Any:
        row = row_of(node.key)
        given = [v for v in values if v is not None]
        if row is None or row.host is None or not all(isinstance(v, np.ndarray) for v in given):
            return None
        if not any(v.dtype == object for v in given) and any(v.size > LITERAL for v in given):
            return None
        sized = any(v.dtype == object for v in given)
        if sized and node.key in HOST:
            return HOST[node.key](node, *values)
        found = row.host(*values, **node.attributes)
        out = np.asarray(found)
        if out.size > FOLDED:
            return None
        if out.dtype == object and not any(isinstance(v, Size) for v in out.reshape(-1)):
            out = np.array(out.tolist()).reshape(out.shape)
        if out.dtype == object and not sized:
            return None
        return out

    def _layer(self, node: Node, values: list[Any]) -> Any:
        layer = layer_of(node, self._constants)
        specs = self._specs(node, values) if layer is not None else None
        if layer is None or not fits(layer, values, specs):
            return None
        given: list[Any] = [
            self.tensor(values[i]) if i < len(values) and values[i] is not None else None
            for i in layer.inputs
        ]
        field = self._field(node, layer)
        if node.key in RECURRENT:
            hidden = layer.arrays["layers.0.weight_hidden"].shape[0]
            return recurrent(self.trace, node, FieldRef(field), given, hidden)
        expr = e.Expr(((FieldRef(field), e.ATOM), "(", (given[0].expr, e.ANY), ")"))
        return Traced(self.trace, self.trace.keep(expr), specs)

    def _field(self, node: Node, layer: Layer) -> int:
        key = (node.key, layer.sources, repr(layer.settings))
        if key not in self._keys:
            weights = self._own_weights(layer)
            arrays = {k: (v, "state" if k in STATE else "weight") for k, v in layer.arrays.items()}
            words = (*self._values.named(layer.sources), node.name, layer.default)
            self.fields.append(Field(layer.kind, layer.settings, arrays, words))
            self._keys[key] = len(self.fields) - 1
            self._values.own(self._keys[key], weights, layer.arrays)
        return self._keys[key]

    def _own_weights(self, layer: Layer) -> tuple[str, ...]:
        """The constants that are weights of a layer, none of which may be that of another."""
        whole = {id(v): k for k, v in layer.arrays.items()}
        paths = {name: whole.get(id(self._constants[name])) for name in layer.sources}
        for name, path in paths.items():
            turned = path is None and name in self._forms.several
            if turned or (path not in STATE and self._values.is_taken(name)):
                raise UnknownError("a weight of another layer")
        return tuple(name for name, path in paths.items() if path and path not in STATE)

    def _short(self, node: Node, values: list[Any]) -> Any:
        if node.key in MAKERS:
            return MAKERS[node.key](self.trace, self.device(), *values)
        writer = WRITERS.get(node.key)
        if writer is None:
            return None
        if writer is truth and isinstance(values[0], np.ndarray):
            values = values[::-1]
        known = [
            v
            if isinstance(v, np.ndarray | None) and i and not self._values.is_trained_number(v)
            else self.tensor(v)
            for i, v in enumerate(values)
        ]
        return writer(node, *known)

    def _by_row(self, node: Node, values: list[Any]) -> Any:
        row = row_of(node.key)
        if row is None or node.graphs:
            return None
        if row.optional_test and any(v.specs is None for v in values if v):
            return None  # what is absent is only known when the source runs
        names = dict(zip(node.inputs, values, strict=True))
        args = [self._read(names[n] if n else None, p) for n, p in bound(node, row)]
        words = keywords_of(node, row)
        if "device" in row.context:
            words["device"] = TracedDevice(self.device())
        found = written(row.run, self.trace)(*args, **words)
        return self._checked(found)

    def _checked(self, found: Any) -> Any:
        for each in found if isinstance(found, tuple) else (found,):
            if not isinstance(each, Traced | np.ndarray):
                raise UnknownError("a result of another kind")
        return found

    def _read(self, value: Any, parameter: Parameter) -> Any:
        """A value as a row takes it."""
        if value is None:
            return parameter.default
        takes = parameter.takes
        if takes == "Tensor":
            return self.tensor(value)
        if takes == "Ints":
            return ints(value)
        if takes == "Scalar":
            if isinstance(value, np.ndarray):
                return value.reshape(-1)[0] if value.dtype == object else value.reshape(()).item()
            raise UnknownError("a value")
        if takes == "Host" and isinstance(value, Traced):
            raise UnknownError("a value")
        if isinstance(value, np.ndarray) and value.dtype == object:
            raise UnknownError("sizes")
        return value

    def _specs(self, node: Node, values: list[Any]) -> Any:
        """What a node gives in both cases, by its row on the device without data."""
        known = specs_of(node, values)
        return known[0] if known else None

    # Copies

    def _called(self, node: Node, values: list[Any], env: dict[str, Any]) -> Any:
        row = row_of(node.key)
        if row is None:
            raise OnnxError("source", "an op without a row", got=node.where())
        plain = _function_of(row)
        if plain and not node.attributes:
            self.unsized[node.op] += 1
            args = [e.literal(None) if v is None else self.whole(v).expr for v in values]
            return Traced(self.trace, self.trace.keep(spelled_call(plain, args)), None)
        name = self.copies.row(node.op, row.run)
        self.called[node.op] += 1
        names = dict(zip(node.inputs, values, strict=True))
        args = [
            self._argument(names[n] if n else None, p, bool(node.graphs))
            for n, p in bound(node, row)
        ]
        words: dict[str, Any] = {}
        for word, value in node.attributes.items():
            words[word] = (
                body(self, node, value, values, env)
                if isinstance(value, Graph)
                else e.literal(_plain(value))
            )
        if "outputs" in row.context:
            words["outputs"] = e.literal(len(node.outputs))
        stacked = stacked_of(node, row) if "stacked" in row.context else ()
        if stacked:
            words["stacked"] = e.literal(stacked)
        if "device" in row.context and (stacked or "stacked" not in row.context):
            words["device"] = self.device()
        expr = e.call(f"_ops.{name}", args, words)
        specs = None if node.graphs else specs_of(node, values)
        return self._results_of(node, row, expr, specs)

    def _results_of(self, node: Node, row: Row, expr: Any, specs: Any) -> Any:
        kind = str(row.run.__annotations__.get("return", "Any"))
        several = kind.startswith("tuple") or (kind == "Any" and len(node.outputs) > 1)
        if kind == "Any" and len(node.outputs) == 1:
            expr = e.call(f"_ops.{self.copies.take(first)}", [expr])
        if kind == "Host":
            device = self.device()
            expr = e.call("px.asarray", [expr], {"device": device})
        if not several:
            return Traced(self.trace, self.trace.keep(expr), specs[0] if specs else None)
        if len(node.outputs) == 1:
            ref = self.trace.keep(e.item(expr, [e.literal(0)]))
            return (Traced(self.trace, ref, specs[0] if specs else None),)
        count = len(specs) if specs else len(node.outputs)
        if not specs and kind.startswith("tuple") and "outputs" not in row.context:
            expr = e.item(expr, [sliced(slice(count))])  # there may be more than are asked for
        refs = self.trace.keep_several(expr, count)
        known = specs or [None] * count
        return tuple(Traced(self.trace, r, s) for r, s in zip(refs, known, strict=True))

    def _argument(self, value: Any, parameter: Parameter, lifted: bool) -> Any:
        """A value as the copy of a row takes it."""
        if value is None:
            return e.literal(parameter.default)
        takes = parameter.takes
        if not isinstance(value, np.ndarray):
            return _read_later(value, takes)
        if takes == "Tensor" or (takes == "Raw" and (lifted or value.size > 1)):
            return self.whole(value).expr
        if takes == "Ints":
            return source_of(ints(value))
        if takes == "Scalar":
            return source_of(value.reshape(-1)[0])
        if value.dtype == object:
            return e.call("np.array", [source_of(value.tolist())])
        if value.size > 64 or value.dtype.kind not in "biuf":
            return e.method(self.whole(value).expr, "numpy", [])
        return e.literal(value)


def first(found: Any) -> Any:
    """The one result of an op that may give several."""
    return found[0] if isinstance(found, tuple) else found


def _read_later(value: Any, takes: str) -> Any:
    """A tensor as numbers of the host, read when the source runs."""
    if takes == "Host":
        return e.method(value.expr, "numpy", [])
    if takes == "Scalar":
        return e.method(value.expr, "item", [])
    if takes == "Ints":
        flat = e.method(value.expr, "reshape", [e.literal((-1,))])
        return e.call("tuple", [e.method(flat, "tolist", [])])
    return source_of(value)


def _function_of(row: Row) -> str:
    """The name of the one function of phlox that a row is made of, or nothing."""
    cells = [c.cell_contents for c in row.run.__closure__ or ()]
    if len(cells) != 1 or not callable(cells[0]) or "<locals>" not in row.run.__qualname__:
        return ""
    word = str(cells[0].__name__)
    return word if getattr(px, word, None) is cells[0] and row.rest is None else ""


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
