"""Tests for tensors and backends: everything of phlox_tensor.testing."""

from phlox_tensor.testing import *
