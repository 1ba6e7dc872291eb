"""``compile``: a function is recorded twice, and from then on replayed without Python per op."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, ParamSpec, TypeVar, final, overload

from phlox_tensor import CompileError, DisagreementError, WrongTypeError, tree
from phlox_tensor.arguments import is_thrown_away, require_callable, warn_thrown_away
from phlox_tensor.capture import (
    MODES,
    RECORDINGS,
    Graph,
    host_random_state,
    recording,
    runs_eagerly,
)

from . import refused
from .checking.check import compared
from .checking.fallback import Fallbacks
from .locks import KEEPING
from .mode import mode_of
from .record import trace as _trace
from .record.agree import difference, fits
from .record.arguments import refuse_arrays, refuse_identical, refuse_reached
from .record.cells import EVERY
from .record.code import KINDS, REFUSED
from .record.outside import Outside, outside_of
from .record.trace import Run, makes_modules
from .record.watch import Watch, first_change
from .replay.explain import explained
from .replay.halves import Join
from .replay.replay import MISS, replay_of, undo_all
from .trees.flat import twice
from .trees.plain import follow
from .versions.form import Arguments, Form, arguments_of
from .versions.key import key_of
from .versions.probe import probe_of
from .versions.version import SPOT, Version
from .versions.versions import WARN_AT, Versions
from .wrapped import bound_to, kept_by_name, refuse_unbound

P = ParamSpec("P")
R = TypeVar("R")
_LATER: Final = object()  # ``compile`` with only settings decorates what comes then


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
        self._mode = "check" if check else mode_of("compile")
        follow(owner if self._bound and isinstance(function, MethodType) else function)
        self._versions = Versions(versions)
        self._warned = False
        self._fallbacks = Fallbacks("compile")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function gives.

        An error of an op in a replay is that of the function, which then runs as it is written.

        Raises:
            CompileError: from the first calls of a form, where a replay would not do what the
                function does: it reads a value, changes what is outside, or runs differ.
            DisagreementError: in check mode, where a replay gives other bits, or fails alone.
        """
        given = (*self._bound, *args) if self._bound else args
        last = self._versions.last
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
        key, leaves = key_of(given, kwargs)
        if key is None:
            return self._called(*given, **kwargs)
        ready = self._versions.of(key)
        to_record: list[Version] = []
        for version in ready:
            if version.replay is None:
                to_record += [version] if version.unchanged() else []
                continue
            if not version.unchanged():
                continue
            refuse_identical(version.outside.identities, (*given, *kwargs.values()), leaves)
            if version.calls >= version.due and self._mode != "check":
                to_record.append(version)
                continue
            out = self._replayed(version, given, kwargs, leaves)
            if out is not MISS:
                if version.kept is not None:
                    version.kept.settle(given, kwargs, out, recorded=False)
                version.calls += 1
                self._versions.last = version
                return out
        return self._record(key, given, kwargs, leaves, ready, to_record)

    def _replayed(
        self, version: Version, given: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]
    ) -> Any:
        """What a replay gives; ``MISS`` where it does not hold."""
        replay = version.replay
        assert replay is not None
        self._versions.use(version)
        if self._mode == "check" and version.join is None:
            return compared(self._called, given, kwargs, version.trace, replay, leaves)
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
        return len(self._versions)

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
        ready = [version for version in self._versions if version.replay is not None]
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
        return self._run((*self._bound, *args), kwargs)[0].trace.graph

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
        found, form = self._run((*self._bound, *args), kwargs)
        return explained(found.trace, form)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Run, Form]:
        """Run the function recorded, and keep nothing of it."""
        given = arguments_of(args, kwargs, *key_of(args, kwargs))
        return _trace.run(self._called, given), given.form

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

    def _record(
        self,
        key: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: list[Any],
        known: Sequence[Version],
        to_record: list[Version],
    ) -> Any:
        """Run the function recorded; the second time a replay is made of it.

        Args:
            leaves: the leaves of the arguments, as ``key_of`` gives them.
            known: the versions of the key, of which none could serve the call.
            to_record: those of them that are to be recorded again.
        """
        given = arguments_of(args, kwargs, key, leaves)
        outside = self._outside(given, args, kwargs, to_record)
        drawn = host_random_state(outside.generators)
        like = [*known, *to_record][-1:]
        pins = like[0].pins if like else frozenset({EVERY} if KINDS in outside.does else ())
        catches = REFUSED in outside.does
        found = _trace.run(self._called, given, pins, catches=catches)
        if host_random_state(outside.generators) != drawn:
            raise refused.RANDOM.of()
        name = first_change(outside.watches, own=True)
        if name is not None:
            raise _trace.changes(name)
        lasting = outside._replace(watches=[*filter(Watch.unchanged, outside.watches)])
        filled = len(lasting.watches) < len(outside.watches)
        with KEEPING:
            version, differed = self._alike(key, found, known, to_record)
            if version is None:
                # The run after one that filled a cache may differ from it once, no second time.
                filled = filled and not differed
                version = Version(lasting, found, given.form, filled_a_cache=filled)
                if found.joins:
                    check = self._mode == "check"
                    version.join = Join(self._called, found, given.order, check=check)
                if self._versions.made == WARN_AT - 1:
                    why = self._versions.advice(key, version)
                    self._warn(f"{self!r} was recorded {WARN_AT} times: {why}")
                self._versions.keep(key, version)
            else:
                if version.replay is None:
                    version.outside = lasting  # what both filled is there now
                    self._agreed(version, args, kwargs, leaves)
                else:
                    version.calls += 1
                    version.due = SPOT * version.calls - 1
                place = first_change(outside.watches, own=False)
                if place is not None and not self._warned:
                    self._warned = True
                    self._warn(
                        f"a function that {self!r} calls changes {place} at each call, which a "
                        "replay leaves as it is\nhint: return the value and keep it outside, or "
                        "px.Cell"
                    )
        return self._recorded(version, found, args, kwargs)

    def _recorded(
        self, version: Version, found: Run, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """What a recorded run gives, which the caller should keep where it is a new module."""
        if version.join is None:
            out = found.trace.result.layout.build(found.leaves)
        else:
            out = version.join.recorded(found, args, kwargs)
        if version.kept is not None:
            version.kept.settle(args, kwargs, out, recorded=True)
        new = version.replay is None and makes_modules(found, version.form)
        if new and is_thrown_away(sys._getframe(2)):
            warn_thrown_away("compile", "model = step(model, batch)", stacklevel=4)
        return out

    def _outside(
        self,
        given: Arguments,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        to_record: list[Version],
    ) -> Outside:
        """What the function reads besides its arguments, refused if too much."""
        for version in to_record:
            if version.replay is not None:  # it is what it was, and has been looked at
                return version.outside
        refuse_arrays(given.layout)
        outside = outside_of(self._called, given.layout)
        refuse_reached(given.leaves, outside.watches)
        refuse_identical(outside.identities, (*args, *kwargs.values()), given.leaves)
        return outside

    def _alike(
        self, key: Any, found: Run, known: Sequence[Version], to_record: list[Version]
    ) -> tuple[Version | None, bool]:
        """The version that a run has to agree with, and whether there was one that it need not."""
        meanwhile = [v for v in self._versions.of(key) if v not in known]  # of other threads
        for version in (*to_record, *(v for v in meanwhile if v.unchanged())):
            if version.pins == found.pins and fits(version.trace, found.trace):
                other = difference(version.trace, found.trace)
                if other is None:
                    return version, False
                self._versions.drop(key, version)
                if version.replay is not None or not version.filled_a_cache:
                    raise refused.RUNS_DIFFER.of(other)
                return None, True
        return None, False

    def _warn(self, text: str) -> None:
        warnings.warn(f"[compile] {text}", stacklevel=4)

    def _agreed(
        self,
        version: Version,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        leaves: list[Any],
    ) -> None:
        """Make a replay of a version, whose second run agreed with the first."""
        if version.join is None:
            version.replay, version.text = replay_of(version.trace)
        else:
            version.replay, version.text = version.join.ready()
        if self._mode != "check" and not MODES.entered and not twice(leaves):
            run = version.replay if version.join is None else version.join
            version.probe = probe_of(args, kwargs, version.outside, run, version.kept)


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
    raises, and so does what the two runs show; other side effects happen only in recorded runs.

    Args:
        function: a function of tensors, modules, numbers, and containers of them; or a module.
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
