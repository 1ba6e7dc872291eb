"""Tests for tensors and backends: everything of phlox_tensor.testing."""

from phlox_tensor.testing import *

from ._mirror import mirror as _mirror

_mirror(__name__, "phlox_tensor.testing")
