"""What a transform puts in the place of the gradient of a constant with a proposed value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, final

from ._tensor import Tensor


@final
class Proposed:
    """A new value for a constant that a layer proposed (``Backend.propose``): not a gradient."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor[Any]) -> None:
        """Hold the value."""
        self.value: Final = value

    @staticmethod
    def mean(values: Sequence[Tensor[Any]]) -> Tensor[Any] | None:
        """Return the mean of what was proposed for one constant; None if nothing was."""
        if not values:
            return None
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total if len(values) == 1 else total * (1.0 / len(values))
