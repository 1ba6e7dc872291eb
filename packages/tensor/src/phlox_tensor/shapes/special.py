"""Attributes of tests of numbers."""

from __future__ import annotations

from .._device.backend import Backend
from .._errors.classes import ArgumentError
from .._op.declaration import Attributes, Specs


def not_negative(op: str, **tolerances: float) -> None:
    """Refuse tolerances within which nothing lies.

    Raises:
        ArgumentError: for one that is negative or nan.
    """
    for name, value in tolerances.items():
        if not value >= 0:
            raise ArgumentError(
                op, f"{name} is no tolerance", got=value, expected="0 or more", hint=f"{name}=1e-5"
            )


def prepare_isclose(specs: Specs, attributes: Attributes, backend: Backend) -> Attributes:
    """Look at the tolerances."""
    del specs, backend
    rtol, atol, _ = attributes
    not_negative("isclose", rtol=rtol, atol=atol)
    return attributes
