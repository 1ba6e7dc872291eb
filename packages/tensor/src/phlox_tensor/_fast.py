"""The short path of elementwise and contraction calls, for operands that need no preparation.

A backend with ``checks = True`` looks at its operands itself and raises Rejected for whatever it
does not take as it is; the full path then promotes, lifts, or raises the error that users see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._call import call
from ._errors import Rejected
from ._op import Op
from ._tensor import Tensor


def unary(op: Op, x: Tensor[Any], *attributes: Any) -> Any:
    """Apply an op of one operand."""
    backend = x.device
    if backend.checks and not attributes:
        try:
            return Tensor(getattr(backend, op.name)(x.primitive), backend)
        except Rejected:
            pass
    return call(op, (x,), attributes)


def binary(op: Op, x1: Any, x2: Any) -> Any:
    """Apply an op of two operands, tensors or numbers."""
    if type(x1) is Tensor:
        backend = x1.device
        if backend.checks:
            try:
                if type(x2) is Tensor:
                    if x2.device is backend:
                        entry = getattr(backend, op.name)
                        return Tensor(entry(x1.primitive, x2.primitive), backend)
                elif type(x2) is float or type(x2) is int:
                    return Tensor(getattr(backend, op.name)(x1.primitive, x2), backend)
            except Rejected:
                pass
    return call(op, (x1, x2), ())


_KNOWN = (Tensor, bool, int, float)


def operator(op: Op, x1: Any, x2: Any) -> Any:
    """Apply the op behind a Python operator; NotImplemented for operands of other libraries."""
    other = x2 if isinstance(x1, Tensor) else x1
    known = isinstance(other, _KNOWN)
    if not known and not (getattr(other, "shape", None) == () and hasattr(other, "item")):
        return NotImplemented
    return binary(op, x1, x2)


def spread(items: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
    """Let ``x.reshape(2, 3)`` mean ``x.reshape((2, 3))``."""
    if len(items) == 1 and isinstance(items[0], Sequence):
        return tuple(items[0])
    return items  # type: ignore[return-value]
