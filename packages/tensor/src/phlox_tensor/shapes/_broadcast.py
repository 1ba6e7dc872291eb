"""Shapes that broadcast together."""

from __future__ import annotations

from collections.abc import Iterable

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def broadcast_shapes(shapes: Iterable[Shape], op: str) -> Shape:
    """Return the shape that all ``shapes`` broadcast to, by NumPy's rule.

    Raises:
        ShapeError: when two sizes differ and neither is 1.
    """
    shapes = list(shapes)
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for i, size in enumerate(shape):
            if size != 1:
                if out[offset + i] not in (1, size):
                    raise ShapeError(
                        op,
                        "shapes do not broadcast",
                        got=" and ".join(map(str, shapes)),
                        expected="equal sizes, or 1, counted from the last axis",
                        hint="x.reshape(...) or x[:, None] to line the axes up",
                    )
                out[offset + i] = size
    return tuple(out)


def elementwise(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """All operands broadcast together."""
    del attributes
    return [broadcast_shapes((m.shape for m in specs if m is not None), op.name)]
