"""The table of kernels that benchmarks and tuning use."""

from __future__ import annotations

import pytest

import phlox_tensor as pt
from benchmarks.gpu_kernels import Cost, kernels, measure
from phlox_wgpu import Wgpu


@pytest.fixture(scope="module")
def gpu() -> Wgpu:
    if not Wgpu.found():
        pytest.skip("no GPU adapter here; mesa-vulkan-drivers brings a software one")
    return Wgpu()


@pytest.mark.parametrize("small", [False, True])
def test_costs_are_named_once_and_say_what_they_cost(small: bool) -> None:
    table = kernels(small=small)
    assert len({cost.name for cost in table}) == len(table)
    for cost in table:
        assert cost.op in pt.REGISTRY
        assert cost.flops > 0 or cost.bytes > 0


@pytest.mark.parametrize("cost", kernels(small=True), ids=lambda cost: cost.name)
def test_a_cost_runs_and_takes_time(gpu: Wgpu, cost: Cost) -> None:
    assert measure(gpu, cost, turns=2) > 0


def test_timing_leaves_the_recorder_as_it_was(gpu: Wgpu) -> None:
    device = gpu.device
    measure(gpu, kernels(small=True)[0], turns=2)
    assert device.engine.counts[0] == 0
    measured = None
    for _ in range(1000):
        device.empty((1,), pt.float32)
        measured = gpu.ops.full((1,), 1.0, pt.float32)
    assert 0 < device.engine.counts[0] < 1000
    del measured
