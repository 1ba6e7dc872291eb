"""``compile``: a function is recorded twice, and from then on replayed without Python per op."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import update_wrapper
from operator import is_
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeVar, final, overload

from phlox_tensor import CompileError, DisagreementError, Tensor, WrongTypeError, tree
from phlox_tensor.arguments import require_callable
from phlox_tensor.capture import (
    MODES,
    RECORDINGS,
    Graph,
    ambient,
    host_random_state,
    recording,
    runs_eagerly,
)

from .checking.check import compared
from .checking.fallback import of_a_function
from .locks import KEEPING
from .mode import mode_of
from .record import trace as _trace
from .record.agree import difference, fits, two_runs_differ
from .record.arguments import refuse_arrays, refuse_named, refuse_reached, shared
from .record.cells import Pin
from .record.outside import outside_of
from .record.refused import host_random
from .record.watch import altered_by_a_helper, first_change, hold, left_of
from .replay.explain import explained
from .replay.halves import Join
from .replay.replay import MISS, replay_of, undo_all
from .trees.flat import flat
from .trees.plain import follow
from .versions.form import form_of, most_changed
from .versions.probe import probe_of, twice
from .versions.version import SPOT, Version, what_changed
from .wrapped import bound_to, kept_by_name, refuse_unbound

P = ParamSpec("P")
R = TypeVar("R")
_WARN_AT: Final = 10
_MOST_JOINED: Final = 4  # of those that ran once and hold what their gradients may need
_LATER: Final = object()  # ``compile`` with settings alone decorates what comes then


@final
class Compiled(Generic[P, R]):
    """A function that is replayed: what ``compile`` gives.

    Attributes:
        instead_in_trees: what to write where a module that is compiled would be a part of another.
    """

    instead_in_trees: ClassVar = (
        "px.compile(model) for the whole model; or @px.compile above forward of the part"
    )

    def __init__(self, function: Callable[P, R], *, check: bool, versions: int) -> None:
        """Keep the function."""
        refuse_unbound("compile", function)
        require_callable("compile", function, "px.compile(step)")
        for name, value, kind in (("check", check, bool), ("versions", versions, int)):
            if type(value) is not kind:
                got = f"{value!r} ({type(value).__name__})"
                what = f"{name} is not of the type that it takes"
                raise WrongTypeError("compile", what, got=got, expected=kind.__name__)
        if versions < 1:
            what, expected = "no room for a version", "at least 1"
            raise CompileError("compile", what, got=versions, expected=expected)
        self._given: Callable[..., Any] = function
        self._settings = check, versions
        self._called: Callable[..., Any] = function
        self._bound: tuple[Any, ...] = ()
        owner = getattr(function, "__self__", None)
        if isinstance(function, MethodType) and tree.is_node(owner):
            self._called, self._bound = function.__func__, (owner,)
        elif tree.is_node(function):
            self._called, self._bound = type(function).__call__, (function,)
        else:
            update_wrapper(self, self._called)
        self._mode, self._most = "check" if check else mode_of("compile"), versions
        follow(owner if self._bound and isinstance(function, MethodType) else function)
        self._versions: dict[Any, list[Version]] = {}
        self._last: Version | None = None  # whose probe is asked first
        self._clock = 0
        self._made = 0
        self._warned = False
        self._fallbacks = of_a_function()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function gives.

        An error of an op in a replay is that of the function, which then runs as it is written.

        Raises:
            CompileError: from the first calls of a form, where a replay would not do what the
                function does: it reads a value, changes what is outside, or runs differ.
            DisagreementError: in check mode, where a replay gives other bits, or fails alone.
        """
        given = (*self._bound, *args) if self._bound else args
        last = self._last
        probe = None if last is None or last.calls >= last.due else last.probe
        if probe is not None and last is not None:
            undo: list[Any] = []
            try:
                out = probe(given, kwargs, undo)
            except DisagreementError:
                raise
            except Exception as error:
                return self._instead(error, undo, given, kwargs)
            if out is not MISS:
                last.calls += 1
                return out
        if (
            self._mode == "off"
            or (MODES.entered and runs_eagerly())
            or (RECORDINGS.count and recording() is not None)
        ):
            return self._called(*given, **kwargs)
        key, leaves = self._key(given, kwargs)
        if key is None:
            return self._called(*given, **kwargs)
        ready = self._versions.get(key)
        waiting: list[Version] = []
        for version in ready or ():
            if version.replay is None:
                waiting += [version] if version.stands() else []
                continue
            if version.outside and not hold(version.outside):
                continue
            refuse_named(version.named, (*given, *kwargs.values()), leaves)
            if version.calls >= version.due and self._mode != "check":
                waiting.append(version)
                continue
            out = self._replayed(version, given, kwargs, leaves)
            if out is not MISS:
                version.calls += 1
                self._last = version
                return out
        return self._record(key, given, kwargs, ready or (), waiting)

    def _replayed(
        self, version: Version, given: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]
    ) -> Any:
        """What a replay gives; ``MISS`` where it does not hold."""
        replay = version.replay
        assert replay is not None
        self._clock = version.used = self._clock + 1
        if self._mode == "check" and version.join is None:
            trace = _trace.positioned(version.trace, _trace.order_of(given, kwargs))
            return compared(self._called, given, kwargs, trace, replay, leaves)
        undo: list[Any] = []
        try:
            if version.join is None:
                return replay(leaves, undo)
            return version.join.run(given, kwargs, leaves, undo)
        except DisagreementError:
            raise
        except Exception as error:
            return self._instead(error, undo, given, kwargs)

    def _instead(
        self, error: Exception, undo: list[Any], given: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What the function gives where a replay failed; it raises from the line at fault."""
        undo_all(undo)
        out = self._called(*given, **kwargs)
        self._fallbacks.note(error, self, check=self._mode == "check")
        return out

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Let a compiled function be a method.

        That of an object which hides a model is compiled for the object, whose attributes it reads
        as names from outside: ``px.compile(self.step)``.
        """
        if instance is None:
            return self
        place = f"compiled {getattr(self._called, '__qualname__', self._called)}"
        check, versions = self._settings

        def make() -> Compiled[..., Any]:
            return Compiled(MethodType(self._given, instance), check=check, versions=versions)

        return bound_to(self, instance, place, make) or MethodType(self, instance)

    @property
    def versions(self) -> int:
        """The number of recordings that are kept."""
        return sum(map(len, self._versions.values()))

    @property
    def fallbacks(self) -> int:
        """How often a replay failed and the function, run in its place, did not.

        Where the function catches no error that values decide, more than 0 is a fault of phlox or
        of a backend. The first one is a warning; in check mode each is a ``DisagreementError``.
        """
        return self._fallbacks.count

    @property
    def sources(self) -> list[str]:
        """The replays that there are, as Python; steps that a device takes as one are remarks.

        Example:
            >>> import phlox_tensor as pt
            >>> double = compile(lambda x: x.sum() * 2)
            >>> [double(pt.ones(2)).item() for _ in range(2)]
            [4.0, 4.0]
            >>> len(double.sources)
            1
        """
        ready = [v for some in self._versions.values() for v in some if v.replay is not None]
        halves = [text for v in ready if v.join is not None for text in v.join.texts]
        return [*(v.text for v in ready), *halves]

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Graph:
        """Run the function on these arguments, and return what it did as a graph.

        It is a call like any other: optimizers step, and random numbers are drawn.

        Raises:
            CompileError: where it cannot be recorded.

        Example:
            >>> import phlox_tensor as pt
            >>> graph = compile(lambda x: (x * 2).sum()).trace(pt.ones(2))
            >>> [node.op.name for node in graph.nodes]
            ['multiply', 'sum']
        """
        return _trace.run(self._called, (*self._bound, *args), kwargs).trace.graph

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Run the function on these arguments, and say what a replay does and depends on.

        It is a call like any other: optimizers step, and random numbers are drawn.

        Raises:
            CompileError: where it cannot be recorded.

        Example:
            >>> import phlox_tensor as pt
            >>> print(compile(lambda x: (x * 2).sum()).explain(pt.ones(2)).splitlines()[2])
            ops: 2 to run, 0 left out since nobody needs them
        """
        given = (*self._bound, *args)
        form = form_of(given, kwargs)
        return explained(_trace.run(self._called, given, kwargs).trace, form)

    def __repr__(self) -> str:
        module = self._module()
        name = getattr(self._called, "__qualname__", repr(self._called))
        name = name if module is None else type(module).__name__
        count = self.versions
        return f"<compiled {name}: {count} version{'' if count == 1 else 's'}>"

    def __reduce__(self) -> Any:
        return kept_by_name(self) or (_again, (self._given, *self._settings))

    def _module(self) -> Any:
        """The module that was compiled as such; else None."""
        given = vars(self).get("_given")
        return given if tree.is_node(given) else None

    if not TYPE_CHECKING:  # type checkers shall find names that are spelled wrong

        def __getattr__(self, name: str) -> Any:
            """Return an attribute of the module that was compiled."""
            module = None if name.startswith("__") else self._module()
            if module is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(module, name)

    # Finding a version

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        """What decides which recording serves a call, and the leaves of the arguments.

        None for tensors of a transform under way, whose ops run one by one.
        """
        key: list[Any] = [ambient()]
        leaves: list[Any] = []
        for item in (*args, *kwargs.values()) if kwargs else args:
            cls = type(item)
            if cls is Tensor:
                device = item.device
                primitive = item.primitive
                key.append(device)
                key.append(device.spec_of(primitive))
                while device.inner is not None:
                    if device.transient:
                        return None, leaves
                    key.append(device.standing(primitive))
                    primitive = device.lower(primitive)
                    device = device.inner
                leaves.append(primitive)
            elif cls is float or cls is int:
                key.append(cls)
                leaves.append(item)
            elif item is None or cls is bool or cls is str:
                key.append((cls, item))
            else:
                layout, found, _ = flat(item)
                if layout.transient:
                    return None, leaves
                key.append(layout)
                leaves += found
        if kwargs:
            key.append((len(args), *kwargs))
        if len({*map(id, leaves)}) < len(leaves) and twice(leaves):
            key.append(shared(args, kwargs))
        return tuple(key), leaves

    def _record(
        self,
        key: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        known: Sequence[Version],
        waiting: list[Version],
    ) -> Any:
        """Run the function recorded; the second time a replay is made of it.

        Args:
            key: of the arguments.
            args: the arguments.
            kwargs: those by keyword.
            known: the versions of the key, of which none could serve the call.
            waiting: those of them that are to be recorded again.
        """
        form = form_of(args, kwargs)
        refuse_arrays(form)
        outside, generators, named = outside_of(self._called, form.values())
        refuse_reached(args, kwargs, outside)
        refuse_named(named, (*args, *kwargs.values()), self._key(args, kwargs)[1])
        drawn = host_random_state(generators)
        like = [*known, *waiting][-1:]
        pins = like[0].pins if like else frozenset[Pin]()
        found = _trace.run(self._called, args, kwargs, pins)
        if host_random_state(generators) != drawn:
            raise host_random()
        name = first_change(outside)
        if name is not None:
            raise _trace.changes(name)
        left = left_of(outside)
        found_out = len(left) < len(outside) or not all(map(is_, left, outside))
        with KEEPING:
            meanwhile = (v for v in self._versions.get(key, ()) if v not in known)
            waiting += [v for v in meanwhile if v.stands()]  # those of other threads
            alike = (v for v in waiting if fits(v.trace, found.trace) and v.wake())
            version = next(alike, None)
            other = None if version is None else difference(version.trace, found.trace)
            if version is not None and other is not None:
                self._drop(key, version)
                if version.replay is not None or not version.found_out:
                    raise two_runs_differ(other)
                version, found_out = None, False  # the next run has to agree with this one
            if version is None:
                version = Version(left, found.trace, form, found.pins, found_out=found_out)
                if found.joins:
                    check, order = self._mode == "check", _trace.order_of(args, kwargs)
                    version.join = Join(self._called, found, order, check=check)
                self._keep(key, version)
                version.doze()
            elif version.replay is None:
                version.outside = left  # what both runs found out for themselves is there now
                version.named = named
                self._agreed(version, args, kwargs)
                self._warn_of(altered_by_a_helper(outside))
            else:
                self._warn_of(altered_by_a_helper(outside))
                version.calls += 1
                version.due = SPOT * version.calls - 1
        if version.join is None:
            return found.trace.result.layout.build(found.leaves)
        return version.join.recorded(found, args, kwargs)

    def _agreed(self, version: Version, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Make a replay of a version, whose second run agreed with the first."""
        if version.join is None:
            placed = _trace.positioned(version.trace, _trace.order_of(args, kwargs))
            version.replay, version.text = replay_of(placed)
        else:
            version.replay, version.text = version.join.ready()
        _, leaves = self._key(args, kwargs)
        if self._mode != "check" and not MODES.entered and not twice(leaves):
            run = version.replay if version.join is None else version.join
            version.probe = probe_of(args, kwargs, version.outside, version.named, run)

    def _warn_of(self, place: str | None) -> None:
        """Say once that a helper changes what a replay leaves as it is."""
        if place is None or self._warned:
            return
        self._warned = True
        text = (
            f"[compile] a function that {self!r} calls changes {place} at each call, which a "
            "replay leaves as it is\nhint: return the value and keep it outside, or px.Cell"
        )
        warnings.warn(text, stacklevel=4)

    def _keep(self, key: Any, version: Version) -> None:
        self._made += 1
        if self._made == _WARN_AT:
            warnings.warn(self._advice(key, version), stacklevel=4)
        if self._last is not None:  # calls that its probe knew left no mark
            self._clock = self._last.used = self._clock + 1
        if self.versions >= self._most:
            oldest = min(
                ((k, v) for k, some in self._versions.items() for v in some),
                key=lambda pair: pair[1].used,
            )
            self._drop(*oldest)
        self._clock = version.used = self._clock + 1
        known = [v for v in self._versions.get(key, ()) if not v.gone()]
        joined = [v for v in known if v.replay is None and v.join is not None]
        if version.join is not None and len(joined) >= _MOST_JOINED:
            known.remove(joined[0])
        self._versions[key] = [*known, version]

    def _drop(self, key: Any, version: Version) -> None:
        self._last = None
        left = [v for v in self._versions.get(key, ()) if v is not version]
        if left:
            self._versions[key] = left
        else:
            self._versions.pop(key, None)

    def _advice(self, key: Any, made: Version) -> str:
        known = self._versions.get(key, ())
        forms = [v.form for some in self._versions.values() for v in some]
        changed = most_changed([*forms, made.form])
        asked = [g.line for g in made.trace.graph.guards]
        name = what_changed(known[-1], made) if known else ""
        if changed and len(known) < 2:
            why = f"shapes, types or structure of the arguments keep changing{changed}"
        elif name:
            why = f"names from outside keep changing: {name}, which may be an argument instead"
        elif asked:
            why = f"values that the program asks of numbers keep changing (asked at {asked[0]})"
        else:
            why = "what cells hold keeps changing its structure"
        return f"[compile] {self!r} was recorded {_WARN_AT} times: {why}"


def _again(function: Callable[..., Any], check: bool, versions: int) -> Compiled[..., Any]:
    """Make what was pickled or copied, which starts without versions."""
    return Compiled(function, check=check, versions=versions)


@overload
def compile(
    function: Callable[P, R], /, *, check: bool = False, versions: int = 64
) -> Compiled[P, R]: ...
@overload
def compile(
    *, check: bool = False, versions: int = 64
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
def compile(function: Any = _LATER, /, *, check: bool = False, versions: int = 64) -> Any:
    """Return a function that does the same without running Python for each op.

    The first two calls with arguments of one form run the function as it is and note its ops; they
    must agree. Later calls repeat the ops. Tensors, ints and floats among the arguments, and the
    values in modules, may be others each time; optimizers, schedules and random numbers go on as
    they would. New shapes and other models are recorded anew. Names, containers and attributes from
    outside are compared at each call, also those that functions of yours read which it calls; so
    are objects and sets among the arguments. Arrays of NumPy are no arguments.

    What a function reads from tensors, prints, or appends to lists outside is no op: reading
    raises, and so does what the two runs show; other side effects happen in recorded runs alone.

    Args:
        function: of tensors, modules, numbers, and containers of them; or a module.
        check: run the function beside each replay and compare all bits. So does
            PHLOX_COMPILE=check for all; PHLOX_COMPILE=off runs functions as they are.
        versions: how many forms of arguments are kept; the one not used for longest goes first.

    Raises:
        CompileError: from a call, when a replay would not do what the function does.

    Example:
        >>> import phlox_tensor as pt
        >>> double = compile(lambda x, factor: (x * factor).sum())
        >>> [double(pt.ones(3), 2.0 + i).item() for i in range(4)]
        [6.0, 9.0, 12.0, 15.0]
    """
    if function is _LATER:
        return lambda given: Compiled(given, check=check, versions=versions)
    return Compiled(function, check=check, versions=versions)
