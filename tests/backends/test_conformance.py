"""The suite that is generated from the declarations, on devices that no package tests alone.

``Wgpu()`` and ``Autodiff(Numpy())`` run it in their packages, ``Numpy()`` in phlox-tensor.
"""

from __future__ import annotations

import pytest

from phlox import Autodiff, BalancedCheckpointing, Cpu, Wgpu, use_device
from phlox_tensor.testing import Check, _conformance, checks

LONG = [
    Autodiff(Cpu(), checkpointing=BalancedCheckpointing()),
    Autodiff(Autodiff(Cpu())),
    Autodiff(Wgpu()),
    Cpu(float="float64", int="int32"),
]


@pytest.mark.parametrize("check", checks(Cpu()), ids=str)
def test_cpu(check: Check) -> None:
    check()


@pytest.mark.parametrize("check", checks(Cpu(), far=True), ids=str)
def test_cpu_with_rows_far_from_0_large_or_led_by_an_outlier(check: Check) -> None:
    check()


# What formulas round on their way, Cpu has kernels for, which do not.
KERNELS = ["attention", "attention_backward", "conv_transpose2d"]


@pytest.mark.parametrize("check", checks(Cpu(), KERNELS), ids=str)
def test_kernels_of_cpu_round_once(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check.op.tested.rounded
    monkeypatch.setattr(_conformance, "narrow_error", lambda _: 0.0)
    check()


@pytest.mark.long
@pytest.mark.parametrize("device", LONG, ids=repr)
def test_decorated_and_with_other_types(device: Autodiff) -> None:
    with use_device(device):
        for check in checks(device):
            check()


@pytest.mark.long
@pytest.mark.parametrize("device", [Cpu(), Wgpu()], ids=repr)
def test_every_special_value_in_every_operand(device: Cpu | Wgpu) -> None:
    with use_device(device):
        for check in checks(device, thorough=True):
            check()
