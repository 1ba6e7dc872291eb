"""Shape rules of optimizer steps."""

from __future__ import annotations

from typing import Final

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs

# What norms are divided by beside them, for they may be 0.
LEAST_NORM: Final = 1e-6


def adam_step(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Tensors and two means, or three with ``amsgrad``."""
    named = dict(zip(op.attribute_names, attributes, strict=True))
    if bool(specs[2]) != bool(specs[3]):
        raise ShapeError(
            op.name,
            "first and second means come together",
            got=f"{len(specs[2])} and {len(specs[3])}",
            expected="as many of both",
        )
    return _alike(op, specs) * (4 if named["amsgrad"] else 3)


def clip_norms(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Those of the gradients."""
    del op, attributes
    return [m.shape for m in specs[0]]


def sgd_step(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """Tensors, and velocities with ``momentum``."""
    named = dict(zip(op.attribute_names, attributes, strict=True))
    return _alike(op, specs) * (2 if named["momentum"] else 1)


def _alike(op: Op, specs: Specs) -> list[Shape]:
    """All lists that are given hold the same shapes, in the same order."""
    shapes = [m.shape for m in specs[0]]
    for operand, others in zip(op.signature.operands, specs, strict=True):
        got = [m.shape for m in others]
        if got != shapes and (got or not operand.optional):
            raise ShapeError(
                op.name,
                f"{operand.name} do not fit the tensors",
                got=", ".join(map(str, got)),
                expected=", ".join(map(str, shapes)),
            )
    return shapes
