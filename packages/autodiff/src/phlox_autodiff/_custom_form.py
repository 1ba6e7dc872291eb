"""Arguments and results of a custom derivative: between what the user wrote and plain tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from phlox_tensor import Backend, DType, GradientError, Tensor, zeros
from phlox_tensor.arguments import accepts

Follow = Callable[..., "tuple[Tensor[Any] | None, ...]"]


class Spec(NamedTuple):
    """What is left of a tensor for the pass back: the tensor itself may go."""

    shape: tuple[int, ...]
    dtype: DType
    device: Backend

    def zeros(self) -> Tensor[Any]:
        """A tensor of zeros like the one that it is of."""
        return zeros(self.shape, dtype=self.dtype, device=self.device)


def spec_of(x: Tensor[Any]) -> Spec:
    return Spec(x.shape, x.dtype, x.device)


class Form(NamedTuple):
    """What the pass back has to know of a call, and no tensor of it.

    Attributes:
        name: the name of the function.
        layout: of each argument that holds tensors, which of its leaves they are; its structure.
        structure: the structure of the value.
        values: the tensors of the value.
    """

    name: str
    layout: list[tuple[list[bool], Any]]
    structure: Any
    values: tuple[Spec, ...]

    def filled(self, cotangents: tuple[Any, ...]) -> list[Tensor[Any]]:
        """Zeros for the values to which no cotangent came."""
        pairs = zip(cotangents, self.values, strict=True)
        return [v.zeros() if c is None else c for c, v in pairs]

    def flat(self, out: Any) -> tuple[Tensor[Any] | None, ...]:
        """The cotangents of all tensors, out of those of the arguments."""
        given = out if isinstance(out, tuple) else (out,)
        if len(given) != len(self.layout):
            raise GradientError(
                self.name,
                "the custom gradient gives not one cotangent per tensor argument",
                got=len(given),
                expected=len(self.layout),
            )
        found: list[Any] = []
        for part, (flags, structure) in zip(given, self.layout, strict=True):
            single = len(flags) == 1 and isinstance(part, Tensor)
            if part is None:
                parts = [None] * len(flags)
            else:
                parts = [part] if single else structure.leaves_of(part, self.name)
            found += [p for p, held in zip(parts, flags, strict=True) if held]
        return tuple(found)

    def by_argument(self, tangents: tuple[Any, ...]) -> list[Any]:
        """The tangents of the arguments, out of those of all tensors."""
        rest = iter(tangents)
        return [
            structure.rebuild([next(rest) if held else None for held in flags])
            for flags, structure in self.layout
        ]


def pulling(form: Form, follow: Callable[..., Any], *, several: bool) -> Follow:
    """What carries cotangents back; it holds of the call what ``follow`` itself holds alone."""

    def pull(*cotangents: Any) -> tuple[Tensor[Any] | None, ...]:
        every = form.filled(cotangents)
        parts = every if several else [form.structure.rebuild(every)]
        return form.flat(_called(form, follow, parts, "cotangent", "part of the value"))

    return pull


def pushing(form: Form, follow: Callable[..., Any]) -> Follow:
    """What carries tangents on."""

    def push(*tangents: Any) -> tuple[Tensor[Any] | None, ...]:
        given = form.by_argument(tangents)
        out = _called(form, follow, given, "tangent", "argument that holds tensors")
        return tuple(form.structure.leaves_of(out, form.name))

    return push


def _called(form: Form, follow: Callable[..., Any], given: list[Any], what: str, each: str) -> Any:
    """What the user's function carries on."""
    try:
        return follow(*given)
    except TypeError as error:
        if accepts(follow, *given):
            raise
        raise GradientError(
            form.name,
            f"the function that it gives takes another number of {what}s",
            got=f"{len(given)} {what}s, one for each {each}",
            expected=f"a function of {len(given)}",
            hint=f"lambda {', '.join(f'{what[0]}{i}' for i in range(len(given)))}: ...",
        ) from error
