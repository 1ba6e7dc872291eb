"""One recorded run of a function: what goes in, what is done, what comes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from operator import is_
from typing import Any, NamedTuple

from phlox_tensor import Backend, CompileError, DType, PhloxError, Tensor, tree
from phlox_tensor.capture import (
    Cell,
    Graph,
    NeedsValue,
    Number,
    Packed,
    Recording,
    Value,
    plain,
    recorded,
    values_of,
)
from phlox_tensor.no_operand import NoOperand

from .. import refused
from ..trees.layout import (
    Layout,
    NodePart,
    StatePart,
    StaticPart,
    TensorPart,
    flatten,
    levels_of,
    outermost,
)
from ..trees.plain import is_frozen
from ..versions.form import Arguments
from .caught import refusals
from .cells import Inputs, Key, Owner, Pin, Shared, StartAgain
from .steps import Step, steps_of

# Where an output comes from: a value of the graph, a number, an object that is given with its
# state, or a plain number as it is.
Ref = Value | Number | Owner | int | float
_PLAIN = (bool, bytes, str, type(None), DType, Backend, type)


class Place(NamedTuple):
    """What a cell or a result holds: its layout and where its leaves come from or go to."""

    layout: Layout
    refs: tuple[Ref, ...]


class Trace(NamedTuple):
    """A recorded run.

    Attributes:
        arguments: what the arguments bring, by leaf.
        opened: the cells that were read first, with what they held.
        left: the cells that were set, with what they hold in the end.
        kept: the parts of a result that never change, by their place in it; None: the whole.
        copied: digests of host data that became constants, with the line.
    """

    graph: Graph
    arguments: tuple[Ref, ...]
    opened: dict[Key, Place]
    left: dict[Key, Place]
    result: Place
    kept: dict[int | None, Place]
    copied: dict[int, tuple[bytes, str]]


class Run(NamedTuple):
    """What one recorded run gave.

    Attributes:
        leaves: base primitives and numbers of the result.
        arguments: what they have in common from call to call.
        joins: the result goes on with the history of arguments.
        same: results that are tensors among the arguments, by leaf: a result, an argument.
        contents: what the cells held that were read first.
        left: what it leaves in the cells that it set.
        steps: of optimizers, whose results the caller has to keep.
    """

    leaves: list[Any]
    trace: Trace
    arguments: Layout
    joins: bool
    same: dict[int, int]
    contents: dict[Cell[Any], Packed]
    left: dict[Cell[Any], Packed]
    pins: frozenset[Pin]
    steps: tuple[Step, ...]


class PassBack(NamedTuple):
    """What went on in a recording behind the function.

    Attributes:
        forward_ops: how many ops the function itself ran.
    """

    forward_ops: int
    given: tuple[Value, ...]
    place: Place


# Goes on with the arguments that a function got and what it gave; notes what comes in.
CarryBack = Callable[[Recording, Any, Any], tuple[list[Value], Any]]


def run(
    function: Callable[..., Any],
    given: Arguments,
    pins: frozenset[Pin] = frozenset(),
    *,
    catches: bool = False,
) -> Run:
    """Run a function as it is, on other handles of its arguments, and note what it does.

    Args:
        given: what it is called with.
        pins: which numbers it is known to use as what only plain values can be.
        catches: see ``Way``.
    """
    _refuse_hidden(given.layout)
    way = Way(function, given.layout, given.leaves, {}, catches=catches)
    found, _ = runs(way, pins)
    return found._replace(trace=positioned(found.trace, given.order))


class Way(NamedTuple):
    """What is run, on what.

    Attributes:
        contents: what cells held; those of now where they are not among them.
        then: what goes on behind the function, which leaves no state then.
        catches: it may go on where somebody refuses a number.
    """

    function: Callable[..., Any]
    layout: Layout
    leaves: Sequence[Any]
    contents: dict[Cell[Any], Packed]
    then: CarryBack | None = None
    catches: bool = False


def runs(way: Way, pins: frozenset[Pin]) -> tuple[Run, Any]:
    """Run a function, and again where numbers have to be plain values, each one at most once."""
    while True:
        try:
            return _run(way, Inputs(pins))
        except StartAgain as more:
            pins = more.pins


def _run(way: Way, inputs: Inputs) -> tuple[Run, Any]:
    layout, contents, then = way.layout, dict(way.contents), way.then
    opened: dict[Key, Place] = {}
    contained: dict[Cell[Any], tuple[Any, Layout, list[Any]]] = {}
    shared = Shared(contents)

    def open_cell(cell: Cell[Any], made: Recording) -> Any:
        found = shared.read(cell)
        key = inputs.key(cell)
        refs, given = _given(made, inputs, found.layout, found.leaves, key)
        opened[key] = Place(found.layout, refs)
        content = found.layout.build(given)
        contained[cell] = content, found.layout, given
        return content

    made = Recording(open_cell, again=True)
    refs, given = _given(made, inputs, layout, way.leaves, None)
    handles = [*map(outermost, layout.leaves, given)]
    own_args, own_kwargs = layout.build_whole(handles)
    left, outcomes = dict[Key, Place](), dict[Cell[Any], Packed]()
    behind: Any = None
    with recorded(made):
        try:
            with refusals(made, inputs) if way.catches else nullcontext():
                out = way.function(*own_args, **own_kwargs)
        except (NeedsValue, TypeError) as error:
            _start_again(made, inputs, error)
            raise
        finally:  # as after an error in a run that nobody records
            take = partial(_left, made, inputs)
            for cell, place, content in shared.left_by(made, take, back=then is not None):
                left[inputs.key(cell)], outcomes[cell] = place, content
        made.raise_caught()
        if _may_change(layout) and _changed((own_args, own_kwargs), layout, given):
            raise changes("a container among the arguments")
        _refuse_changed(made, contained)
        result_layout, result_leaves, known = flatten(out, given=False)
        if result_layout.transient:
            raise refused.TRANSFORM.of()
        _refuse_hidden(result_layout)
        _refuse_strange(result_layout, layout)
        result = Place(result_layout, _refs(made, inputs, result_layout, result_leaves))
        kept = _kept(made, inputs, out, result)
        if then is not None:
            behind = _pass_back(made, inputs, then, (own_args, own_kwargs), out)
            made.raise_caught()
        places = [result, *left.values(), *([behind[1].place] if behind else [])]
        outputs = tuple(r.number for p in places for r in p.refs if type(r) is Value)
        graph = made.graph(outputs)
        _refuse_dropped(made, graph)
        steps = steps_of(made, own_args, own_kwargs, out)
    trace = Trace(graph, refs, opened, left, result, kept, made.copied)
    joins, same = _related(out, result_layout, known, handles)
    gives = [*map(plain, result_leaves)]
    return Run(gives, trace, layout, joins, same, contents, outcomes, inputs.pins, steps), behind


def _related(
    out: Any, layout: Layout, known: list[Any], given: list[Any]
) -> tuple[bool, dict[int, int]]:
    """Whether a result goes on with the history of arguments, and which ones are arguments."""
    by_id = {id(p): place for place, p in enumerate(given)}
    same = {k: by_id[id(p)] for k, p in enumerate(known) if p is not None and id(p) in by_id}
    # A tracked argument that is a result by itself; in a model it is as good as another leaf.
    hands_on = any(
        type(item) is Tensor
        and id(item.primitive) in by_id
        and any(how != "constant" for _, how in levels_of(item, given=False)[0])
        for item in (out if type(out) in (tuple, list) else [out])
    )
    return hands_on or any(map(has_history, layout.leaves)), same


def _start_again(made: Recording, inputs: Inputs, error: BaseException) -> None:
    """Start again with plain values in the place of numbers, if those may be at fault."""
    pins = inputs.pinned(made, error)
    if pins and not isinstance(error, PhloxError):
        made.outcomes.clear()
        raise StartAgain(inputs.pins | pins) from None


def _refuse_dropped(made: Recording, graph: Graph) -> None:
    """Refuse a run that threw away what it had to return, such as what an optimizer gave."""
    needed = {*graph.outputs}
    for node in graph.live() if made.expected else ():
        needed.update(values_of(node))
    for values, error in made.expected:
        if needed.isdisjoint(values):
            raise error


def _refuse_changed(
    made: Recording, contained: Mapping[Cell[Any], tuple[Any, Layout, list[Any]]]
) -> None:
    """Refuse a cell that holds something else than it did, and was not set."""
    for cell, before in contained.items():
        if cell not in made.outcomes and _changed(*before):
            raise changes("the content of a cell", "cell.set([*old, x]), cell.set({**old, k: x})")


def _may_change(layout: Layout) -> bool:
    """Whether there are containers in arguments, besides what holds those by keyword."""
    nodes = [part for part in layout.parts if isinstance(part, NodePart)]
    open_ones = [part for part in nodes if part.node.static is None and part.type is not tuple]
    return len(open_ones) > 1 or layout.changing


def _changed(tree: Any, layout: Layout, leaves: list[Any]) -> bool:
    """Whether a tree has come to hold something else than it did."""
    now, found, _ = flatten(tree)
    return now is not layout or not all(map(is_, leaves, found))


def changes(name: str, hint: str = "") -> CompileError:
    """The error for a function that changes what is neither a result nor in a cell."""
    hint = hint or f"return {name if ' ' not in name else 'it'}; px.Cell for a count"
    if name.startswith("self.") and name[5:].isidentifier():
        part = name[5:]
        hint = f"self.fast = px.compile(self.step), where step takes {part} and returns it: "
        hint += f"{name}, out = self.fast({name}, x); px.Cell for a count"
    return refused.CHANGES.of(f"{name} holds something else after the call", hint=hint)


def has_history(part: Any) -> bool:
    """Whether a leaf is a tensor that some device has a history of."""
    return isinstance(part, TensorPart) and any(how == "result" for _, how in part.levels)


def _pass_back(
    made: Recording, inputs: Inputs, then: CarryBack, own: Any, out: Any
) -> tuple[Any, PassBack]:
    ahead = len(made.graph(()).nodes)
    given, found = then(made, own, out)
    return found, PassBack(ahead, tuple(given), _place(made, inputs, found, "a gradient"))


def positioned(trace: Trace, order: tuple[int, ...]) -> Trace:
    """The trace with a ref for each leaf of each argument, those that are one at each place."""
    return trace._replace(arguments=tuple(trace.arguments[place] for place in order))


def unnoted(made: Recording, function: Callable[[], Any]) -> Any:
    """Run a function in a recording that nobody asks for, which only says what cells hold."""
    with recorded(made):
        return function()


def _kept(made: Recording, inputs: Inputs, out: Any, result: Place) -> dict[int | None, Place]:
    """What may come back as an argument and need not be taken apart then."""
    if is_frozen(out):
        return {None: result}
    parts = enumerate(out if type(out) is tuple else ())
    return {at: _place(made, inputs, item, given=False) for at, item in parts if is_frozen(item)}


def _place(
    made: Recording, inputs: Inputs, value: Any, where: str = "", *, given: bool = True
) -> Place:
    layout, leaves, _ = flatten(value, where, given=given)
    return Place(layout, _refs(made, inputs, layout, leaves))


def _given(
    made: Recording, inputs: Inputs, layout: Layout, leaves: Sequence[Any], cell: Key | None
) -> tuple[tuple[Ref, ...], list[Any]]:
    """Make leaves into inputs: other handles of their data, numbers, and objects with state."""
    refs: list[Ref] = []
    given: list[Any] = []
    for part, leaf in zip(layout.leaves, leaves, strict=True):
        if isinstance(part, TensorPart):
            device = part.levels[-1][0]
            given.append(made.handle(device, leaf))
            refs.append(Value(made.input(device, given[-1])))
        elif isinstance(part, StatePart):
            given.append(leaf)
            refs.append(inputs.add(leaf))
        else:
            number, value = inputs.number(made, (cell, len(refs)), leaf)
            given.append(value)
            refs.append(number)
    return tuple(refs), given


def _left(made: Recording, inputs: Inputs, value: Any) -> tuple[Place, Packed]:
    layout, leaves, _ = flatten(value, "state in a cell")
    _refuse_hidden(layout)
    refs = _refs(made, inputs, layout, leaves)
    return Place(layout, refs), layout.pack([*map(plain, leaves)])


def _refs(
    made: Recording, inputs: Inputs, layout: Layout, leaves: Sequence[Any]
) -> tuple[Ref, ...]:
    refs: list[Ref] = []
    for part, leaf in zip(layout.leaves, leaves, strict=True):
        if isinstance(part, TensorPart):
            refs.append(Value(made.value_of(part.levels[-1][0], leaf)))
        elif isinstance(part, StatePart):
            owner = inputs.of(leaf)
            if owner is None:
                raise refused.STRANGE.of(type(leaf).__name__, hint=_instead_of(leaf))
            refs.append(owner)
        else:
            refs.append(leaf)
    return tuple(refs)


def _refuse_strange(result: Layout, arguments: Layout) -> None:
    """Refuse to return an object that only this run made."""
    known = [p.value for p in arguments.parts if isinstance(p, StaticPart)]
    for part in result.parts:
        if not isinstance(part, StaticPart) or isinstance(part.value, _PLAIN):
            continue
        if callable(part.value) or any(part.value is item for item in known):
            continue
        raise refused.STRANGE.of(type(part.value).__name__, hint=_instead_of(part.value))


def _refuse_hidden(layout: Layout) -> None:
    """Refuse a tensor that is no part of a tree, and that nobody compares: it would be kept."""
    for part in layout.parts:
        if not isinstance(part, NodePart) or part.node.static is None:
            continue
        compared = {id(item) for item in _tensors_in(part.static)}
        hidden = [item for item in _tensors_in(part.rest) if id(item) not in compared]
        if hidden:
            got = f"a tensor of shape {hidden[0].shape} in what flatten gives beside the children"
            raise refused.HIDDEN.of(f"{got}, and static leaves out", name=part.type.__name__)


def _tensors_in(rest: Any) -> list[Tensor[Any]]:
    """The tensors in constants of a node, in containers among them, and in attributes of those."""
    found: list[Tensor[Any]] = []
    work, seen = [rest], set[int]()
    for item in work:
        if isinstance(item, Tensor):
            found.append(item)
        elif id(item) not in seen and not tree.is_plain(item):
            seen.add(id(item))
            if isinstance(item, list | tuple | set | frozenset):
                work += item
            elif isinstance(item, dict):
                work += item.values()
            elif item is rest:
                work += tree.attributes_of(item).values()
    return found


def _instead_of(value: Any) -> str:
    """What to return in the place of an object that only one run made."""
    if isinstance(value, AsyncGenerator | Coroutine | Iterator):
        return "a list of what it gives, return [*parts]"
    if isinstance(value, NoOperand):  # gradients by their tensors, which a call of its own may have
        return "px.value_and_grad(loss_of)(model), which gives gradients as a tree"
    if hasattr(value, "__array__"):
        return "px.asarray(x) for an array that is given"
    return "a dict of what it holds; or phlox_tensor.tree.register(type, flatten, rebuild)"


def makes_modules(found: Run, form: Mapping[str, Layout]) -> bool:
    """Whether modules that are no arguments are all that a run leaves behind."""
    given = {*form.values()}
    for place in () if found.left else found.trace.kept.values():
        last = place.layout.parts[-1]
        known = place.layout in given and {*place.refs} <= {*found.trace.arguments}
        if isinstance(last, NodePart) and last.node.whole and not known:
            return True
    return False
