"""Versions: what was recorded for one form of arguments, and what it holds meanwhile."""

from __future__ import annotations

from typing import Any, Final, final
from weakref import ref

from phlox_tensor import Tensor

from ..record.cells import Pin
from ..record.outside import Outside, is_frozen
from ..record.trace import Trace
from ..record.watch import Watch, unchanged
from ..replay.halves import Join
from ..replay.replay import Replay
from ..trees.flat import flat
from .form import Form
from .probe import Probe

SPOT: Final = 4  # a replay is compared with the function at calls 4, 16, 64 and so on


@final
class _Weak:
    """Stands for a tensor or module from outside, which may go."""

    __slots__ = ("found",)

    def __init__(self, value: Any) -> None:
        self.found: Final = ref(value)


@final
class Version:
    """What was recorded for one form of arguments.

    Attributes:
        form: of the arguments.
        pins: the numbers that came as plain values.
        seen: what the function read besides its arguments.
        trace: the first recorded run.
        replay: does the same; None until a second run agreed.
        probe: knows such arguments at once; None where only a key does.
        text: the replay as Python.
        used: when it was used last.
        calls: how many it has served.
        due: after how many the next one is compared with the function again.
        join: how results go on with the history of arguments; None where they have none.
        filled_a_cache: the first run left something outside that the second one may find.
    """

    def __init__(
        self,
        seen: Outside,
        trace: Trace,
        form: Form,
        pins: frozenset[Pin],
        *,
        filled_a_cache: bool,
    ) -> None:
        """Keep the first run."""
        self.form: Final = form
        self.pins: Final = pins
        self.filled_a_cache: Final = filled_a_cache
        self.seen = seen
        self.trace = trace
        self.replay: Replay | None = None
        self.join: Join | None = None
        self.probe: Probe | None = None
        self.text = ""
        self.used = 0
        self.calls = 2  # the recorded ones
        self.due = SPOT - 1
        self._weak = False

    def doze(self) -> None:
        """Hold tensors and modules from outside weakly until a second run finds them.

        A batch that is bound anew at each call would be kept by as many versions as there may be.
        """
        if self.join is not None:  # gradients may be asked for, which need them
            return
        values = [value for watch in self.seen.watches for value in watch.values if _may_go(value)]
        inside = {id(leaf) for value in values for leaf in flat(value)[1]}
        self.seen = self.seen._replace(watches=self._with_values(_weak))
        self._keep_constants(lambda p: _Weak(p) if id(p) in inside else p)
        self._weak = True

    def unchanged(self) -> bool:
        """Whether all that it read outside is there, and as it was."""
        if not self._weak:
            return unchanged(self.seen.watches)
        return not self.gone() and unchanged(self._with_values(_strong))

    def gone(self) -> bool:
        """Whether something from outside is no more, so that no call finds it again."""
        held = (value for watch in self.seen.watches for value in watch.values)
        return self._weak and any(type(v) is _Weak and v.found() is None for v in held)

    def wake(self) -> bool:
        """Hold everything again, and say whether it is there."""
        if self._weak:
            if self.gone():
                return False
            self.seen = self.seen._replace(watches=self._with_values(_strong))
            self._keep_constants(_strong)
            self._weak = False
        return True

    def _with_values(self, how: Any) -> list[Watch]:
        watches = self.seen.watches
        return [watch._replace(values=(*map(how, watch.values),)) for watch in watches]

    def _keep_constants(self, how: Any) -> None:
        graph = self.trace.graph
        constants = {value: how(primitive) for value, primitive in graph.constants.items()}
        self.trace = self.trace._replace(graph=graph._replace(constants=constants))


def _may_go(value: Any) -> bool:
    return isinstance(value, Tensor) or (is_frozen(value) and type(value) not in (tuple, dict))


def _weak(value: Any) -> Any:
    return _Weak(value) if _may_go(value) else value


def _strong(value: Any) -> Any:
    return value.found() if type(value) is _Weak else value


def what_changed(before: Version, after: Version) -> str:
    """The first place outside that two versions found something else at; empty where none did."""
    known = {(w.read, id(w.holder)): w for w in before.seen.watches}
    for watch in after.seen.watches:
        other = known.get((watch.read, id(watch.holder)))
        if other is None or other.keys != watch.keys:
            continue
        names = watch.keys or [watch.label] * len(watch.values)
        for name, a, b in zip(names, map(_strong, other.values), watch.values, strict=False):
            if _strong(b) is not a:
                return f"{watch.label}.{name}" if watch.label and watch.keys else str(name)
    return ""
