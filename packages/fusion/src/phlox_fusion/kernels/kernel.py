"""``kernel``: a function of elements becomes an op of its own, which is one kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, signature
from types import MethodType
from typing import Any, Final, Generic, ParamSpec, final

from phlox_tensor import CompileError, Tensor, WrongTypeError
from phlox_tensor.capture import (
    MODES,
    RECORDINGS,
    ElementFormula,
    Program,
    registry_mark,
    same_bits,
)

from .. import refused
from ..record.arguments import refuse_identical, refuse_kinds
from ..record.outside import Outside, outside_of
from ..record.watch import first_change, unchanged
from ..replay.replay import MISS
from ..trees.plain import follow, is_frozen
from ..versions.version import SPOT
from ..wrapped import Bound, kept_by_name, made_of, refuse_unbound
from .quick import Quick, quick_of

P = ParamSpec("P")
_MOST_KEPT: Final = 8  # formulas, by what stands outside of the function
_MOST_QUICK: Final = 4  # texts for forms of calls: each that does not fit costs 0.2 us
_RENEWED: Final = 256  # calls until one goes for a newer one: making it takes as long as 100


@final
class _Kept:
    """What a function read besides its arguments, and its formula then.

    Attributes:
        ops: changes when an op is declared anew.
        quick: what runs calls of each form, the last one first.
        slow: how many calls none of them fitted.
    """

    def __init__(self, outside: Outside, formula: ElementFormula) -> None:
        self.outside: Final = outside
        self.formula: Final = formula
        self.ops: Final = registry_mark()
        self.quick: list[Quick] = []
        self.slow = 0


@final
class Kernel(Generic[P]):
    """A function that runs as one kernel: what ``kernel`` gives."""

    def __init__(self, function: Callable[P, Tensor[Any]]) -> None:
        refuse_unbound("kernel", function)
        update_wrapper(self, function)
        name = f"kernel {getattr(function, '__name__', type(function).__name__)}"
        try:
            self._signature: Final = signature(function)
        except (TypeError, ValueError):
            what, expected = "not a function in Python", "a function of elements"
            raise CompileError("kernel", what, got=repr(function), expected=expected) from None
        parameters = self._signature.parameters.values()
        for parameter in parameters:
            if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
                raise CompileError(
                    name,
                    "a kernel has a fixed number of arguments",
                    got=str(parameter),
                    expected="a name for each argument",
                )
        follow(getattr(function, "__self__", function))
        named = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
        self._count: Final = len(parameters)
        self._plain: Final = not named
        self._name: Final = name
        self._function: Final = _positional(function, named)
        self._own: Final = function
        self._attribute = ""
        self._place = f"kernel {getattr(function, '__qualname__', self._name)}"
        self._kept: list[_Kept] = []  # the last one first
        self._quick: Quick | None = None
        self._calls = 0
        self._due = SPOT
        self._altered = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor[Any]:
        """Return what the function gives.

        Raises:
            CompileError: where the function cannot be one kernel, or no tensor is given.
            ShapeError: where tensors do not broadcast.
            WrongTypeError: for arguments that the function does not take.
        """
        self._calls += 1
        if self._calls >= self._due and self._plain and len(args) == self._count and not kwargs:
            self._compare(args)
        quick = self._quick
        if quick is not None and not kwargs:
            out = quick(args)
            if out is MISS:
                out = self._of_another_form(args, quick)
            if out is not MISS:
                return out
        kept = self._known()
        refuse_identical(kept.outside.identities, args, ())
        refuse_kinds(self._name, kept.outside, (*args, *kwargs.values()))
        if kept.outside.identities or kwargs or len(args) != self._count or not self._plain:
            return kept.formula(*self._bound(args, kwargs))
        found = kept.formula(*args)
        if not kept.slow:
            self._warn_of(first_change(kept.outside.watches, own=False))
        kept.slow += 1
        if len(kept.quick) < _MOST_QUICK or kept.slow % _RENEWED == 0:
            direct = kept.formula.direct(*args)
            if direct is not None:
                self._quick = quick_of(direct, kept.outside.watches)
                kept.quick = [self._quick, *kept.quick[: _MOST_QUICK - 1]]
        return found

    def _warn_of(self, place: str | None) -> None:
        """Say once that a helper changes something each time that the formula is made."""
        self._altered = 0 if place is None else self._altered + 1
        if self._altered == 2:  # the first time it may have kept what it has found out
            text = (
                f"[compile] a function that {self!r} calls changes {place} at each call, so that "
                "its formula is made anew\nhint: give what changes as an argument"
            )
            warnings.warn(text, stacklevel=3)

    def _compare(self, args: tuple[Any, ...]) -> None:
        """Compare what a call gives with the function as it is now, on devices that can be read."""
        self._due = SPOT * self._calls
        device = next((x.device for x in args if isinstance(x, Tensor)), None)
        if MODES.entered or RECORDINGS.count or device is None or device.inner is not None:
            return
        mine = self._known().formula(*args)
        own = ElementFormula(self._name, self._function, strict=True)(*args)
        left, right = (x.device.read(x.primitive) for x in (mine, own))
        if mine.dtype is not own.dtype or not same_bits(left, right, mine.dtype, mine.device):
            raise refused.RUNS_DIFFER.of(f"a kernel with other results at call {self._calls}")

    def _of_another_form(self, args: tuple[Any, ...], last: Quick) -> Any:
        """What a call gives of a form that came before the last one; else ``MISS``."""
        for kept in self._kept:
            for quick in kept.quick:
                out = MISS if quick is last else quick(args)
                if out is not MISS:
                    self._quick = quick
                    return out
        return MISS

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Let a kernel be a method of an object, whose numbers it reads as names from outside."""
        if instance is None:
            return self
        found = made_of(self, instance, self._place)
        if found is not None:
            return found
        space = getattr(instance, "__dict__", None)
        if is_frozen(instance) or not isinstance(space, dict):
            raise CompileError(
                self._name,
                "a kernel is no method of a module, or of an object without attributes of its own",
                got=type(instance).__name__,
                expected="a function of tensors and numbers",
                hint="a kernel outside of the class: swish(x, self.beta)",
            )
        made: Kernel[Any] = Kernel(MethodType(self._own, instance))
        made._attribute = self._attribute
        space[self._place] = Bound(self, instance, made)  # the collector of cycles finds it there
        return made

    def __reduce__(self) -> Any:
        owner = getattr(self._own, "__self__", None)
        if owner is not None and self._attribute:
            return getattr, (owner, self._attribute)
        return kept_by_name(self) or (kernel, (self._own,))

    def _known(self) -> _Kept:
        """What there is for what stands outside of the function now."""
        kept, ops = self._kept, registry_mark()
        for at, found in enumerate(kept):
            if found.ops is ops and unchanged(found.outside.watches):
                if at:
                    self._kept = [found, *kept[:at], *kept[at + 1 :]]
                return found
        outside = outside_of(self._own)
        made = ElementFormula(self._name, self._function, strict=True)
        self._kept = [_Kept(outside, made), *kept[: _MOST_KEPT - 1]]
        return self._kept[0]

    def program(self, *args: P.args, **kwargs: P.kwargs) -> Program:
        """Return the ops of a call with these arguments, which become the kernel.

        Raises:
            CompileError: where they are none.
        """
        return self._known().formula.program(*self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            taken = ", ".join(self._signature.parameters)
            raise WrongTypeError(self._name, str(error), expected=taken) from error
        bound.apply_defaults()
        return [bound.arguments[name] for name in self._signature.parameters]

    def __repr__(self) -> str:
        return f"<{self._name}>"


def _positional(function: Callable[..., Any], named: list[str]) -> Callable[..., Any]:
    """The function with all its arguments in a row."""
    if not named:
        return function

    def run(*args: Any) -> Any:
        first = len(args) - len(named)
        return function(*args[:first], **dict(zip(named, args[first:], strict=True)))

    return run


def kernel(function: Callable[P, Tensor[Any]], /) -> Kernel[P]:
    """Make a function of elements into one op, which is one kernel on backends with programs.

    It takes tensors, which broadcast, and numbers, which may be others at each call, and gives one
    tensor by elementwise ops. Each value has the bits that the ops one by one give. The derivative
    is found out from the rules of its ops and is one kernel for each argument, in both modes and of
    any order; where those are too long for one kernel, their ops run one by one. Inside of
    ``compile`` the ops join those around them. What it reads from outside is compared at each call,
    as ``compile`` does.

    Raises:
        CompileError: from a call, where the function cannot be one kernel: naming the op in the
            way, or what it reads.

    Example:
        >>> import phlox_tensor as pt
        >>> swish = kernel(lambda x, beta: x / (1 + (-beta * x).exp()))
        >>> swish(pt.asarray([0.0, 4.0]), 0.0).tolist()
        [0.0, 2.0]
    """
    return Kernel(function)
