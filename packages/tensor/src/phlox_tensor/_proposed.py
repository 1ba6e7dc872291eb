"""What a transform puts in the place of the gradient of a constant with a proposed value."""

from __future__ import annotations

from typing import Any, Final, final

from ._tensor import Tensor


@final
class Proposed:
    """A new value for a constant that a layer proposed (``Backend.propose``): not a gradient."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor[Any]) -> None:
        """Hold the value."""
        self.value: Final = value
