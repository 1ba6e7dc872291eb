"""A graph as steps over slots: each value has one, and is let go after its last use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import numpy as np

from phlox_tensor import DTYPES, Backend, DType, PhloxError, Tensor, asarray

from .._errors import RAW, OnnxError, of_op, refused, within
from .._graph import Array, Graph, Node, reads
from ..read._limits import Limits
from ..table._row import Parameter, Row, whole
from ._growth import META, factor, meta_of, refuse_large, too_large
from ._growth import bound as bound_of
from ._sound import named_outputs
from ._table import row_of

Env = list[Any]
Read = Callable[[Any, Backend], Any]

# A result of shape arithmetic; anything larger belongs on the device.
HOST_SIZE: Final = 1024


def lifted(value: Any, device: Backend) -> Any:
    """The tensor of an array; integers that the device lacks become its own."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind in "iu" and value.dtype.itemsize == 8:
        wanted = {d.name for d in device.dtypes}
        if value.dtype.name not in wanted:
            return asarray(value, dtype=device.default_int, device=device)
    return asarray(value, device=device)


def on_host(value: Any) -> Any:
    """The array of a tensor: one read."""
    return value.numpy() if isinstance(value, Tensor) else value


READS: Final[dict[str, Read]] = {
    "Host": lambda value, device: on_host(value),
    "Ints": lambda value, device: value if value is None else whole(on_host(value)),
    "Raw": lambda value, device: value,
    "Scalar": lambda value, device: value if value is None else on_host(value).reshape(()).item(),
    "Tensor": lifted,
}


@final
class Step:
    """One node: where its inputs lie, what runs, where its outputs go."""

    __slots__ = (
        "_bodies", "_device", "_factor", "_given", "_host", "_most", "_plan", "_row", "_wanted",
        "drop", "node", "outputs", "slots",
    )  # fmt: skip

    def __init__(self, node: Node, row: Row, program: Program) -> None:
        """Bind a node to a row.

        Raises:
            OnnxError: when inputs or attributes do not fit the row.
        """
        self.node, self._row = node, row
        self.outputs = tuple(program.slot(name) for name in node.outputs)
        self._plan = tuple(
            (program.slot(name), READS[p.takes], p.default) for name, p in bound(node, row)
        )
        self.slots = tuple(slot for slot, _, _ in self._plan if slot >= 0)
        refuse_attributes(node, row)
        graphs = node.graphs
        self._given = {k: v for k, v in keywords_of(node, row).items() if k not in graphs}
        self._bodies = {k: program.body(v) for k, v in graphs.items()}
        self._device = "device" in row.context
        self._host = row.host
        self._most = program.elements
        self._wanted = named_outputs(node)
        self._factor = factor(self._given) if row.file_sized else 0.0
        self.drop: tuple[int, ...] = ()

    def __call__(self, env: Env, device: Backend, *, keep: bool = False) -> None:
        """Run the node and put its results where they belong; ``keep`` lets go of no input."""
        try:
            found = self._found(env, device)
        except PhloxError as error:
            self._refuse_absent(env)
            found = of_op(error, self.node.op)
            found.add_note(f"in {self.node.where()} of the ONNX model")
            raise found from error.__cause__
        except MemoryError as error:
            got = "more than there is memory for"
            raise too_large(got, self.node, self._most) from error
        except Exception as error:
            self._refuse_absent(env)
            if self._row.registered or isinstance(error, RAW):
                raise refused(error, self.node.where(), self._row.registered) from error
            raise
        if type(found) is not tuple:
            found = (found,)
        if len(found) < self._wanted:
            got = f"{len(found)} of {self.node.where()}"
            what = "a node gives fewer results than it has names for"
            raise OnnxError("onnx", what, got=got, expected=self._wanted)
        if self._row.registered:
            _refuse_no_values(found, self.node)
        for slot, value in zip(self.outputs, found, strict=False):
            if slot >= 0:
                env[slot] = value
        for slot in () if keep else self.drop:
            env[slot] = None

    def _refuse_absent(self, env: Env) -> None:
        """Refuse None, which an optional value of the file may be, where the op wants more."""
        for (slot, _, _), (_, wanted) in zip(self._plan, bound(self.node, self._row), strict=True):
            if wanted.required and env[slot] is None:
                what, got = "an input is missing", self.node.where()
                raise OnnxError("onnx", what, got=got, expected=wanted.name)

    def _refuse_large(self, env: Env) -> None:
        """Ask how large the result is, where numbers in the file may make it too large."""
        if self._factor * bound_of(env[s] for s in self.slots) <= self._most:
            return
        values = dict(zip(self.node.inputs, (env[s] for s, _, _ in self._plan), strict=False))
        refuse_large(lambda: dry(self._row, self.node, values), self.node, self._most)

    def _found(self, env: Env, device: Backend) -> Any:
        if self._factor:
            self._refuse_large(env)
        if self._host is not None and all(isinstance(env[s], np.ndarray) for s in self.slots):
            args = [default if s < 0 else env[s] for s, _, default in self._plan]
            return _small(self._host(*args, **self._given), device)
        args = [default if s < 0 else read(env[s], device) for s, read, default in self._plan]
        words = {**self._given, "device": device} if self._device else self._given
        if self._bodies:
            bodies = {k: body.bound(env, device) for k, body in self._bodies.items()}
            return self._row.run(*args, **words, **bodies)
        return self._row.run(*args, **words)


def _refuse_no_values(found: tuple[Any, ...], node: Node) -> None:
    for value in found:
        if not isinstance(value, Tensor | np.ndarray | list):
            got = f"{type(value).__name__} of {node.where()}"
            what = "a registered function gives no tensor"
            raise OnnxError("onnx", what, got=got, expected="a tensor, or a tuple of them")


def _small(found: Any, device: Backend) -> Any:
    """What shape arithmetic gave, on the device where it outgrew shapes."""
    if isinstance(found, tuple):
        return tuple(_small(item, device) for item in found)
    array = np.asarray(found)
    return lifted(array, device) if array.size > HOST_SIZE else array


@final
class Body:
    """The steps of an inner graph, run among the values of the graph around it."""

    def __init__(self, steps: list[Step], inputs: list[int], outputs: list[int]) -> None:
        """Hold the steps and where inputs and outputs lie."""
        self.steps, self._inputs, self._outputs = steps, inputs, outputs

    def bound(self, env: Env, device: Backend) -> Callable[..., list[Any]]:
        """Return the body as a function of its inputs."""

        def run(*values: Any) -> list[Any]:
            for slot, value in zip(self._inputs, values, strict=False):
                env[slot] = value
            for step in self.steps:
                step(env, device)
            return [env[slot] for slot in self._outputs]

        return run


def bound(node: Node, row: Row) -> list[tuple[str, Parameter]]:
    """The inputs of a node beside the parameters that take them."""
    names = list(node.inputs)
    while names and not names[-1]:
        names.pop()
    out = list(zip(names, row.inputs, strict=False))
    if len(names) > len(row.inputs):
        if row.rest is None:
            got = f"{len(names)} of {node.where()}"
            raise OnnxError("onnx", "too many inputs", got=got, expected=len(row.inputs))
        out += [(name, row.rest) for name in names[len(row.inputs) :]]
    missing = [p.name for p in row.inputs[len(names) :] if p.required]
    missing += [p.name for name, p in out if p.required and not name]
    if missing:
        raise OnnxError("onnx", "an input is missing", got=node.where(), expected=missing[0])
    return out


def dry(row: Row, node: Node, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Run the row of a node on the device without data, and return what it gives.

    Args:
        values: the inputs by name: arrays of the host, and tensors of any device.

    Raises:
        PhloxError: when an input is missing or does not fit, or the row asks for data.
    """
    args = []
    for name, parameter in bound(node, row):
        value = values[name] if name else parameter.default
        if name and value is None and parameter.required:
            what = "an input is missing"
            raise OnnxError("onnx", what, got=node.where(), expected=parameter.name)
        if name:
            moved = meta_of(value) if parameter.takes in ("Raw", "Tensor") else value
            value = READS[parameter.takes](moved, META)
        args.append(value)
    found = row.run(*args, **keywords_of(node, row), **_DRY if "device" in row.context else {})
    return found if isinstance(found, tuple) else (found,)


_DRY: Final = {"device": META}


def keywords_of(node: Node, row: Row) -> dict[str, Any]:
    """The keywords of a row, but for the device."""
    words: dict[str, Any] = dict(node.attributes)
    if "outputs" in row.context:
        words["outputs"] = len(node.outputs)
    if "stacked" in row.context:
        words["stacked"] = stacked_of(node, row)
    return words


def stacked_of(node: Node, row: Row) -> tuple[tuple[DType, tuple[int, ...]], ...]:
    """Types and sizes of what the body of a loop gives to be stacked, as the file has them."""
    own = len(node.inputs) - node.attributes.get("num_scan_inputs", 2)
    given = node.attributes["body"].outputs[max(own, 0) + (row.inner == "loop") :]
    return tuple(
        (
            DTYPES.get(value.dtype, DTYPES["float32"]),
            tuple(n if isinstance(n, int) and n > 0 else 0 for n in value.shape or ()),
        )
        for value in given
    )


def refuse_attributes(node: Node, row: Row) -> None:
    """Refuse attributes of a node that the row does not know, or lacks."""
    unknown = sorted(set(node.attributes) - set(row.attributes))
    if unknown:
        expected = ", ".join(row.attributes) or "none"
        got = f"{unknown[0]} of {node.where()}"
        raise OnnxError("onnx", "an attribute that has no use here", got=got, expected=expected)
    missing = [k for k, must in row.attributes.items() if must and k not in node.attributes]
    if missing:
        raise OnnxError("onnx", "an attribute is missing", got=node.where(), expected=missing[0])


@final
class Program:
    """The steps of a graph and of the graphs inside, over one list of values.

    Attributes:
        graph: what the program was made from.
        elements: what a node may make out of numbers in the file.
        weights: slots of the values that are parameters, by their name in the file.
    """

    def __init__(
        self, graph: Graph, weights: Sequence[str], elements: int = Limits.elements
    ) -> None:
        """Make the steps.

        Args:
            graph: in order, and with each name once.
            weights: constants that the model keeps as parameters.
            elements: as in ``Limits``.
        """
        self.graph, self.elements = graph, elements
        self._slots: dict[str, int] = {}
        self._constants: dict[str, Array] = {}
        self._own = frozenset(weights)
        self._steps = self._compiled(graph)
        self.weights = {name: self.slot(name) for name in weights}
        self._inputs = tuple(self.slot(v.name) for v in graph.inputs)
        self._outputs = tuple(self.slot(v.name) for v in graph.outputs)
        given = {self.slot(name): array for name, array in self._constants.items()}
        self._start: Env = [given.get(slot) for slot in range(len(self._slots))]

    def __repr__(self) -> str:
        """What goes in, how much is done, what comes out."""
        given = ", ".join(value.described() for value in self.graph.inputs)
        found = ", ".join(value.described() for value in self.graph.outputs)
        return f"{given} -> {len(self._steps)} nodes -> {found}"

    def __reduce__(self) -> Any:
        """Pickle the graph; the steps follow from it."""
        return Program, (self.graph, list(self.weights), self.elements)

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        """Return itself: a program does not change."""
        return self

    def slot(self, name: str) -> int:
        """The place of a value, or -1 for one that is absent."""
        return self._slots.setdefault(name, len(self._slots)) if name else -1

    def body(self, graph: Graph) -> Body:
        """Return an inner graph."""
        steps = self._compiled(graph)
        inputs = [self.slot(v.name) for v in graph.inputs]
        return Body(steps, inputs, [self.slot(v.name) for v in graph.outputs])

    def _compiled(self, graph: Graph) -> list[Step]:
        given = {k: v for k, v in graph.constants.items() if k not in self._own}
        self._constants |= given
        steps = []
        for node in graph.nodes:
            row = row_of(node.key)
            if row is None:
                raise OnnxError("onnx", "an op without a row", got=node.where())
            with within(node.where()):
                steps.append(Step(node, row, self))
        self._let_go(graph, steps)
        return steps

    def _let_go(self, graph: Graph, steps: list[Step]) -> None:
        """Say after which step a value that the graph makes is read no more."""
        last: dict[str, int] = {}
        for i, node in enumerate(graph.nodes):
            for name in (*node.outputs, *reads(node)):
                last[name] = i
        made = {name for node in graph.nodes for name in node.outputs if name}
        made |= {v.name for v in graph.inputs}
        kept = {v.name for v in graph.outputs}
        drops: dict[int, list[int]] = {}
        for name, i in last.items():
            if name in made and name not in kept:
                drops.setdefault(i, []).append(self.slot(name))
        for i, slots in drops.items():
            steps[i].drop = tuple(slots)

    def walked(self, arguments: Sequence[Any], device: Backend) -> Iterator[tuple[Step, list[Any]]]:
        """Each step with its results, for as far as inputs that may be None allow it.

        What a body makes is left out, and how large constants are is all that counts of them.
        """
        env = [
            lifted(v, device) if isinstance(v, np.ndarray) and v.size > HOST_SIZE else v
            for v in self._start
        ]
        unknown = {slot for slot, v in zip(self._inputs, arguments, strict=True) if v is None}
        for slot, value in zip(self._inputs, arguments, strict=True):
            env[slot] = value
        for step in self._steps:
            if step.node.graphs or not unknown.isdisjoint(step.slots):
                unknown.update(step.outputs)
                continue
            try:
                step(env, device, keep=True)
            except (PhloxError, *RAW):
                unknown.update(step.outputs)
                continue
            yield step, [env[slot] if slot >= 0 else None for slot in step.outputs]

    def run(
        self, arguments: Sequence[Any], weights: dict[int, Tensor[Any]], device: Backend
    ) -> list[Any]:
        """Return the outputs for inputs in the order of the graph."""
        env = self._start.copy()
        for slot, tensor in weights.items():
            env[slot] = tensor
        for slot, value in zip(self._inputs, arguments, strict=True):
            env[slot] = value
        for step in self._steps:
            step(env, device)
        return [_out(env[slot], device) for slot in self._outputs]


def _out(value: Any, device: Backend) -> Any:
    if isinstance(value, list):
        return [_out(item, device) for item in value]
    return lifted(value, device)
