"""Convolutions and their cotangents: tiled and plain kernels over random geometry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from phlox_tensor.reference import convolution
from phlox_tensor.shapes._window import window_sizes
from phlox_wgpu import Wgpu, _conv
from phlox_wgpu._array import GpuArray
from phlox_wgpu._kernel import source
from phlox_wgpu.products import plans as _plans
from phlox_wgpu.wgsl.conv import Conv, WeightGrad, conv_source, weight_source
from phlox_wgpu.wgsl.tile import Tile

ref: Any = convolution
Array = np.ndarray[Any, Any]
Up = Callable[[Any], GpuArray]

TINY = Tile(16, 16, 8, 4, 4)


@dataclass(frozen=True)
class Geometry:
    image: tuple[int, int, int, int]
    channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: Any = ((0, 0), (0, 0))
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    @property
    def weight(self) -> tuple[int, ...]:
        return (self.channels, self.image[1] // self.groups, *self.kernel)

    @property
    def result(self) -> tuple[int, ...]:
        size = window_sizes(
            "conv2d", self.image[2:], self.kernel, self.stride, self.padding, self.dilation
        )
        return (self.image[0], self.channels, *size)

    @property
    def rest(self) -> tuple[Any, ...]:
        return (self.stride, self.padding, self.dilation, self.groups)


GEOMETRIES = {
    "dilated": Geometry((2, 3, 13, 11), 20, (3, 2), (1, 1), ((2, 1), (0, 3)), (2, 3)),
    "groups": Geometry((2, 12, 6, 8), 18, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
    "many channels": Geometry((1, 20, 5, 5), 33, (3, 3), (1, 1), ((1, 1), (1, 1))),
    "one by one": Geometry((3, 8, 4, 4), 17, (1, 1)),
    "one by one, groups": Geometry((2, 8, 3, 5), 12, (1, 1), groups=4),
    "one by one, strided": Geometry((2, 5, 7, 7), 6, (1, 1), (2, 2)),
    "plain": Geometry((2, 4, 8, 8), 16, (3, 3), (1, 1), ((1, 1), (1, 1))),
    "row": Geometry((2, 3, 1, 30), 5, (1, 5), (1, 1), ((0, 0), (2, 2))),
    "strided": Geometry((2, 5, 12, 9), 7, (3, 4), (2, 3), ((1, 2), (2, 0))),
    "strided, dilated": Geometry((1, 4, 17, 16), 8, (3, 3), (2, 4), ((3, 3), (2, 2)), (2, 2)),
    "stride past the kernel": Geometry((1, 2, 11, 11), 3, (2, 2), (3, 4)),
}


def random_geometries(count: int) -> dict[str, Geometry]:
    rng = np.random.default_rng(7)
    found: dict[str, Any] = {}
    while len(found) < count:
        groups, kernel = int(rng.integers(1, 4)), tuple(rng.integers(1, 5, 2).tolist())
        channels = [int(rng.integers(1, 6)) * groups for _ in range(2)]
        image = (int(rng.integers(1, 4)), channels[0], *rng.integers(4, 14, 2).tolist())
        padding = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (2, 2)))
        stride, dilation = (tuple(rng.integers(1, 4, 2).tolist()) for _ in range(2))
        room = [
            n + sum(p) - d * (k - 1)
            for n, p, d, k in zip(image[2:], padding, dilation, kernel, strict=True)
        ]
        if min(room) > 0:
            made = Geometry(image, channels[1], kernel, stride, padding, dilation, groups)
            found[f"random {len(found)}"] = made
    return found


ALL = GEOMETRIES | random_geometries(12)


@pytest.fixture(params=["plain", "tiled", "split"])
def kernels(request: Any, gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which kernels run, whatever the sizes."""
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", request.param == "plain")
    if request.param != "plain":
        parts = 1 if request.param == "tiled" else 3
        monkeypatch.setattr(_conv, "_FEW_ROWS", 0)
        monkeypatch.setattr(_conv, "_DEEP", 1)
        monkeypatch.setattr(_conv, "choose_tile", lambda *sizes: (TINY, parts))
        monkeypatch.setattr(_conv, "ENOUGH_GROUPS", 1 if parts == 1 else 64)
    return str(request.param)


def operands(geometry: Geometry, dtype: str) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(11)
    shapes = (geometry.image, geometry.weight, (geometry.channels,), geometry.result)
    x, weight, bias, g = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    return x, weight, bias, g


def check(gpu: Wgpu, up: Up, geometry: Geometry, dtype: str) -> None:
    x, weight, bias, g = operands(geometry, dtype)
    wide: Any = [a.astype(np.float64) for a in (x, weight, bias, g)]
    device, rest = gpu.device, geometry.rest
    results = [
        (_conv.conv2d(device, up(x), up(weight), up(bias), *rest), ref.conv2d(*wide[:3], *rest)),
        (_conv.conv2d(device, up(x), up(weight), None, *rest), ref.conv2d(*wide[:2], None, *rest)),
        (
            _conv.conv2d_input_grad(device, up(g), up(weight), geometry.image, *rest),
            ref.conv2d_input_grad(wide[3], wide[1], geometry.image, *rest),
        ),
        (
            _conv.conv2d_weight_grad(device, up(g), up(x), geometry.weight, *rest),
            ref.conv2d_weight_grad(wide[3], wide[0], geometry.weight, *rest),
        ),
    ]
    for number, (got, want) in enumerate(results):
        values = gpu.read(got)
        assert values.shape == want.shape
        assert values.dtype == dtype
        tolerance = (2e-5 if dtype == "float32" else 1e-2) * np.abs(want).max(initial=1)
        np.testing.assert_allclose(
            values.astype(np.float64), want, rtol=0, atol=tolerance, err_msg=f"result {number}"
        )


@pytest.mark.parametrize("name", sorted(ALL))
def test_against_the_reference(gpu: Wgpu, up: Up, name: str, kernels: str) -> None:
    del kernels
    check(gpu, up, ALL[name], "float32")


def test_half_precision(gpu: Wgpu, up: Up, kernels: str) -> None:
    del kernels
    for name in ("groups", "plain", "strided"):
        check(gpu, up, GEOMETRIES[name], "float16")


def test_depthwise_takes_the_plain_kernel(gpu: Wgpu, up: Up) -> None:
    check(gpu, up, Geometry((2, 6, 9, 7), 6, (3, 3), (2, 1), ((1, 1), (1, 1)), groups=6), "float32")
    check(gpu, up, Geometry((2, 3, 9, 7), 6, (3, 3), (1, 1), ((1, 1), (1, 1)), groups=3), "float32")


@pytest.mark.parametrize("layout", ["channels last", "reversed", "repeated", "cropped"])
def test_any_layout(gpu: Wgpu, up: Up, layout: str) -> None:
    geometry = GEOMETRIES["strided"]
    x, weight, bias, g = (up(a) for a in operands(geometry, "float32"))
    rest = geometry.rest

    def view(a: GpuArray) -> GpuArray:
        if layout == "channels last":
            _, c, h, w = a.shape
            return a.view(a.shape, (h * w * c, 1, w * c, c), 0)
        if layout == "reversed":
            return a.view(a.shape, tuple(-s for s in a.strides), a.size - 1)
        if layout == "repeated":
            return a.view(a.shape, (0, 0, *a.strides[2:]), 0)
        larger = gpu.ops.pad(a, ((1, 0), (0, 1), (2, 1), (1, 2)), 9.0)
        return gpu.ops.slice(larger, (1, 0, 2, 1), a.shape, (1, 1, 1, 1))

    x, weight, g = view(x), view(weight), view(g)
    wide: Any = [gpu.read(a).astype(np.float64) for a in (x, weight, bias, g)]
    got = [
        gpu.ops.conv2d(x, weight, bias, *rest),
        gpu.ops.conv2d_input_grad(g, weight, geometry.image, *rest),
        gpu.ops.conv2d_weight_grad(g, x, geometry.weight, *rest),
    ]
    want = [
        ref.conv2d(*wide[:3], *rest),
        ref.conv2d_input_grad(wide[3], wide[1], geometry.image, *rest),
        ref.conv2d_weight_grad(wide[3], wide[0], geometry.weight, *rest),
    ]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(gpu.read(a), b, rtol=0, atol=2e-5 * np.abs(b).max())


def test_a_nan_stays_where_windows_hold_it(gpu: Wgpu, up: Up, kernels: str) -> None:
    del kernels
    x, weight = np.ones((1, 2, 6, 6), np.float32), np.ones((5, 2, 3, 3), np.float32)
    x[0, 1, 0, 0] = np.nan
    rest: Any = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    got = gpu.read(_conv.conv2d(gpu.device, up(x), up(weight), None, *rest))
    want = np.full((1, 5, 4, 4), 18.0)
    want[:, :, 0, 0] = np.nan
    np.testing.assert_array_equal(got, want)


def test_positions_past_the_last_do_not_leak_special_values(
    gpu: Wgpu, up: Up, kernels: str
) -> None:
    del kernels
    rest: Any = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    g, x = np.ones((2, 5, 6, 5), np.float32), np.ones((2, 2, 8, 7), np.float32)
    x[1, :, 7] = np.nan  # the third row of taps alone meets it
    got = gpu.read(_conv.conv2d_weight_grad(gpu.device, up(g), up(x), (5, 2, 3, 3), *rest))
    want = np.full((5, 2, 3, 3), 60.0)
    want[:, :, 2] = np.nan
    np.testing.assert_array_equal(got, want)


def test_no_images(gpu: Wgpu, up: Up) -> None:
    rest: Any = ((1, 1), ((0, 0), (0, 0)), (1, 1), 1)
    x, g = up(np.zeros((0, 2, 5, 5), np.float32)), up(np.zeros((0, 3, 3, 3), np.float32))
    weight = up(np.ones((3, 2, 3, 3), np.float32))
    assert gpu.read(gpu.ops.conv2d(x, weight, None, *rest)).shape == (0, 3, 3, 3)
    grad = gpu.read(gpu.ops.conv2d_weight_grad(g, x, (3, 2, 3, 3), *rest))
    np.testing.assert_array_equal(grad, np.zeros((3, 2, 3, 3)))


def test_a_weight_grad_has_the_same_bits_again(gpu: Wgpu, up: Up, kernels: str) -> None:
    del kernels
    geometry = GEOMETRIES["groups"]
    x, _, _, g = operands(geometry, "float32")
    device, rest = gpu.device, geometry.rest
    runs = [
        gpu.read(_conv.conv2d_weight_grad(device, up(g), up(x), geometry.weight, *rest))
        for _ in range(3)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_phases_cover_every_pixel_once() -> None:
    for size, taps, stride, before, dilation in [(7, 3, 2, 1, 1), (9, 2, 3, 0, 2), (5, 1, 4, 0, 1)]:
        seen = np.zeros(size, int)
        for axis, _, _ in _conv._phases(size, 3, taps, stride, before, dilation):
            seen[axis.first :: axis.every][: axis.count] += 1
        assert (seen == 1).all()


@pytest.mark.parametrize("channels", [16, 32, 48, 64, 100, 128])
def test_tiles_are_not_filled_with_padding(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch, channels: int
) -> None:
    monkeypatch.setattr(gpu.device, "software", False)
    tile, parts = _plans.choose_tile(gpu.device, channels, 32 * 56 * 56, 576, 1)
    assert (tile.columns, parts) == (128, 1)
    rows, _ = tile.cut(channels, 1)
    assert rows * tile.rows < channels + 32


def test_text_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    spec = Conv(TINY, "f32", True, True, True, True, False)
    golden("conv_tiny", source(conv_source(spec)))
    golden("conv_weight_tiny", source(weight_source(WeightGrad(TINY, "f16", False, True))))


@pytest.mark.parametrize("name", ["plain", "groups", "dilated"])
def test_zeros_of_the_padding_meet_infinite_weights(
    gpu: Wgpu, up: Up, name: str, kernels: str
) -> None:
    geometry = GEOMETRIES[name]
    x, weight, _, g = operands(geometry, "float32")
    weight[..., 0, 0] = np.inf
    g[..., 0, 0] = np.inf
    with np.errstate(invalid="ignore"):
        want = ref.conv2d(x, weight, None, *geometry.rest)
        slope = ref.conv2d_weight_grad(g, x, geometry.weight, *geometry.rest)
    assert np.isnan(want).any()
    assert np.isnan(slope).any()
    got = gpu.read(gpu.ops.conv2d(up(x), up(weight), None, *geometry.rest))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    got = gpu.read(gpu.ops.conv2d_weight_grad(up(g), up(x), geometry.weight, *geometry.rest))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(slope))


@pytest.mark.parametrize(
    "geometry",
    [
        Geometry((1, 35_000, 1, 2), 2, (1, 2)),
        Geometry((1, 1, 280, 280), 1, (280, 280)),
    ],
    ids=["channels", "taps"],
)
def test_windows_longer_than_loops_of_software(gpu: Wgpu, up: Up, geometry: Geometry) -> None:
    x = np.ones(geometry.image, np.float32)
    weight = np.ones(geometry.weight, np.float32)
    got = gpu.read(gpu.ops.conv2d(up(x), up(weight), None, *geometry.rest))
    np.testing.assert_array_equal(got, np.full(geometry.result, float(weight[0].size)))
