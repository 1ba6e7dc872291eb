"""What ``compile`` and ``kernel`` share: what they do not wrap, and how what they make is saved."""

from __future__ import annotations

import sys
from typing import Any

from phlox_tensor import WrongTypeError


def refuse_unbound(op: str, given: object) -> None:
    """Refuse a static or class method that no class has bound yet.

    Raises:
        WrongTypeError: with the order that works.
    """
    if isinstance(given, staticmethod | classmethod):
        kind = type(given).__name__
        raise WrongTypeError(
            op,
            f"a {kind} is wrapped, and no function",
            got=repr(given.__func__),
            expected="a function",
            hint=f"@{kind} above @px.{op}",
        )


def kept_by_name(made: Any) -> str | None:
    """The name by which pickles keep what a function has become; None where it has none."""
    name = getattr(made, "__qualname__", None)
    found: Any = sys.modules.get(str(getattr(made, "__module__", "")))
    for part in str(name).split("."):
        found = getattr(found, part, None)
    return name if found is made else None
