"""The reference backend passes the suite that all backends are held to."""

from __future__ import annotations

import pytest

from phlox_tensor import Numpy
from phlox_tensor.testing import Check, checks


@pytest.mark.parametrize("check", checks(Numpy()), ids=str)
def test_numpy(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", checks(Numpy(), far=True), ids=str)
def test_numpy_with_rows_far_from_0_large_or_led_by_an_outlier(check: Check) -> None:
    check()
