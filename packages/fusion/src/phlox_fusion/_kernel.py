"""``kernel``: a function of elements as one op of its own, which is one kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, signature
from typing import Any, Final, Generic, NamedTuple, ParamSpec, final

from phlox_tensor import CompileError, Tensor
from phlox_tensor.capture import ElementFormula, Program

from ._captured import watches
from ._watch import Watch, hold, standing

P = ParamSpec("P")
_MOST_KEPT: Final = 8  # formulas, by what stands outside of the function


class _Kept(NamedTuple):
    """What a function read besides its arguments, and its formula then."""

    watches: list[Watch]
    stands: Callable[[], bool]
    formula: ElementFormula


@final
class Kernel(Generic[P]):
    """A function that runs as one kernel: what ``kernel`` gives."""

    def __init__(self, function: Callable[P, Tensor[Any]]) -> None:
        """Keep the function."""
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
        named = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
        self._count: Final = len(parameters)
        self._plain: Final = not named
        self._name: Final = name
        self._function: Final = _positional(function, named)
        self._own: Final = function
        self._kept: list[_Kept] = []  # the last one first

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor[Any]:
        """Return what the function gives."""
        formula = self._formula()
        if kwargs or len(args) != self._count or not self._plain:
            return formula(*self._bound(args, kwargs))
        return formula(*args)

    def _formula(self) -> ElementFormula:
        """The formula for what stands outside of the function now."""
        kept = self._kept
        if kept and kept[0].stands():
            return kept[0].formula
        for at, found in enumerate(kept):
            if hold(found.watches):
                self._kept = [found, *kept[:at], *kept[at + 1 :]]
                return found.formula
        seen = watches(self._own)
        made = ElementFormula(self._name, self._function, strict=True)
        self._kept = [_Kept(seen, standing(seen), made), *kept[: _MOST_KEPT - 1]]
        return made

    def program(self, *args: P.args, **kwargs: P.kwargs) -> Program:
        """Return the ops of a call with these arguments, which become the kernel.

        Raises:
            CompileError: where they are none.
        """
        return self._formula().program(*self._bound(args, kwargs))

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        bound = self._signature.bind(*args, **kwargs)
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
