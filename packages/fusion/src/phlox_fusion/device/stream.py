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

_MOST_PLANS: Final = 1024  # they hold no arrays, but forms of calls may be without number


@final
class Deferred:
    """A primitive of a lazy device: one of the device inside, or the result of an op that waits.

    Attributes:
        value: the primitive of the device inside; None while it waits.
        stream: where its op waits; else None.
    """

    __slots__ = ("__weakref__", "place", "spec", "stream", "value")

    def __init__(self, spec: Any, value: Any, stream: Stream | None, place: int = -1) -> None:
        self.spec = spec
        self.value = value
        self.stream = stream
        self.place = place


class Failed(NamedTuple):
    """Stands for the result of an op that failed when it ran."""

    error: Exception


# Steps in the order in which they run, each with the values that no later step needs.
Tasks = tuple[tuple[Step, tuple[int, ...]], ...]


@final
class Plans:
    """The plans of a device, by the ops that wait and the results that are needed.

    Attributes:
        check: whether streams compare each program with its ops.
        made: how many plans were made, dropped ones included.
    """

    def __init__(self, *, check: bool) -> None:
        self.check: Final = check
        self.fallbacks: Final = Fallbacks("fusion")
        self.kept: Final[dict[Hashable, Tasks]] = {}
        self.made = 0


@final
class Stream:
    """The ops of one thread on one device that wait.

    Waiting never costs memory: ops that do not wait let these run first, and a plan that would hold
    more bytes at once than the ops one by one is given up.
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
        self._inputs: list[tuple[int, Any, ref[Deferred]]] = []  # operands that did not wait
        self._known: dict[int, int] = {}  # places of inputs by the id of their primitives
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
        """Run what waits, but for what no held result needs, and raise the first error of an op."""
        error = self.settle()
        if error is not None:
            raise error.with_traceback(None)

    def settle(self) -> Exception | None:
        """Run what waits, but for what no held result needs, and return the first error of an op.

        It is not raised here, but where a result of that op is read.

        Raises:
            DisagreementError: in check mode.
        """
        with self.lock:
            if not self._nodes:
                return None
            nodes, inputs = self._nodes, self._inputs
            held = [made for each in self._results if (made := each()) is not None]
            known = Known({}, tuple(self._specs), self._numbers)
            self._clear()
            tasks = self._tasks(nodes, inputs, known.specs, tuple([x.place for x in held]))
            used = {value for step, _ in tasks for value in takes(step)}
            known.values.update({place: item for place, item, _ in inputs if place in used})
            inputs.clear()
            missing: Failed | None = None
            errors: list[Exception] = []
            try:
                for step, ended in tasks:
                    self._run(step, known, errors)
                    for value in ended:
                        del known.values[value]
            except BaseException as error:
                # Who reads a result later gets an error that says so, not the interrupt once more.
                missing = Failed(error if isinstance(error, Exception) else _interrupted(error))
                raise
            finally:
                for made in held:
                    made.value, made.stream = known.values.get(made.place, missing), None
                known.values.clear()  # the traceback would keep these arrays
            return next(iter(errors), None)

    def _tasks(
        self, nodes: Sequence[Node], inputs: Sequence[Any], specs: Any, held: tuple[int, ...]
    ) -> Tasks:
        """The plan of such ops, which is made when they wait for the first time.

        Its key is all that they take but the values of numbers, the results that somebody holds,
        and the inputs that nobody else holds any more.
        """
        calls = tuple([(n.op, *map(_key, (*n.operands, *n.attributes))) for n in nodes])
        owned = tuple([place for place, _, holder in inputs if holder() is None])
        plans, key = self._plans, (calls, specs, held, owned)
        tasks = plans.kept.get(key)
        if tasks is None:
            wanted = {*held}
            live = needed(nodes, wanted)
            steps = planned(live, specs, wanted, frozenset(owned)).steps
            last = last_uses(steps)
            tasks = tuple(
                (step, tuple({v for v in (*takes(step), *gives(step)) if last[v] == at} - wanted))
                for at, step in enumerate(steps)
            )
            if len(plans.kept) >= _MOST_PLANS:
                plans.kept.clear()
            plans.kept[key] = tasks
            plans.made += 1
        return tasks

    def _run(self, step: Step, known: Known, errors: list[Exception]) -> None:
        """Run a step; the results of an op that fails, or takes such results, are ``Failed``."""
        values, new = known.values, None
        failed = next((values[v] for v in takes(step) if type(values[v]) is Failed), None)
        if failed is None:
            try:
                if self._plans.check and isinstance(step, Fused):
                    self._compare(step, known)
                run_steps([step], known)
                return
            except DisagreementError:
                raise
            except Exception as error:
                error.__context__ = None
                new = error.with_traceback(None)  # frames would keep arrays
        if isinstance(step, Fused):  # its ops one by one, as some may not need what failed
            inside, before = known._replace(values=dict(values)), len(errors)
            for node in step.nodes:
                self._run(node, inside, errors)
            values.update({value: inside.values[value] for value in gives(step)})
            if new is not None and len(errors) == before:
                self._plans.fallbacks.note(new, self._device, check=self._plans.check)
            return
        if new is not None:
            failed = Failed(new)
            errors.append(new)
        values.update(dict.fromkeys(step.results, failed))

    def _compare(self, fused: Fused, known: Known) -> None:
        """Raise where a program gives other bits than its ops."""
        inside = known._replace(values=dict(known.values))
        run_steps(fused.nodes, inside)
        try:
            found = parting(fused, inside)
        except Exception as error:
            raise self._plans.fallbacks.disagreement(error) from error
        if found is not None:
            raise program_parts("fusion", "a program differs from its ops", found)


def value_of(item: Deferred) -> Any:
    """Return the primitive of the device inside, once its op ran; or raise the error of that."""
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
    """The key of an argument: of numbers only their type and place."""
    return (type(item.value), item.place) if type(item) is Number else item
