"""What stands for the gradient of a constant for which a new value was proposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from .tensor import Tensor


@final
class Proposed:
    """A new value for a constant that a layer proposed (``Backend.propose``): not a gradient."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor[Any]) -> None:
        """Hold the value."""
        self.value: Final = value

    @staticmethod
    def joined(values: Sequence[Tensor[Any]], before: Tensor[Any]) -> Tensor[Any] | None:
        """Return what several proposals for one constant make of it; None without any.

        Floats are statistics, of which the mean counts. Whole numbers are counts, whose changes
        are added up.
        """
        if not values:
            return None
        total = values[0]
        for value in values[1:]:
            total = total + value
        if len(values) == 1:
            return total
        if total.dtype.kind == "Int":
            return total - before.to_device(total.device) * (len(values) - 1)
        return total * (1.0 / len(values))
