"""Streams: ops that wait until somebody needs a result, and then run as programs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any, Final, NamedTuple, final
from weakref import ref

from phlox_tensor import Backend, DeviceError, DisagreementError, Entry, Op, Spec
from phlox_tensor.capture import NOBODY, Node, Number, Value, line_of_user, needed

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


class Failed(NamedTuple):
    """Stands for what was to be made of an op that failed when it ran."""

    error: Exception


# What runs, in order, and which values nobody needs after each.
Tasks = tuple[tuple[Step, tuple[int, ...]], ...]


@final
class Plans:
    """The plans of a device, by what waits and what of it is needed.

    Attributes:
        check: whether streams run each program beside its ops.
        made: how many there were.
    """

    def __init__(self, *, check: bool) -> None:
        self.check: Final = check
        self.fallbacks: Final = Fallbacks("fusion")
        self.kept: Final[dict[Hashable, Tasks]] = {}
        self.made = 0


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

    def put(self, op: Op, entry: Entry, count: int, args: Sequence[Any], spec: Spec) -> Deferred:
        """Let an op wait, and return what stands for its result."""
        with self.lock:
            given = tuple([self._argument(item) for item in args])
            place = len(self._specs)
            self._specs.append(spec)
            made = Deferred(spec, None, self, place)
            line = line_of_user() if self._plans.check else ""
            node = Node(op, self._device, entry, given[:count], given[count:], (place,), line)
            self._nodes.append(node)
            self._results.append(ref(made))
            if len(self._nodes) >= self._most:
                self.settle()
            return made

    def _argument(self, item: Any) -> Any:
        if type(item) is int or type(item) is float:
            self._numbers.append(item)
            return Number(item, len(self._numbers) - 1, NOBODY)
        if type(item) is not Deferred:
            return item
        if item.stream is self:
            return Value(item.place)
        place = self._known.get(id(item.value))
        if place is None:
            place = self._known[id(item.value)] = len(self._specs)
            self._specs.append(item.spec)
            self._inputs.append((place, item.value, ref(item)))
        return Value(place)

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
            nodes, inputs = self._nodes, self._inputs
            asked = [made for each in self._results if (made := each()) is not None]
            known = Known({}, tuple(self._specs), self._numbers)
            self._clear()
            tasks = self._tasks(nodes, inputs, known.specs, tuple([x.place for x in asked]))
            used = {value for step, _ in tasks for value in takes(step)}
            known.values.update({place: item for place, item, _ in inputs if place in used})
            inputs.clear()
            lost: Failed | None = None
            failed: list[Exception] = []
            try:
                for step, ended in tasks:
                    self._run(step, known, failed)
                    for value in ended:
                        del known.values[value]
            except BaseException as error:
                # An interrupt is over once it is raised; who asks later is told what became of it.
                lost = Failed(error if isinstance(error, Exception) else _interrupted(error))
                raise
            finally:
                for made in asked:
                    made.value, made.stream = known.values.get(made.place, lost), None
                known.values.clear()  # the traceback would keep these arrays
            return next(iter(failed), None)

    def _tasks(
        self, nodes: Sequence[Node], inputs: Sequence[Any], specs: Any, asked: tuple[int, ...]
    ) -> Tasks:
        """What runs in which order, planned now where no such ops waited before.

        They are known by what they take but for their numbers, by what is asked for, and by which
        inputs nobody else has any more.
        """
        calls = tuple([(n.op, *map(_key, (*n.operands, *n.attributes))) for n in nodes])
        owned = tuple([place for place, _, holder in inputs if holder() is None])
        plans, key = self._plans, (calls, specs, asked, owned)
        found = plans.kept.get(key)
        if found is None:
            wanted = {*asked}
            live = needed(nodes, wanted)
            steps = planned(live, specs, wanted, frozenset(owned)).steps
            last = last_uses(steps)
            found = tuple(
                (step, tuple({v for v in (*takes(step), *gives(step)) if last[v] == at} - wanted))
                for at, step in enumerate(steps)
            )
            if len(plans.kept) >= _MOST_PLANS:
                plans.kept.clear()
            plans.kept[key] = found
            plans.made += 1
        return found

    def _run(self, step: Step, known: Known, failed: list[Exception]) -> None:
        """Run a step; what an op would have given that fails is ``Failed``."""
        values, own = known.values, None
        lost = next((values[v] for v in takes(step) if type(values[v]) is Failed), None)
        if lost is None:
            try:
                if self._plans.check and isinstance(step, Fused):
                    self._compare(step, known)
                run_steps([step], known)
                return
            except DisagreementError:
                raise
            except Exception as error:
                error.__context__ = None
                own = error.with_traceback(None)  # frames would keep arrays
        if isinstance(step, Fused):  # those of its ops run that can
            inside, before = known._replace(values=dict(values)), len(failed)
            for node in step.nodes:
                self._run(node, inside, failed)
            values.update({value: inside.values[value] for value in gives(step)})
            if own is not None and len(failed) == before:
                self._plans.fallbacks.note(own, self._device, check=self._plans.check)
            return
        if own is not None:
            lost = Failed(own)
            failed.append(own)
        values.update(dict.fromkeys(step.results, lost))

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


def _key(item: Any) -> Hashable:
    """What tells calls apart: numbers only by their type and place."""
    return (type(item.value), item.place) if type(item) is Number else item
