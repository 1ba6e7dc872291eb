"""``graph``: the ops behind a tensor, as data, as text and as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from types import FunctionType, MethodType
from typing import Any, Final, final

from phlox_tensor import Backend, GradientError, Tensor, tree

from ._checkpoint_strategies import Recipe
from ._graph import LEAF, Node, Primitive
from ._lanes import Lanes
from ._plan import OpPlan

Shape = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class KeptArray:
    """An array that the graph keeps alive for the backward pass.

    Attributes:
        number: the number of the step that keeps it, the first if several do.
        op: what the step is.
        name: what the array is to it: an operand, the result, or what a function closed over.
        shape: its sizes.
        dtype: its element type.
        nbytes: bytes of its elements.
        again: it is not used as it is: what the step needs is computed from it again.
    """

    number: int
    op: str
    name: str
    shape: Shape
    dtype: str
    nbytes: int
    again: bool = False


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A recorded step, or a leaf.

    Attributes:
        number: its place in the order of recording.
        op: the op, or ``"leaf"``.
        shape: the shape of the result.
        parents: numbers of the steps that a gradient goes on to.
        kept: the arrays that it keeps, whoever else keeps them too.
    """

    number: int
    op: str
    shape: Shape
    parents: tuple[int, ...]
    kept: tuple[KeptArray, ...]


@final
@dataclass(frozen=True, slots=True)
class Graph:
    """The graph behind a tensor; ``graph`` makes it, and it holds no data.

    Attributes:
        steps: in the order of recording.
    """

    steps: tuple[Step, ...]
    _kept: tuple[KeptArray, ...]

    def kept(self) -> list[KeptArray]:
        """Every array that the graph keeps, once each, the largest first."""
        return sorted(self._kept, key=lambda k: (-k.nbytes, k.number))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that the graph keeps; views of one array count for each."""
        return sum(k.nbytes for k in self._kept)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join([*map(_line, self.steps), f"keeps {self.nbytes:,} bytes"])

    def svg(self) -> str:
        """Return the graph as a picture: leaves above, a row for each distance from them."""
        return _svg(self.steps)

    def _repr_svg_(self) -> str:
        return self.svg()


def graph(*tensors: Tensor[Any]) -> Graph:
    """Return what was recorded behind tensors: steps, shapes, and the arrays that are kept.

    ``str(graph(loss))`` is a table, ``graph(loss).svg()`` a picture, ``graph(loss).kept()`` lists
    what holds memory until the backward pass.

    Raises:
        GradientError: when nothing was recorded for one.

    Example:
        >>> import phlox_tensor as pt
        >>> from phlox_autodiff import Autodiff
        >>> w = pt.asarray([1.0, 2.0], device=Autodiff("numpy")).require_grad()
        >>> print(graph((w * w).sum()))
        0 leaf (2,)
        1 multiply (2,) <- 0, 0  keeps x1 float32[2], x2 float32[2]
        2 sum () <- 1
        keeps 8 bytes
    """
    if not tensors:
        raise GradientError("graph", "no tensors were given", hint="px.graph(loss)")
    roots: list[Node] = []
    for tensor in tensors:
        item = tensor
        while type(item.primitive) is not Primitive and item.device.inner is not None:
            inside = getattr(item.primitive, "value", None)
            item = item.inner() if inside is None else Tensor(inside, item.device.inner)
        node = item.primitive.node if type(item.primitive) is Primitive else None
        if node is None:
            raise GradientError(
                "graph",
                "nothing was recorded for this tensor",
                expected="a result of a tensor on which require_grad() was called",
            )
        roots.append(node)
    found = dict.fromkeys(roots)
    for node in (work := list(found)):  # which grows meanwhile
        for parent in node.parents:
            if parent is not None and parent not in found:
                found[parent] = None
                work.append(parent)
    ordered = sorted(found, key=lambda node: node.id)
    numbers = {node: i for i, node in enumerate(ordered)}
    arrays: dict[int, KeptArray] = {}
    steps = []
    for node, number in numbers.items():
        op = "leaf" if node.plan is LEAF else node.plan.name
        kept = {}
        for name, value, inner, again in _saved(node):
            array = _array(number, op, name, value, inner, again)
            kept[id(value), name] = array
            arrays.setdefault(id(value), array)
        parents = tuple(numbers[p] for p in node.parents if p is not None)
        steps.append(Step(number, op, tuple(node.shape), parents, tuple(kept.values())))
    return Graph(tuple(steps), tuple(arrays.values()))


def _array(number: int, op: str, name: str, value: Any, inner: Backend, again: bool) -> KeptArray:
    shape, dtype = inner.spec_of(value)
    nbytes = dtype.itemsize
    for n in shape:
        nbytes *= n
    return KeptArray(number, op, name, tuple(shape), dtype.name, nbytes, again)


# What a node holds: name, primitive, its device, and whether it is only computed from.
_Found = tuple[str, Any, "Backend", bool]


def _saved(node: Node) -> Iterator[_Found]:
    plan = node.plan
    if not isinstance(plan, OpPlan):
        for name, item in plan.kept(node):
            for inside, tensor in _tensors(item, name):
                yield inside, tensor.primitive, tensor.device, False
        return
    signature = plan.op.signature
    names = [o.name for o in signature.operands] + [r.name for r in signature.results]
    for place, item in zip(plan.pool, node.saved, strict=False):
        if place < len(names):
            yield from _primitives(names[place], item, plan.inner)


def _primitives(name: str, item: Any, inner: Backend, *, again: bool = False) -> Iterator[_Found]:
    if isinstance(item, Recipe):
        if item.call is None:
            yield name, item.value, inner, again
            return
        for argument in item.call[1]:
            yield from _primitives(name, argument, inner, again=True)
    elif type(item) is tuple:
        for part in item:
            yield from _primitives(name, part, inner, again=again)
    elif item is not None and not isinstance(item, bool | int | float | str):
        try:
            inner.spec_of(item)
        except (AttributeError, TypeError):
            return  # an attribute, such as a data type
        yield name, item, inner, again


def _tensors(item: Any, name: str = "saved", depth: int = 0) -> Iterator[tuple[str, Tensor[Any]]]:
    """The tensors in what a step of no op keeps: arguments, and what functions close over."""
    if depth > _DEPTH:
        return
    if isinstance(item, Tensor):
        yield name, _bare(item)
    elif isinstance(item, Primitive):
        return  # a constant that somebody else holds
    elif isinstance(item, partial):
        yield from _tensors((item.func, *item.args, *item.keywords.values()), name, depth + 1)
    elif isinstance(item, MethodType):
        yield from _tensors((item.__self__, item.__func__), name, depth + 1)
    elif isinstance(item, FunctionType):
        for inside, part in _captured(item):
            yield from _tensors(part, inside, depth + 1)
    elif tree.is_node(item):
        for inside, part in tree.children(item):
            yield from _tensors(part, name if inside.isdigit() else inside, depth + 1)


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function closes over, and its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # a cell that nothing was put into
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield "default", default


def _bare(tensor: Tensor[Any]) -> Tensor[Any]:
    """The tensor without its history and lanes: the array that others may keep too."""
    while type(tensor.primitive) in (Primitive, Lanes) and tensor.device.inner is not None:
        tensor = Tensor(tensor.primitive.value, tensor.device.inner)
    return tensor


# Closures of closures: user functions inside of decorated ones, and no loop.
_DEPTH: Final = 8


def _line(step: Step) -> str:
    parents = f" <- {', '.join(map(str, step.parents))}" if step.parents else ""
    kept = ", ".join(
        f"{k.name}{' again from' if k.again else ''} {k.dtype}{list(k.shape)}" for k in step.kept
    )
    return f"{step.number} {step.op} {step.shape}{parents}{f'  keeps {kept}' if kept else ''}"


# The picture, in pixels.
_WIDTH, _HEIGHT, _GAP, _ROW = 150, 36, 20, 76


def _svg(steps: tuple[Step, ...]) -> str:
    rows: dict[int, int] = {}
    columns: dict[int, int] = {}
    used: dict[int, int] = {}
    for step in steps:
        row = rows[step.number] = 1 + max((rows[p] for p in step.parents), default=-1)
        columns[step.number] = used.get(row, 0)
        used[row] = used.get(row, 0) + 1
    place = {
        s.number: (_GAP + columns[s.number] * (_WIDTH + _GAP), _GAP + rows[s.number] * _ROW)
        for s in steps
    }
    width = _GAP + max(used.values(), default=1) * (_WIDTH + _GAP)
    height = _GAP + len(used) * _ROW
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="monospace" font-size="11">'
    ]
    for step in steps:
        x, y = place[step.number]
        for parent in dict.fromkeys(step.parents):
            px, py = place[parent]
            out.append(
                f'<line x1="{px + _WIDTH // 2}" y1="{py + _HEIGHT}" x2="{x + _WIDTH // 2}" '
                f'y2="{y}" stroke="#888"/>'
            )
    for step in steps:
        x, y = place[step.number]
        fill = "#dfd" if step.op == "leaf" else "#fed" if step.kept else "#eee"
        nbytes = sum(k.nbytes for k in step.kept)
        label = escape(f"{step.number} {step.op}")
        detail = escape(f"{step.shape}{f' {nbytes:,} B' if nbytes else ''}")
        out.append(
            f'<g><title>{escape(_line(step))}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="4" fill="{fill}" stroke="#444"/>'
            f'<text x="{x + 6}" y="{y + 15}">{label}</text>'
            f'<text x="{x + 6}" y="{y + 29}">{detail}</text></g>'
        )
    return "\n".join([*out, "</svg>"])
