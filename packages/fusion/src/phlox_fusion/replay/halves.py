"""Compiled functions as parts of larger graphs: a forward half, one step, a backward half."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import Any, Final, NamedTuple, final

from phlox_tensor import Backend, Tensor, is_inside
from phlox_tensor.capture import (
    RECORDINGS,
    Cell,
    Graph,
    Number,
    Packed,
    Recording,
    Value,
    recording,
    values_of,
)

from .. import refused
from ..checking.check import agree, agree_on_a_run, in_parts, outcome_of
from ..locks import KEEPING
from ..record import trace as _trace
from ..record.agree import difference, fits, same_refs
from ..record.cells import cells_of, packed
from ..record.trace import CarryBack, PassBack, Ref, Run, Trace
from ..trees.flat import outer
from ..trees.layout import Layout, TensorPart, flatten, levels_of
from ..trees.static import NUMBERS
from .replay import MISS, Replay, backward_of, forward_of

Mask = tuple[bool, ...]  # which results have a cotangent
Carry = Callable[[list[Any], list[Any]], list[Any]]
_MOST_HALVES: Final = 16  # by what a pass back asked of numbers; each costs a look at a call


class Half(NamedTuple):
    """The two halves for some results that have cotangents.

    Attributes:
        trace: the run that they are the halves of.
        forward: gives results and what ``backward`` takes.
        backward: gives base primitives of gradients.
    """

    mask: Mask
    trace: Trace
    forward: Replay
    backward: Carry
    layout: Layout
    texts: tuple[str, str]


class OpenCall(NamedTuple):
    """One call, for as long as its graph lives.

    Attributes:
        given: outermost primitives and numbers of the arguments, none twice.
        saved: what the forward half kept.
        half: that half; None where the function itself ran.
    """

    given: tuple[Any, ...]
    contents: dict[Cell[Any], Packed]
    context: Context
    saved: list[Any]
    half: Half | None


class Level(NamedTuple):
    """A device that records results.

    Attributes:
        operands: which arguments it knows, and how each is brought there from outside.
        results: which results are its own.
        plain: no device inside of it records these arguments.
    """

    device: Backend
    operands: tuple[tuple[int, tuple[Backend, ...]], ...]
    results: tuple[int, ...]
    plain: bool


@final
class Join:
    """How the results of one version are joined to the graph that its arguments belong to."""

    def __init__(
        self,
        function: Callable[..., Any],
        found: Run,
        order: tuple[int, ...],
        *,
        check: bool = False,
    ) -> None:
        """Find the devices that record.

        Args:
            order: the order of the leaves that replays are given.
            check: compare all bits of each half with those of the function.
        """
        self._function: Final = function
        self._check: Final = check
        self._order: Final = order
        self._trace: Final = found.trace
        self._arguments: Final = found.arguments
        self._first: Final = tuple(
            order.index(place) for place in range(len(found.arguments.leaves))
        )
        self._alike: Final = self._first == tuple(range(len(order)))
        self._same: Final = found.same
        self._pins: Final = found.pins
        self._layout: Final = found.trace.result.layout
        parts = [p for p in self._layout.leaves if isinstance(p, TensorPart)]
        devices = {d: None for p in parts for d, how in p.levels if how == "result"}
        # From the innermost one.
        self._levels: Final = [self._level(d) for d in sorted(devices, key=_depth)]
        for inner, outer_one in zip(self._levels, self._levels[1:], strict=False):
            if not is_inside(inner.device, outer_one.device):
                raise refused.UNRELATED.of(f"{inner.device!r} and {outer_one.device!r}")
        self._ways: Final = [_ways(part, [*devices]) for part in self._layout.leaves]
        self._plain: Replay | None = None
        self._waiting: list[tuple[Mask, Trace, PassBack]] = []
        self._halves: list[Half] = []  # the last one that was found first

    def _level(self, device: Backend) -> Level:
        operands, tracked, inside = [], False, False
        for place, part in enumerate(self._arguments.leaves):
            levels = part.levels if isinstance(part, TensorPart) else ()
            own = [each for each, _ in levels]
            if device not in own:
                continue
            at = own.index(device)
            operands.append((place, tuple(own[:at])))
            tracked = tracked or levels[at][1] != "constant"
            inside = inside or any(how != "constant" for _, how in levels[at + 1 :])
        if not tracked:
            raise refused.TRACKED.of(f"a tensor on {device!r} that the function closes over")
        results = [
            place
            for place, part in enumerate(self._layout.leaves)
            if isinstance(part, TensorPart) and (device, "result") in part.levels
        ]
        return Level(device, tuple(operands), tuple(results), not inside)

    @property
    def texts(self) -> list[str]:
        """The halves that there are, as Python."""
        return [text for half in self._halves for text in half.texts]

    def ready(self) -> tuple[Replay, str]:
        """Return the replay of only the function, and its text."""
        self._plain, text = forward_of(self._trace, ())
        return self._plain, text

    # Forward

    def recorded(self, found: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a recorded run with the history that it has."""
        call = OpenCall(self._given(args, kwargs), found.contents, copy_context(), [], None)
        return self._joined(found.leaves, call)

    def run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], undo: list[Any]
    ) -> Any:
        """Replay the forward half, and return the result with the history that it has."""
        out: Any = MISS
        halves = self._halves
        for half in (*(h for h in halves if h.mask == halves[0].mask), None):
            replay = self._plain if half is None else half.forward
            assert replay is not None
            found = outcome_of(replay, leaves, undo, self._trace) if self._check else None
            out = replay(leaves, undo) if found is None else found.out
            if out is not MISS:
                break
        else:
            return out
        results, saved, contents = out
        cells = cells_of(self._trace.opened, self._trace.arguments, leaves)
        held = dict(zip(cells, contents, strict=True))
        call = OpenCall(self._given(args, kwargs), held, copy_context(), saved, half)
        if found is not None:
            again = call._replace(contents=found.before)
            run, _ = self._run_again(again, lambda *_: ([], ()))
            agree_on_a_run(found, self._layout.pack(results), run, self._trace)
        return self._joined(results, call)

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for item in (*args, *kwargs.values()):
            cls = type(item)
            if cls is Tensor:
                found.append(item.primitive)
            elif cls in NUMBERS:
                found.append(item)
            elif item is not None and cls is not bool and cls is not str:
                found += outer(item)
        return tuple(found) if self._alike else tuple([found[place] for place in self._first])

    def _joined(self, leaves: list[Any], call: OpenCall) -> Any:
        """The result with its history: leaves are brought outwards, device by device."""
        given = call.given
        raised = [*leaves]
        for at, (device, operands, results, _) in enumerate(self._levels):
            own = []
            for place, way in operands:
                primitive = given[place]
                for outside in way:
                    primitive = outside.lower(primitive)
                own.append(primitive)
            for place in results:
                for lift in self._ways[place][device]:
                    raised[place] = lift(raised[place])
            values = [raised[place] for place in results]
            made = device.as_one_step("compile", own, values, _Pull(self, call, at))
            for place, primitive in zip(results, made, strict=True):
                raised[place] = primitive
        for place, ways in enumerate(self._ways):
            for lift in ways[None]:
                raised[place] = lift(raised[place])
        for place, argument in self._same.items():
            raised[place] = given[argument]
        return self._layout.build_whole(raised)

    # Backward

    def base(self, level: int) -> Backend:
        """The device below all others at one that records."""
        return self._levels[level].device.base

    def pull(self, call: OpenCall, level: int, cotangents: list[Any], again: bool) -> Any:
        """Carry cotangents of the results at one device back to the arguments there."""
        device, _, _, plain = self._levels[level]
        mask = tuple([cotangent is not None for cotangent in cotangents])
        if level or not plain or not _plain_here(device.inner, cotangents):
            return self._as_written(call, level, cotangents)
        half = call.half
        if half is None or half.mask != mask:
            return self._again(call, device, mask, cotangents)
        saved = [*call.saved] if again else call.saved
        found = half.backward(saved, [levels_of(c)[1] for c in cotangents if c is not None])
        if self._check:
            own = in_parts(self._again(call, device, mask, cotangents))
            agree("a gradient", half.layout.pack(found), own, self._trace)
        return half.layout.build(found)

    def _again(self, call: OpenCall, device: Backend, mask: Mask, cotangents: list[Any]) -> Any:
        """Record the function and the pass after it; the second time make halves of it."""

        def then(made: Recording, own: Any, out: Any) -> tuple[list[Value], Any]:
            given, seeds = list[Value](), list[Any]()
            for cotangent in cotangents:
                if cotangent is None:
                    seeds.append(None)
                    continue
                layout, leaves, _ = flatten(cotangent)
                base = cotangent.device.base
                handle = made.handle(base, leaves[0])
                given.append(Value(made.input(base, handle)))
                seeds.append(layout.build([handle]))
            return given, self._pulled(device, 0, own, out, seeds)

        found, (out, pulled) = self._run_again(call, then)
        self._note(found.trace, pulled, mask)
        return out

    def _run_again(self, call: OpenCall, then: CarryBack) -> tuple[Run, Any]:
        """The run, and what came out after the function and how."""

        def run() -> tuple[Run, Any]:
            pairs = zip(self._arguments.leaves, call.given, strict=True)
            leaves = [_innermost(part, item) for part, item in pairs]
            way = _trace.Way(self._function, self._arguments, leaves, call.contents, then)
            return _trace.runs(way, self._pins)

        return call.context.copy().run(run)

    def _note(self, trace: Trace, pulled: PassBack, mask: Mask) -> None:
        with KEEPING:
            for at, half in enumerate(self._halves):
                if half.mask == mask and fits(half.trace, trace):  # of an earlier call
                    self._halves = [half, *self._halves[:at], *self._halves[at + 1 :]]
                    return
            alike = [w for w in self._waiting if w[0] == mask and fits(w[1], trace)]
            if not alike:
                self._waiting = [(mask, trace, pulled), *self._waiting[: _MOST_HALVES - 1]]
                return
            _, first, before = alike[0]
            self._waiting = [w for w in self._waiting if w[1] is not first]
            other = difference(first, trace)
            if other is None and (
                before.place.layout is not pulled.place.layout
                or not same_refs(before.place.refs, pulled.place.refs)
            ):
                other = "gradients had another form, or came about in another way"
            if other is not None:
                raise refused.RUNS_DIFFER.of(other)
            made = _halves(mask, _trace.positioned(trace, self._order), pulled)
            self._halves = [made, *self._halves[: _MOST_HALVES - 1]]

    def _as_written(self, call: OpenCall, level: int, cotangents: list[Any]) -> Any:
        """Let the ops run one by one, for what records or batches the pass."""
        device = self._levels[level].device

        def run() -> tuple[Any, Any]:
            parts = zip(self._arguments.leaves, call.given, strict=True)
            own = self._arguments.build_whole([_own(device, *each) for each in parts])
            return own, self._function(*own[0], **own[1])

        if call.contents:
            if recording() is not None:
                raise refused.STATE_AGAIN.of("random numbers, or a Cell, in the function")
            made = Recording(lambda cell, _: _content(call.contents, cell))
            own, out = call.context.copy().run(_trace.unnoted, made, run)
        else:
            own, out = call.context.copy().run(run)
        return self._pulled(device, level, own, out, cotangents)

    def _pulled(
        self, device: Backend, level: int, own: Any, out: Any, cotangents: list[Any]
    ) -> Any:
        layout, _, known = flatten(out, given=False)
        results = []
        for place in self._levels[level].results:
            found = _at(device, layout.leaves[place], known[place])
            results.append(Tensor[Any](found, device))
        layout, _, known = flatten(own)
        operands = [_at(device, p, k) for p, k in zip(layout.leaves, known, strict=True)]
        return tuple(device.pull_back(results, cotangents, [p for p in operands if p is not None]))


@final
class _Pull:
    """What a step keeps: how to go back through one call."""

    __slots__ = ("_call", "_join", "_level")

    def __init__(self, join: Join, call: OpenCall, level: int) -> None:
        self._join, self._call, self._level = join, call, level

    def __call__(self, cotangents: list[Any], again: bool) -> Any:
        """Return for each argument what belongs to it."""
        return self._join.pull(self._call, self._level, cotangents, again)

    def kept(self) -> Iterator[Tensor]:
        """The arrays of the base device that it holds, its operands aside: ``graph`` asks."""
        base = self._join.base(self._level)
        for item in (*self._call.saved, *self._call.given):
            try:
                base.spec_of(item)
            except (AttributeError, TypeError):
                continue  # a number, or an operand of a device around the base
            yield Tensor(item, base)


def _halves(mask: Mask, trace: Trace, pulled: PassBack) -> Half:
    """Part a trace of a function and the pass after it."""
    whole = trace.graph
    grads = tuple(ref.number for ref in pulled.place.refs if type(ref) is Value)
    given = tuple(value.number for value in pulled.given)
    behind = Graph(
        (), whole.constants, whole.nodes[pulled.forward_ops :], grads, (), (), whole.specs
    )
    nodes = behind.live()
    made = {v for node in nodes for v in node.results}
    taken = dict.fromkeys(v for node in nodes for v in values_of(node))
    taken.update(dict.fromkeys(grads))
    values = tuple(v for v in taken if v not in made | whole.constants.keys() | {*given})
    numbers = {
        item.place: item
        for node in nodes
        for item in (*node.operands, *node.attributes)
        if type(item) is Number
    }
    saved: list[Ref] = [*map(Value, values), *numbers.values()]
    behind = behind._replace(inputs=(*values, *given), nodes=nodes)
    backward, back_text = backward_of(behind, saved, pulled.given, pulled.place.refs)
    own = {ref.number for ref in trace.result.refs if type(ref) is Value}
    own |= {r.number for place in trace.left.values() for r in place.refs if type(r) is Value}
    graph = whole._replace(
        inputs=tuple(v for v in whole.inputs if v not in given),
        nodes=whole.nodes[: pulled.forward_ops],
        outputs=(*own, *values),
    )
    forward, text = forward_of(trace._replace(graph=graph), saved)
    return Half(mask, trace, forward, backward, pulled.place.layout, (text, back_text))


# Tensors and their devices


def _depth(device: Backend) -> int:
    return 0 if device.inner is None else 1 + _depth(device.inner)


def _ways(part: Any, devices: list[Backend]) -> dict[Backend | None, list[Callable[..., Any]]]:
    """How a leaf is brought outwards: up to each device that records it, and to the outside."""
    ways: dict[Backend | None, list[Callable[..., Any]]] = {}
    steps: list[Callable[..., Any]] = []
    for device, standing in part.levels[-2::-1] if isinstance(part, TensorPart) else ():
        if standing == "result" and device in devices:
            ways[device], steps = steps, []
        else:
            steps.append(device.leaf if standing == "leaf" else device.lift)
    ways[None] = steps
    return ways


def _at(device: Backend, part: Any, primitive: Any) -> Any:
    """The primitive of one device in a tensor; None where the device is not among its own."""
    if not isinstance(part, TensorPart):
        return None
    for own, _ in part.levels:
        if own is device:
            return primitive
        if own.inner is not None:
            primitive = own.lower(primitive)
    return None


def _innermost(part: Any, primitive: Any) -> Any:
    """The primitive of the base device in a tensor; a number as it is."""
    return _at(part.levels[-1][0], part, primitive) if isinstance(part, TensorPart) else primitive


def _own(device: Backend, part: Any, primitive: Any) -> Any:
    """The outermost primitive of an argument that starts its history on one device anew."""
    inside = _at(device, part, primitive)
    if inside is None:
        return primitive
    levels = [*part.levels]
    while levels.pop()[0] is not device:
        pass
    own = dict(part.levels)[device]
    out = inside if own == "constant" else device.leaf(device.lower(inside))
    for outside, _ in reversed(levels):
        out = outside.lift(out)
    return out


def _plain_here(inside: Backend | None, cotangents: list[Any]) -> bool:
    """Whether nothing records or batches a pass, so that ops of the base device are all."""
    for cotangent in cotangents:
        if cotangent is not None and (cotangent.device is not inside or _moves(cotangent)):
            return False
    return not RECORDINGS.count or recording() is None


def _moves(tensor: Tensor[Any]) -> bool:
    """Whether some device records what becomes of a tensor."""
    return any(how != "constant" for _, how in levels_of(tensor)[0])


def _content(contents: dict[Cell[Any], Packed], cell: Cell[Any]) -> Any:
    found = contents.get(cell) or packed(cell)
    return found.make(found.layout, found.leaves)
