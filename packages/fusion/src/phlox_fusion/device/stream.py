"""Streams: ops that wait until somebody needs a result, and then run as programs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import RLock
from typing import Any, Final, NamedTuple, final
from weakref import ref

from phlox_tensor import Backend, DeviceError, DisagreementError, Entry, Op, Spec
from phlox_tensor.capture import NOBODY, Node, Number, Value, line_of_user, needed, values_of

from ..checking.bisect import parting, program_parts
from ..checking.fallback import Fallbacks
from ..plan.items import Fused, Known, Step, gives, last_uses, run_steps, takes
from ..plan.plan import planned

_MOST_PLANS: Final = 1024


@final
class Deferred:
    """A primitive of a lazy device: of the device inside, or to be made.

    Attributes:
        value: the primitive of the device inside; None while it waits.
        stream: where it waits, else None.
    """

    __slots__ = ("__weakref__", "place", "spec", "stream", "value")

    def __init__(self, spec: Any, value: Any, stream: Stream | None, place: int = -1) -> None:
        self.spec = spec
        self.value = value
        self.stream = stream
        self.place = place


# What runs, in order, and which values nobody needs after each.
Tasks = tuple[tuple[Step, tuple[int, ...]], ...]


@final
class Plans:
    """The plans of a device, by what waits and what of it is needed.

    Attributes:
        check: whether streams run each program beside its ops.
    """

    def __init__(self, *, check: bool) -> None:
        self.check: Final = check
        self.fallbacks: Final = Fallbacks("fusion")
        self._kept: dict[Hashable, Tasks] = {}
        self.made = 0

    def find(self, key: Hashable, make: Callable[[], Tasks]) -> Tasks:
        """Return a plan, made now where there is none."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _MOST_PLANS:
                self._kept.clear()
            found = self._kept[key] = make()
            self.made += 1
        return found


@final
class Stream:
    """The ops of one thread on one device that wait.

    It never holds more bytes than the ops would, had they run at once: nothing else takes memory
    while they wait, and what their plan holds is compared with what they would hold one by one.
    """

    def __init__(self, device: Backend, plans: Plans, most: int) -> None:
        """Start empty."""
        self.lock: Final = RLock()
        self._device: Final = device
        self._plans: Final = plans
        self._most: Final = most
        self._clear()

    def _clear(self) -> None:
        self._specs: list[Spec] = []
        self._inputs: list[tuple[int, Any, ref[Deferred]]] = []  # what is taken from outside
        self._known: dict[int, int] = {}  # inputs by the id of their primitives, kept meanwhile
        self._nodes: list[Node] = []
        self._results: list[ref[Deferred]] = []
        self._numbers: list[int | float] = []
        self._key: list[Hashable] = []

    def put(self, op: Op, entry: Entry, count: int, args: Sequence[Any], spec: Spec) -> Deferred:
        """Let an op wait, and return what stands for its result."""
        with self.lock:
            operands = tuple([self._operand(item) for item in args[:count]])
            attributes = tuple([self._number(item) for item in args[count:]])
            place = len(self._specs)
            self._specs.append(spec)
            made = Deferred(spec, None, self, place)
            line = line_of_user() if self._plans.check else ""
            node = Node(op, self._device, entry, operands, attributes, (place,), line)
            self._nodes.append(node)
            self._results.append(ref(made))
            self._key.append((op, *map(_key, operands), *map(_key, attributes), spec))
            if len(self._nodes) >= self._most:
                self.settle()
            return made

    def _operand(self, item: Any) -> Any:
        if type(item) is not Deferred:
            return self._number(item)
        if item.stream is self:
            return Value(item.place)
        place = self._known.get(id(item.value))
        if place is None:
            place = self._known[id(item.value)] = len(self._specs)
            self._specs.append(item.spec)
            self._inputs.append((place, item.value, ref(item)))
            self._key.append(item.spec)
        return Value(place)

    def _number(self, item: Any) -> Any:
        if type(item) is int or type(item) is float:
            self._numbers.append(item)
            return Number(item, len(self._numbers) - 1, NOBODY)
        return item

    # Running

    def flush(self) -> None:
        """Run what waits, as far as anybody needs it, and raise what the first op raised."""
        error = self.settle()
        if error is not None:
            raise error.with_traceback(None)

    def settle(self) -> Exception | None:
        """Run what waits, as far as anybody needs it, and return what the first op raised.

        It tells those alone who ask for what that op would give.

        Raises:
            DisagreementError: in check mode.
        """
        with self.lock:
            if not self._nodes:
                return None
            nodes, results = self._nodes, self._results
            inputs, numbers = self._inputs, self._numbers
            specs, key = tuple(self._specs), tuple(self._key)
            self._clear()
            asked = [made for each in results if (made := each()) is not None]
            wanted = tuple([made.place for made in asked])
            if not wanted:
                return None
            owned = tuple([place for place, _, holder in inputs if holder() is None])
            tasks = self._plans.find(
                (key, wanted, owned), lambda: _tasks(nodes, specs, {*wanted}, frozenset(owned))
            )
            used = {value for step, _ in tasks for value in takes(step)}
            values = {place: primitive for place, primitive, _ in inputs if place in used}
            inputs.clear()
            failed: dict[int, Exception] = {}
            try:
                self._run(tasks, Known(values, specs, numbers), failed)
            except BaseException as error:
                # An interrupt is over once it is raised; who asks later is told what became of it.
                own = error if isinstance(error, Exception) else _interrupted(error)
                _give(asked, values, failed, Failed(own))
                values.clear()  # the traceback would keep these arrays
                raise
            _give(asked, values, failed)
            return next(iter(failed.values()), None)

    def _run(self, tasks: Tasks, known: Known, failed: dict[int, Exception]) -> None:
        """Run a plan on its values, and note what failed by what it would have given."""
        for step, ended in tasks:
            lost = _lost(takes(step), failed) if failed else None
            if lost is None:
                try:
                    if self._plans.check and isinstance(step, Fused):
                        self._compare(step, known)
                    run_steps([step], known)
                except DisagreementError:
                    raise
                except Exception as error:
                    lost = error
            if lost is not None:
                self._without(step, lost, known, failed)
                lost = None
            for value in ended:
                known.values.pop(value, None)

    def _without(
        self, step: Step, error: Exception, known: Known, failed: dict[int, Exception]
    ) -> None:
        """Run those ops of a program that can be run; an op alone has failed."""
        if not isinstance(step, Fused):
            failed[step.results[0]] = _bare(error)
            return
        values, alone, inside, own = known.values, True, dict(known.values), dict(failed)
        for node in step.nodes:
            lost = _lost(values_of(node), own)
            if lost is None:
                try:
                    run_steps([node], known._replace(values=inside))
                    continue
                except Exception as found:
                    lost = _bare(found)
            own.update(dict.fromkeys(node.results, lost))
            alone = False
        failed.update({value: own[value] for value in gives(step) if value in own})
        values.update({value: inside[value] for value in gives(step) if value in inside})
        if alone:
            self._plans.fallbacks.note(_bare(error), self._device, check=self._plans.check)

    def _compare(self, fused: Fused, known: Known) -> None:
        """Run a program beside its ops."""
        inside = known._replace(values=dict(known.values))
        run_steps(fused.nodes, inside)
        try:
            found = parting(fused, inside)
        except Exception as error:
            raise self._plans.fallbacks.disagreement(error) from error
        if found is not None:
            raise program_parts("fusion", "a program parts from its ops", found)


class Failed(NamedTuple):
    """Stands for the result of an op that failed when it ran."""

    error: Exception


def there(item: Deferred) -> Any:
    """Return a primitive of the device inside that waits no more; or raise what it failed with."""
    if type(item.value) is Failed:
        raise item.value.error.with_traceback(None)
    return item.value


def _interrupted(error: BaseException) -> DeviceError:
    return DeviceError(
        "fusion",
        "the ops that make this tensor were interrupted",
        got=type(error).__name__,
        expected="a run to their end",
        hint="compute it again from tensors that are there",
    )


def _give(
    asked: Sequence[Deferred],
    values: dict[int, Any],
    failed: dict[int, Exception],
    other: Failed | None = None,
) -> None:
    """Leave what was made; who asks for what failed gets its error, and ``other`` for the rest."""
    for made in asked:
        own = failed.get(made.place)
        made.value = values.get(made.place, other) if own is None else Failed(own)
        made.stream = None


def _lost(taken: Iterable[int], failed: dict[int, Exception]) -> Exception | None:
    """Why a step cannot run, for want of what it takes; None where all is there."""
    return next((failed[v] for v in taken if v in failed), None)


def _bare(error: Exception) -> Exception:
    """The error without frames, which would keep arrays for as long as somebody may ask for it."""
    error.__context__ = None
    return error.with_traceback(None)


def _tasks(
    nodes: Sequence[Node], specs: Sequence[Spec], wanted: set[int], owned: frozenset[int]
) -> Tasks:
    """The plan of what waits: programs and ops, and what ends with each."""
    steps = planned(needed(nodes, wanted), specs, wanted, owned).steps
    last = last_uses(steps)
    return tuple(
        (step, tuple({v for v in (*takes(step), *gives(step)) if last[v] == at} - wanted))
        for at, step in enumerate(steps)
    )


def _key(item: Any) -> Hashable:
    """What tells calls apart: numbers only by their type and place."""
    if type(item) is Number:
        return type(item.value), item.place
    return item
