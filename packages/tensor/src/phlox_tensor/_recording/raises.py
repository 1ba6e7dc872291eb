"""Which errors of ops depend on values, and which on shapes and types alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from .._device.backend import Backend
from .._errors.classes import DeviceError, DTypeError, KindError, PhloxError, Rejected, ShapeError
from .._op.declaration import REGISTRY, Op, Spec
from .._values.number import Number
from .._values.primitives import on_primitives
from .graph import Node, values_of

# What no values decide.
BY_TYPES: Final = (DTypeError, DeviceError, KindError, MemoryError, Rejected)


def may_be_of_values(error: Exception) -> bool:
    """Whether an error of an op may be one that other values of the same shapes do not raise."""
    return isinstance(error, PhloxError) and not isinstance(error, (*BY_TYPES, ShapeError))


def follows_from_shapes(
    error: Exception, device: Backend, op: Op, operands: Sequence[Any], attributes: Sequence[Any]
) -> bool:
    """Whether an op raises whatever values it is given.

    Args:
        error: that the entry has raised.
        device: the device of the entry.
        op: the op.
        operands: as the entry got them.
        attributes: these too.
    """
    if REGISTRY.get(op.name) is not op:
        return False
    specs = [on_primitives(lambda p: Spec(*device.spec_of(p)), item) for item in operands]
    try:
        op.infer(*specs, *attributes, device=device)
    except Exception as alone:
        return type(alone) is type(error)
    return False


def has_number(items: Iterable[Any]) -> bool:
    """Whether a number that another call may give anew is among operands and attributes."""
    return any(type(x) is Number or (type(x) is tuple and has_number(x)) for x in items)


def moving(inputs: Iterable[int], nodes: Iterable[Node]) -> set[int]:
    """Return the values that may be others in another call: arguments, and what comes of them."""
    found = {*inputs}
    for node in nodes:
        numbers = has_number((*node.operands, *node.attributes))
        if numbers or not found.isdisjoint(values_of(node)):
            found.update(node.results)
    return found
