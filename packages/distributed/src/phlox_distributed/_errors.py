"""The error of processes that do not go together."""

from __future__ import annotations

from phlox_tensor import PhloxError


class DistributedError(PhloxError, RuntimeError):
    """Ranks differ where they must not, or cannot be started."""
