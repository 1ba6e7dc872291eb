"""Norms of rows far from 0, of large rows and of rows led by an outlier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

Array = np.ndarray[Any, Any]
EPSILON = 1e-5
LENGTH = 1000
RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal((4, LENGTH))
ROWS = {
    "near": NOISE,
    "far": 1e3 + NOISE,
    "farther": 1e6 + NOISE,
    "large": 1e20 * NOISE,
    "outlier": np.where(np.arange(LENGTH) == 0, 1e5, NOISE),
}
# Of the largest result: some ulps of float32, for sums of a thousand terms.
TOLERANCE = 32 * 2.0**-23


@pytest.fixture(params=["adapter", "hardware"])
def way(request: Any, gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rows dealt out as for this adapter, and as for a GPU."""
    gpu.device.plans.clear()
    if request.param == "hardware":
        monkeypatch.setattr(gpu.device, "software", False)
    yield
    gpu.device.plans.clear()


def close(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * np.abs(want).max())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", ROWS)
def test_norms_lose_nothing(gpu: Wgpu, up: Callable[[Any], GpuArray], name: str) -> None:
    x = ROWS[name].astype(np.float32)
    wide = x.astype(np.float64)
    normal = wide - wide.mean(1, keepdims=True)
    scale = 1 / np.sqrt((normal * normal).mean(1, keepdims=True) + EPSILON)
    normal *= scale
    weight, bias = np.ones(LENGTH, np.float32), np.zeros(LENGTH, np.float32)
    close(gpu.read(gpu.ops.layer_norm(up(x), up(weight), up(bias), EPSILON)), normal)
    g = NOISE[::-1].astype(np.float32)
    dx, dweight, _ = gpu.ops.layer_norm_backward(up(g), up(x), up(weight), EPSILON)
    close(gpu.read(dweight), (g * normal).sum(0))
    pull = g - g.mean(1, keepdims=True) - normal * (g * normal).mean(1, keepdims=True)
    close(gpu.read(dx), scale * pull)
    if name != "large":  # whose variance is beyond float32
        channels = np.ascontiguousarray(x.T)
        y, *_ = gpu.ops.batch_norm_train(up(channels), up(weight[:4]), up(bias[:4]), EPSILON)
        close(gpu.read(y), normal.T)
