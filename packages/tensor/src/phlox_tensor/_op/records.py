"""What an op promises in addition to its meaning: traits, and how it is tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final


class IndexSample(NamedTuple):
    """In a test case: an integer operand with values in [-size, size).

    A negative size asks for values counted only from the front, in [0, -size).
    """

    shape: tuple[int, ...]
    size: int


class DefiniteSample(NamedTuple):
    """In a test case: symmetric matrices whose eigenvalues are well above 0."""

    shape: tuple[int, ...]


class MaskSample(NamedTuple):
    """In a test case: an operand of truth values."""

    shape: tuple[int, ...]


class SortedSample(NamedTuple):
    """In a test case: an operand whose values ascend along the last axis, with ties."""

    shape: tuple[int, ...]


class Given(NamedTuple):
    """In a test case: an operand of these values, whole numbers in the default type of integers."""

    values: Any


class Case(NamedTuple):
    """One test case of an op: operand shapes (or samples) and attributes by name."""

    operands: tuple[Any, ...]
    attributes: Mapping[str, Any]


def case(*operands: object, **attributes: object) -> Case:
    """Write down a test case: ``case((2, 3), (3, 4))`` or ``case((2, 3), axis=1)``."""
    return Case(operands, attributes)


class Refusal(NamedTuple):
    """One call that an op refuses, and the class of the error on every device."""

    error: type[Exception]
    case: Case


def refusal(error: type[Exception], *operands: object, **attributes: object) -> Refusal:
    """Write down a call that is refused: ``refusal(ShapeError, (2, 3), (2, 3))``."""
    return Refusal(error, Case(operands, attributes))


@final
@dataclass(frozen=True, slots=True)
class Traits:
    """What devices, decorators and rules may know of an op.

    Attributes:
        linear: linear in all Float operands together, so that the op itself maps tangents.
        multilinear: linear in each Float operand for itself, so that the product rule holds.
        compares: tells how numbers lie to each other, so a Python integer may be outside the type
            of the tensor beside it.
        folds: a reduction that makes elements of one type one of the same type, so that a program
            may hold it.
        measured: the values tell a size of a result, for which the shape rule gives -1; asked of
            the ops of the package alone.
        positive: operands of which a number, as a tensor is not read, is refused unless it is above
            0 and finite.
        source: draws each element by its place and by numbers alone, in a shape that is its first
            attribute, so that a program may draw it where it is read.
        truths: operands of other kinds are taken as Bool, by whether they are not 0.
    """

    linear: bool = False
    multilinear: bool = False
    compares: bool = False
    folds: bool = False
    measured: bool = False
    positive: tuple[str, ...] = ()
    source: bool = False
    truths: bool = False


@final
@dataclass(frozen=True, slots=True)
class Tested:
    """How an op is tested: what is drawn, and how far results may be off.

    Attributes:
        domain: the interval that tests draw from, or one per operand name.
        ulp: allowed error in units of the result type's epsilon.
        atol: allowed absolute error, in units of epsilon, for results near zero.
        rounded: given, ``ulp`` and ``atol`` are in units of float32's epsilon for narrower types
            too, whose results are rounded and may be off by so many of their epsilons more, for
            what is rounded on the way. For ops of the package it is 0 by default.
        cases: test cases for ops whose class cannot make them up.
        refuses: calls that are refused, by the same error on every device.
        unpromised: operands whose nan and infinities give what the device makes of them, each with
            the reason; beside them, only results that are finite everywhere are compared.
        signed_zeros: whether the sign of a zero result is defined; not said, it is where ``ulp``
            is at most 1: what rounds on its way may round to either zero.
    """

    domain: tuple[float, float] | Mapping[str, tuple[float, float]] = (-3.0, 3.0)
    ulp: float = 0.0
    atol: float = 0.0
    rounded: float | None = None
    cases: tuple[Case, ...] = ()
    refuses: tuple[Refusal, ...] = ()
    unpromised: Mapping[str, str] = field(default_factory=dict)
    signed_zeros: bool | None = None

    @property
    def keeps_signs(self) -> bool:
        """Whether the sign of a zero result is defined."""
        return self.ulp <= 1 if self.signed_zeros is None else self.signed_zeros

    def interval(self, operand: str) -> tuple[float, float]:
        """The interval from which tests draw the values of ``operand``."""
        if isinstance(self.domain, tuple):
            return self.domain
        return self.domain.get(operand, (-3.0, 3.0))
