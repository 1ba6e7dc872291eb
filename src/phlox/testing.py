"""Tests for tensors and backends: everything of phlox_tensor.testing."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from phlox_tensor.testing import *

if not _TYPE_CHECKING:
    from phlox_tensor.testing import __getattr__  # noqa: F401 - says what others call the names
