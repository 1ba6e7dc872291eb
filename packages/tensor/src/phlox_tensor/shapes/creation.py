"""Shape rule of ops that make tensors."""

from __future__ import annotations

from typing import Any

from .._errors.classes import ShapeError
from .._op.declaration import Attributes, Op, Shape, Specs


def from_attribute(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """The shape is the attribute ``shape`` or, for 1-d results, ``count``."""
    del specs
    named: dict[str, Any] = dict(zip(op.attribute_names, attributes, strict=True))
    shape = named["shape"] if "shape" in named else (named["count"],)
    if any(n < 0 for n in shape):
        raise ShapeError(op.name, "negative size", got=shape)
    return [shape]
