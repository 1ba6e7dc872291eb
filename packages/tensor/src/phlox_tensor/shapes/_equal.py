"""Shapes that are equal."""

from __future__ import annotations

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def same(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The first operand's shape."""
    del op, attributes
    return [specs[0].shape]


def alike(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """All operands have one shape, which is the result's."""
    del attributes
    shape = specs[0].shape
    if any(m.shape != shape for m in specs):
        names = ", ".join(o.name for o in op.signature.operands)
        got = " and ".join(str(m.shape) for m in specs)
        raise ShapeError(op.name, f"{names} differ in shape", got=got, expected="one shape")
    return [shape]


def cotangent(op: Op, got: Shape, expected: Shape) -> None:
    """Raise ShapeError unless a cotangent has the shape of the result."""
    if got != expected:
        raise ShapeError(
            op.name,
            "the cotangent does not have the shape of the result",
            got=got,
            expected=expected,
        )
