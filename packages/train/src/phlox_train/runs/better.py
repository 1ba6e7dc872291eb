"""Which of two values is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from phlox_tensor import ArgumentError

Direction: TypeAlias = Literal["higher", "lower"]
_SIGN: Final = {"higher": 1.0, "lower": -1.0}


def direction(name: str, better: Direction | None, known: Mapping[str, str], op: str) -> Direction:
    """Return which values of a name are better: as said, as its metric says, lower for a loss."""
    if name.rpartition("/")[2] == "loss":
        known = {name: "lower", **known}
    found: Any = better or known.get(name)
    if found in _SIGN:
        way: Direction = found
        return way
    raise ArgumentError(
        op,
        f"nothing says which values of {name} are better",
        got=found,
        expected="higher or lower",
        hint=f'{op}({name!r}, better="higher")',
    )


def improves(value: float, best: float | None, better: Direction, least: float = 0.0) -> bool:
    """Whether a value is better than the best by more than ``least``; a NaN never is."""
    if math.isnan(value):
        return False
    if best is None or math.isnan(best):
        return True
    return _SIGN[better] * (value - best) > least
