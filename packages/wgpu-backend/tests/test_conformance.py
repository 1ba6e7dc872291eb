"""The suite that every backend is held to, generated from the op declarations."""

from __future__ import annotations

import pytest

import phlox_tensor as pt
from phlox_tensor.testing import Check, checks
from phlox_wgpu import Wgpu

if not Wgpu.found():
    pytest.skip(
        "no GPU adapter here; mesa-vulkan-drivers brings a software one", allow_module_level=True
    )


@pytest.mark.parametrize("check", checks(Wgpu()), ids=str)
def test_wgpu(check: Check) -> None:
    with pt.use_device(check.backend):
        check()


@pytest.mark.parametrize("check", checks(Wgpu(), far=True), ids=str)
def test_wgpu_with_rows_far_from_0_large_or_led_by_an_outlier(check: Check) -> None:
    with pt.use_device(check.backend):
        check()
