"""What stands for a base device and has no data."""

from __future__ import annotations

from typing import Final

from .._device.backend import Backend


class StandIn(Backend):
    """Base of devices that say what a base device says about itself, and compute nothing.

    Args:
        like: the base device.
    """

    has_data = False

    def __init__(self, like: Backend) -> None:
        """Take over what the device says about itself."""
        self.like: Final = like
        self.settings = (like,)
        self.dtypes = like.dtypes
        self.default_float, self.default_int = like.default_float, like.default_int
        self.max_rank = like.max_rank
