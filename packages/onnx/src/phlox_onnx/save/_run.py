"""Runs of a module that are noted, and what several of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, final

from phlox_nn import Module
from phlox_tensor import Backend, CompileError, Tensor, tree
from phlox_tensor.capture import Graph, Node, Recording, recorded, values_of
from phlox_tensor.scope import watching

from .._errors import OnnxError
from ._open import Inputs
from ._sizes import Runs
from ._writer import EVERY


@final
class Run:
    """A noted run.

    Attributes:
        graph: what ran.
        names: paths of parameters, by value.
        where: the module that asked for each op.
        device: the base device.
        structure: how the results stand in each other.
    """

    def __init__(
        self,
        graph: Graph,
        names: dict[int, str],
        where: list[str],
        device: Backend,
        structure: object,
    ) -> None:
        """Keep what was found."""
        self.graph, self.names, self.where = graph, names, where
        self.device, self.structure = device, structure

    def place(self, i: int) -> str:
        """Module and line of an op."""
        return f"{self.where[i]}, {self.graph.nodes[i].line}"


def run(
    net: Module,
    inputs: Inputs,
    tensors: list[Any],
    params: Mapping[str, Tensor[Any]],
    device: Backend,
    positions: int = 0,
) -> Run:
    """Run a module and note it; ``device`` is what the tensors are on.

    Args:
        net: the module.
        inputs: how tensors stand in its arguments.
        tensors: what it is run with.
        params: its parameters, by path.
        device: where all of them are.
        positions: rows of the tables of positions, or 0 for those that are read.

    Raises:
        OnnxError: when it reads values or changes its state, or gives what is no tensor.
    """

    def cell(_: Any, __: Any) -> NoReturn:
        raise OnnxError("save", "a module with state that a call changes", got=type(net).__name__)

    base = device.base
    made = Recording(cell)
    made.positions = positions
    given: list[Any] = []
    for tensor in tensors:
        if tensor is None:
            given.append(None)
            continue
        primitive = made.handle(base, tensor.primitive)
        made.input(base, primitive)
        given.append(Tensor[Any](primitive, tensor.device))
    where: list[str] = []
    inside: list[str] = []

    def mark() -> None:
        where.extend([inside[-1] if inside else type(net).__name__] * (made.count - len(where)))

    def around(_: object, path: str, call: Callable[[], Any]) -> Any:
        mark()
        inside.append(path or type(net).__name__)
        try:
            return call()
        finally:
            mark()
            inside.pop()

    with recorded(made), watching(around):
        try:
            found = net(*inputs.arguments(given))
            made.raise_caught()
        except CompileError as error:
            raise OnnxError("save", "what runs hangs on a value", got=str(error)) from error
        leaves, structure = tree.flatten(found)
        outputs = [leaf for leaf in leaves if leaf is not None]
        odd = [type(t).__name__ for t in outputs if not isinstance(t, Tensor)]
        if odd or not outputs:
            got = ", ".join(odd) or "nothing"
            raise OnnxError("save", "a result that is no tensor", got=got, expected="tensors")
        values = tuple(made.value_of(t.device.base, t.primitive) for t in outputs)
        names = {made.value_of(t.device.base, t.primitive): path for path, t in params.items()}
        graph = made.graph(values)
        mark()
    return Run(graph, names, where, base, structure)


def refuse_unlike(runs: list[Run], sizes: Runs) -> None:
    """Refuse runs that do not do the same one after the other; say which size may not be open."""
    first = runs[0]
    one = sizes.one
    for k, other in enumerate(runs[1:], 1):
        a, b = first.graph.nodes, other.graph.nodes
        for i in range(max(len(a), len(b))):
            if i < min(len(a), len(b)) and _kind(a[i]) == _kind(b[i]):
                continue
            got = (
                f"{_shown(first, i)} for {sizes.shown(0)}, {_shown(other, i)} for {sizes.shown(k)}"
            )
            raise _differ(
                f"the ops differ from {one} to {one}", got, sizes.without(sizes.raised(k))
            )
        if first.structure != other.structure:
            got = f"{first.structure} and {other.structure}"
            raise _differ(
                f"the results differ from {one} to {one}", got, sizes.without(sizes.raised(k))
            )


def _differ(what: str, got: str, hint: str) -> OnnxError:
    return OnnxError("save", what, got=got, expected=EVERY, hint=hint)


def _kind(node: Node) -> tuple[Any, ...]:
    return node.op.name, len(node.results), len(values_of(node))


def _shown(run: Run, i: int) -> str:
    if i >= len(run.graph.nodes):
        return "nothing"
    node = run.graph.nodes[i]
    count = f" into {len(node.results)}" if len(node.results) > 1 else ""
    return f"{node.op.name}{count} in {run.place(i)}"


def needed(graph: Graph) -> set[int]:
    """The values that the outputs hang on."""
    found = set(graph.outputs)
    for node in reversed(graph.nodes):
        if not found.isdisjoint(node.results):
            found.update(values_of(node))
    return found
