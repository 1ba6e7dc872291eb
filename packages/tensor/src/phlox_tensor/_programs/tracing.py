"""Sketches: the ops of an elementwise function on a device, recorded without computing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, NoReturn, final

import numpy as np

from .._device.backend import Backend
from .._device.finding import use_device
from .._device.table import Entry
from .._errors.classes import CompileError, DeviceError, ShapeError
from .._op.declaration import REGISTRY, Shape, Spec
from .._random.state import host_random_state, is_stream
from .._recording.active import recorded
from .._recording.graph import Graph, Node, Value, needed, values_of
from .._recording.record import Recording, line_of_error, refuse
from .._values.cell import Cell, recording_here
from .._values.dtype import DType
from .._values.number import Number
from .._values.tensor import Tensor
from ..inference import infer_prepared
from .lowering import Lowered, arguments_of, in_the_way, lowered

# A function of elements does the same for both: sizes, and how many axes there are, differ.
_SHAPES: Final = ((1,), (5, 7))


@final
class Sketch(Backend):
    """A base device with the entries of another one, each of which only says what it would give.

    Args:
        like: the base device.
        sizes: whether a function may ask for shapes.
    """

    name = "sketch"
    has_data = False

    def __init__(self, like: Backend, *, sizes: bool) -> None:
        """Take over what the device says about itself."""
        self.like: Final = like
        self.sizes: Final = sizes
        self.settings = (like, sizes)
        self.dtypes = like.dtypes
        self.default_float, self.default_int = like.default_float, like.default_int
        self.max_rank = like.max_rank

    def entry(self, name: str) -> Entry | None:
        """Return what says what the op would give; None where a kernel spells it out."""
        if self.like.entry(name) is None or name in self.like.limits.apart:
            return None
        op = REGISTRY[name]
        count = len(op.signature.operands)

        def told(*args: Any) -> Any:
            out = infer_prepared(op, args[:count], args[count:], self.default_int)
            return out if op.signature.several else out[0]

        def run(*args: Any) -> Any:
            made = recording_here.get()
            return told(*args) if made is None else made.run(self, op, told, args)

        return run

    def shape_of(self, primitive: Spec, /) -> Shape:
        """Return the shape, to those who may ask for it."""
        if not self.sizes:
            refuse(CompileError("sketch", "the function asks for a shape"))
        return primitive.shape

    def spec_of(self, primitive: Spec, /) -> Spec:
        """Return shape and element type, to ops."""
        return primitive

    def dtype_of(self, primitive: Spec, /) -> DType:
        """Return the element type."""
        return primitive.dtype

    def upload(self, array: np.ndarray[Any, Any], dtype: DType, /) -> Spec:
        """Take the shape of an array and leave its data."""
        made = recording_here.get()
        out = Spec(array.shape, dtype)
        if made is not None:
            made.uploaded(self, array, out)
        return out

    def read(self, primitive: Spec, /) -> NoReturn:
        """Raise: there are no values; inside of a kernel the recording says so first."""
        made = recording_here.get()
        if made is not None:
            made.read(self, primitive)
        raise DeviceError("read", "a sketch has no values", got=f"shape {primitive.shape}")


class Sketched(NamedTuple):
    """What a function does to elements.

    Attributes:
        dtype: the element type of its first result.
        used: the arguments on which the results depend, by place.
        lowered: it as one program, whose inputs are places of arguments; or why it is none.
        graph: it, op by op.
    """

    dtype: DType
    used: tuple[int, ...]
    lowered: Lowered | CompileError
    graph: Graph


def sketched(
    name: str,
    function: Callable[..., Any],
    device: Backend,
    args: Sequence[Any],
    *,
    several: bool = False,
) -> Sketched:
    """Return what a function does to elements on a base device.

    Args:
        name: the name of the function, for errors.
        function: a function of tensors and numbers that gives one tensor.
        device: the base device.
        args: an element type for each tensor; numbers, and whatever else it takes, as they are.
        several: whether it gives a sequence of tensors, arguments among them, and may not ask for
            shapes, so that it need not be run for two of them.

    Raises:
        CompileError: where it reads values, depends on shapes, takes tensors from outside, or
            gives something else than one tensor.
    """
    first = _run(name, function, device, args, _SHAPES[0], several)
    second = first if several else _run(name, function, device, args, _SHAPES[1], several)
    if _form(first) != _form(second):
        raise CompileError(
            name,
            "the function depends on the shape of its arguments",
            got=_parted(first.graph, second.graph),
            expected="the same ops for all shapes",
            hint="give a size as an argument: f(x, x.shape[0])",
        )
    return first


def _run(
    name: str,
    function: Callable[..., Any],
    device: Backend,
    args: Sequence[Any],
    shape: Shape,
    several: bool,
) -> Sketched:
    sketch = Sketch(device, sizes=not several)

    def open_cell(cell: Cell[Any], made: Recording) -> Any:
        if is_stream(cell):  # to go back there, should somebody draw; who does is found as an op
            return cell.current()
        refuse(
            CompileError(
                name,
                "the function reads state, which a kernel cannot",
                got=repr(cell),
                expected="a function of its arguments alone",
                hint="give what changes as an argument",
            )
        )

    made = Recording(open_cell, name)
    given: list[Any] = []
    places: dict[int, int] = {}
    for place, item in enumerate(args):
        if isinstance(item, DType):
            spec = Spec(shape, item)
            places[made.input(sketch, spec)] = place
            given.append(Tensor(spec, sketch))
        else:
            number = isinstance(item, int | float) and not isinstance(item, bool)
            given.append(made.given(item) if number else item)
    before = host_random_state()
    with recorded(made, watching=False):
        with use_device(sketch):
            try:
                out = function(*given)
            except (DeviceError, ShapeError) as error:
                raise _failed(name, error, made.graph(())) from None
        made.raise_caught()
        if host_random_state() != before:
            raise CompileError(
                name,
                "the function draws random numbers of the host, which a kernel cannot",
                expected="a function of its arguments alone",
                hint="f(x, random.random()), with the number as an argument",
            )
        _refuse_changes(name, made)
        outs = out if several else (out,)
        _refuse_others(name, outs, sketch)
        graph = made.graph(tuple([made.value_of(sketch, each.primitive) for each in outs]))
    return _read(name, graph, places, several)


def _refuse_others(name: str, outs: Sequence[Any], sketch: Sketch) -> None:
    """Refuse what is no tensor made from the arguments."""
    for out in outs:
        if type(out) is not Tensor or out.device is not sketch:
            raise CompileError(
                name,
                "a kernel gives one tensor, made from its arguments",
                got=type(out).__name__ if type(out) is not Tensor else f"one on {out.device!r}",
                expected="a tensor",
                hint="one kernel for each result; px.compile, which fuses them",
            )


def _refuse_changes(name: str, made: Recording) -> None:
    """Refuse to leave something in a cell, and to go on in the stream of random numbers."""
    for cell, value in made.outcomes.items():
        if not is_stream(cell):
            raise CompileError(
                name,
                "the function changes state, which a kernel cannot",
                got=repr(cell),
                expected="a function of its arguments alone",
                hint="px.compile, which keeps what is set",
            )
        if value != cell.current():
            raise CompileError(
                name,
                "the function draws random numbers, which a kernel cannot",
                expected="a function of its arguments alone",
                hint="numbers that are drawn outside: f(x, px.random.normal(x.shape))",
            )


def _read(name: str, graph: Graph, places: dict[int, int], several: bool) -> Sketched:
    """The program of a graph whose inputs are the arguments at these places."""
    nodes = needed(graph.nodes, graph.outputs)
    taken = {v for node in nodes for v in values_of(node)} | {*graph.outputs}
    used = tuple(sorted(places[v] for v in taken if v in places))
    dtype = graph.specs[graph.outputs[0]].dtype
    try:
        found: Lowered | CompileError = _lowered(name, graph, nodes, places, several)
    except CompileError as error:
        found = error
    return Sketched(dtype, used, found, graph)


def _lowered(
    name: str, graph: Graph, nodes: Sequence[Node], places: dict[int, int], several: bool
) -> Lowered:
    full = next((graph.specs[v].shape for v in places), ())
    for node in nodes:
        why = arguments_of(node, graph.specs)
        if isinstance(why, str):
            raise in_the_way(name, node, why)
        if graph.specs[node.results[0]].shape != full:
            raise in_the_way(name, node, "its result has another shape than the arguments")
        for v in values_of(node):
            if v in graph.constants:
                raise _from_outside(name, f"an operand of {node.op.name} at {node.line}")
    made = [v for v in dict.fromkeys(graph.outputs) if not (several and v in places)]
    if not made or any(v in places or v in graph.constants for v in made):
        raise CompileError(
            name,
            "the result is no result of an op",
            got="an argument as it is",
            expected="the result of elementwise ops",
            hint="return it outside of the kernel",
        )
    parts = lowered(nodes, graph.specs, made)
    return parts._replace(inputs=tuple(places[v] for v in parts.inputs))


def _form(found: Sketched) -> Any:
    """What two runs have to agree in."""
    graph, parts = found.graph, found.lowered
    numbers = [(f.function, [*map(_plain, f.args)]) for f in graph.numbers]
    guards = [(g.function, [*map(_plain, g.args)], repr(g.value)) for g in graph.guards]
    ops = [
        (node.op, [*map(_plain, node.operands)], [*map(_plain, node.attributes)])
        for node in needed(graph.nodes, graph.outputs)
        if isinstance(parts, Lowered)
    ]
    return found.dtype, found.used, type(parts), numbers, guards, ops


def _plain(item: Any) -> Any:
    if type(item) is Number:
        return Number, item.place
    return item if type(item) is Value else (type(item), repr(item))


def _parted(a: Graph, b: Graph) -> str:
    """Where two runs differ, with the line of the user."""
    for left, right in zip(a.nodes, b.nodes, strict=False):
        mine = left.op, [*map(_plain, (*left.operands, *left.attributes))]
        if mine != (right.op, [*map(_plain, (*right.operands, *right.attributes))]):
            return f"{left.op.name} at {left.line} does another thing for another shape"
    return "another number of ops for another shape"


def _failed(name: str, error: DeviceError | ShapeError, graph: Graph) -> CompileError:
    """What an op means that refuses the shapes of a sketch, of which the user knows nothing."""
    line = line_of_error(error)
    made = graph.constants or any(not values_of(node) for node in graph.nodes)
    if made or isinstance(error, DeviceError):
        return _from_outside(name, f"an operand of {error.op} at {line}")
    return CompileError(
        name,
        f"{error.op} is in the way of one kernel",
        got=f"an op that asks for shapes, at {line}",
        expected="elementwise ops of tensors and numbers",
        hint="px.compile, which fuses what it can",
    )


def _from_outside(name: str, got: str) -> CompileError:
    return CompileError(
        name,
        "a tensor in the function is no argument",
        got=got,
        expected="tensors among the arguments, and plain numbers",
        hint="give the tensor as an argument; a number as 2.0, not px.asarray(2.0)",
    )
