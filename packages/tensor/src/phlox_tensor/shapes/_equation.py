"""Equations of Einstein's sums, such as ``ij,jk->ik``, read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .._errors.classes import ArgumentError, ShapeError

Shape = tuple[int, ...]
Labels = tuple[str, ...]

_DOTS: Final = "..."
_EXPECTED: Final = "letters for axes, such as 'ij,jk->ik' or '...i,i'"


class Equation(NamedTuple):
    """What an equation says, an ellipsis read as axes: labels of operands and of the result."""

    inputs: tuple[Labels, ...]
    output: Labels
    sizes: dict[str, int]


def read(equation: str, shapes: Sequence[Shape]) -> Equation:
    """Read an equation for operands of these shapes.

    Raises:
        ArgumentError: when the text is no equation, or names another number of operands.
        ShapeError: when labels and axes do not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        got = f"{equation!r} and {len(shapes)} tensors"
        raise ArgumentError("einsum", "operands and terms differ", got=got)
    inputs = tuple(_labels(t, equation, len(s)) for t, s in zip(terms, shapes, strict=True))
    sizes: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        own: dict[str, int] = {}
        for label, n in zip(labels, shape, strict=True):
            if own.setdefault(label, n) != n:
                got = f"{own[label]} and {n} for {label!r} in {equation!r}"
                raise ShapeError("einsum", "a diagonal of unequal axes", got=got)
            known = sizes.setdefault(label, n)
            if 1 not in (known, n) and known != n:
                got = f"{known} and {n} for {label!r} in {equation!r}"
                raise ShapeError("einsum", "sizes of one label differ", got=got)
            sizes[label] = n if known == 1 else known
    dots = [label for label in sizes if label.startswith(_DOTS)]
    dots.sort(key=lambda label: -int(label[len(_DOTS) :]))
    if arrow:
        output = _output(right, equation, dots)
    else:
        once = sorted(c for c in sizes if c not in dots and left.count(c) == 1)
        output = (*dots, *once)
    unknown = [label for label in output if label not in sizes]
    if unknown or len({*output}) < len(output):
        what = "the result has a label that is not among the operands, or one twice"
        raise ArgumentError("einsum", what, got=repr(equation), expected=_EXPECTED)
    return Equation(inputs, output, sizes)


def _labels(term: str, equation: str, rank: int) -> Labels:
    """A label for each axis; those under an ellipsis are counted from the last one."""
    head, dots, tail = term.partition(_DOTS)
    if not all(c.isascii() and c.isalpha() for c in head + tail):
        raise ArgumentError("einsum", "not an equation", got=repr(equation), expected=_EXPECTED)
    more = rank - len(head) - len(tail)
    if more < 0 or (more and not dots):
        got = f"{term!r} for {rank} axes"
        raise ShapeError("einsum", "labels and axes differ", got=got, expected="one for each axis")
    return (*head, *(f"{_DOTS}{i}" for i in range(more, 0, -1)), *tail)


def _output(term: str, equation: str, dots: Sequence[str]) -> Labels:
    head, _, tail = term.partition(_DOTS)
    if not all(c.isascii() and c.isalpha() for c in head + tail):
        raise ArgumentError("einsum", "not an equation", got=repr(equation), expected=_EXPECTED)
    return (*head, *(dots if _DOTS in term else ()), *tail)
