"""The error of files that do not hold what their reader takes."""

from __future__ import annotations

from phlox_tensor import PhloxError


class DataError(PhloxError, ValueError):
    """A file of data is corrupt or truncated, or does not hold what its reader takes."""
