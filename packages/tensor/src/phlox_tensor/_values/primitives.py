"""Operands as entries get them: primitives, numbers, None, and tuples of those."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .number import Scalar


def each_primitive(operands: Iterable[Any]) -> list[Any]:
    """Return the primitives among operands, those of tuples too; numbers and None are none."""
    found: list[Any] = []
    for item in operands:
        found.extend(item) if type(item) is tuple else found.append(item)
    return [p for p in found if p is not None and not isinstance(p, Scalar)]


def on_primitives(function: Callable[[Any], Any], operand: Any) -> Any:
    """Return an operand with ``function`` applied to its primitives; numbers and None stay."""
    if operand is None or isinstance(operand, Scalar):
        return operand
    if type(operand) is tuple:
        return tuple([on_primitives(function, item) for item in operand])
    return function(operand)
