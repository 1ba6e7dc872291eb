"""Products on tensor cores: when they are taken, and their kernel, with the squares played.

What stands for the functions of the hardware is written here in plain WGSL, so that any adapter
runs the rest of the kernel: which elements come where, and which results go where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.reference import convolution
from phlox_wgpu import Wgpu, _conv
from phlox_wgpu._array import GpuArray
from phlox_wgpu._kernel import Kernel
from phlox_wgpu.convolutions import tensor
from phlox_wgpu.products import (
    matmul as _matmul,
)
from phlox_wgpu.products import (
    tensor_cores as _tensor_cores,
)
from phlox_wgpu.products import (
    tensor_plans as _tensor_plans,
)
from phlox_wgpu.products.tensor_cores import tile_of
from phlox_wgpu.wgsl import cooperative_conv
from phlox_wgpu.wgsl.cooperative import Cooperative, CooperativeTile, cooperative_source
from phlox_wgpu.wgsl.tile import Tile

ref: Any = convolution
Up = Callable[[Any], GpuArray]
TINY = CooperativeTile(32, 32, 16, 32, 16, 16)  # each thread of a subgroup has a row of squares
TINIER = CooperativeTile(16, 32, 16, 16, 16, 16)
PLAYED = """
var<private> row: i32;
fn zero(z: i32) { for (var i = 0; i < 16; i++) { squares[z + 16 * row + i] = 0.0; } }
fn multiply(x: i32, y: i32, z: i32) {
  workgroupBarrier();
  for (var i = 0; i < 16; i++) {
    for (var k = 0; k < 16; k++) {
      squares[z + 16 * row + i] += squares[x + 16 * row + k] * squares[y + 16 * k + i];
    }
  }
  workgroupBarrier();
}
fn store(z: i32, at: i32, pitch: i32) {
  for (var i = 0; i < 16; i++) { results[at + row * pitch + i] = squares[z + 16 * row + i]; }
}
fn scale(z: i32, by: f32) { for (var i = 0; i < 16; i++) { squares[z + 16 * row + i] *= by; } }
fn add(z: i32, x: i32) {
  for (var i = 0; i < 16; i++) { squares[z + 16 * row + i] += squares[x + 16 * row + i]; }
}
"""
LOAD = """
fn load{how}_{side}(z: i32, at: i32, pitch: i32) {{
  for (var i = 0; i < 16; i++) {{
    squares[z + {place}] = f32(tile_{side}[at + row * pitch + i / 4][i % 4]);
  }}
}}
"""


def played(spec: Cooperative) -> Kernel:
    """The kernel of a product."""
    return with_squares(cooperative_source(spec), spec.tile, spec.halves, spec.partial)


def with_squares(
    kernel: Kernel, tile: CooperativeTile, halves: bool = False, partial: bool = False
) -> Kernel:
    """A kernel with a place in workgroup memory for each square."""
    body = re.sub(
        r"let (\w+) = coopLoad(T?)<\S+>\(&tile_(\w+)\[(\w+)\], (\w+)\)",
        r"load\2_\3(\1, \4, i32(\5))",
        kernel.body,
    )
    body = re.sub(r"var (\w+) = coop_mat16x16<f32,C>\(\)", r"zero(\1)", body)
    body = re.sub(r"\w+ = coopMultiplyAdd", "multiply", body)
    body = re.sub(r"(t\d_0) = \1 \* (\S+);", r"scale(\1, \2);", body)
    body = re.sub(r"(c\d_0) = \1 \+ (t\d_0)", r"add(\1, \2)", body)
    out = "out0" if partial else "results"
    body = re.sub(r"coopStoreT\((\w+), &\w+\[(\w+)\], (\w+)", r"store(\1, \2, i32(\3)", body)
    names = sorted(set(re.findall(r"\b(?:[ct]\d_0|[ab]_s(?:_low)?0_\d)\b", body)))
    count = len(names)
    assert count == (6 if halves else 5)
    places = [f"let {x} = 256 * ({count} * subgroup + {i});" for i, x in enumerate(names)]
    body = re.sub(
        r"(let subgroup = .*\n)", "\\1row = lane % 16;\n" + "\n".join(places) + "\n", body
    )
    assert "coop" not in body
    body += f"var<workgroup> squares: array<f32, {256 * count * tile.subgroups}>;\n"
    for side in ("a", "b", *(("a_low", "b_low") if halves else ())):
        for how, place in (("T", "16 * row + i"), ("", "16 * i + row")):
            body += LOAD.format(how=how, side=side, place=place)
    return replace(kernel, body=body + PLAYED.replace("results", out), enables=())


@pytest.fixture
def half(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if pt.float16 not in gpu.dtypes:
        pytest.skip("this adapter has no float16")
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", False)
    monkeypatch.setattr(
        _tensor_plans, "tile_of", lambda _, m, n, k, __: (TINY, k > 512 and not (m % 32 or n % 32))
    )
    monkeypatch.setattr(_tensor_plans, "cooperative_source", played)
    yield
    gpu.device.plans.clear()


@pytest.mark.parametrize(
    ("turned", "m", "n", "k"),
    [
        *[(turned, 40, 68, 36) for turned in ("", "a", "b", "ab")],
        ("ab", 32, 32, 32),
        ("", 64, 32, 528),  # in parts
    ],
)
def test_squares_come_from_where_operands_lie(
    gpu: Wgpu, up: Up, half: None, m: int, n: int, k: int, turned: str, dispatches: list[int]
) -> None:
    del half
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))

    def laid(x: Any, name: str) -> GpuArray:
        if name not in turned:
            return up(x)
        return gpu.ops.permute_dims(up(np.ascontiguousarray(x.T)), (1, 0))

    got = gpu.read(gpu.ops.matmul(laid(a, "a"), laid(b, "b")))
    np.testing.assert_array_equal(got, a.astype("f8") @ b.astype("f8"))
    assert len(dispatches) == (2 if k > 512 else 1)


def test_batches_and_biases(gpu: Wgpu, up: Up, half: None) -> None:
    del half
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((3, 1, 36, 32), (2, 32, 40)))
    got = gpu.read(gpu.ops.matmul(up(a), up(b)))
    np.testing.assert_array_equal(got, a.astype("f8") @ b.astype("f8"))
    x, weight, bias = (rng.integers(-4, 5, s).astype("f2") for s in ((50, 20), (20, 36), (72,)))
    every_other = up(bias).view((36,), (-2,), 71)
    got = gpu.read(_matmul.linear(gpu.device, up(x), up(weight), every_other))
    np.testing.assert_array_equal(got, x.astype("f8") @ weight + bias[::-2])


@pytest.fixture
def halves(half: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del half
    monkeypatch.setattr(_tensor_plans, "halves_tile", lambda *_: TINIER)
    monkeypatch.setattr(_tensor_plans, "choose_tile", lambda *_: (Tile(16, 16, 16, 4, 4), 1))


def _spread(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape) * 10 ** rng.uniform(-20, 15, shape)


HARD: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "normal": lambda rng: (rng.standard_normal((40, 264)), rng.standard_normal((264, 36))),
    "positive": lambda rng: (rng.random((40, 264)), rng.random((264, 36))),
    "cancelling": lambda rng: (
        np.tile(rng.standard_normal((40, 132)), 2),
        np.concatenate([y := rng.standard_normal((132, 36)), -y * (1 + 1e-6)]),
    ),
    "an outlier": lambda rng: (
        np.where(np.arange(264) == 7, 3e5, rng.standard_normal((40, 264))),
        rng.standard_normal((264, 36)),
    ),
    "lines of all sizes": lambda rng: (
        rng.standard_normal((40, 264)) * np.float64(2.0) ** np.arange(-57, 58, 2.9)[:, None],
        rng.standard_normal((264, 36)) * np.float64(2.0) ** np.arange(57, -58, -3.2)[None],
    ),
    "numbers of all sizes": lambda rng: (_spread(rng, 40, 264), _spread(rng, 264, 36)),
}


@pytest.mark.parametrize("kind", HARD)
def test_halves_are_as_exact_as_float32(
    gpu: Wgpu, up: Up, halves: None, kind: str, rng: np.random.Generator
) -> None:
    del halves
    a, b = (x.astype(np.float32) for x in HARD[kind](rng))
    got = gpu.read(gpu.ops.matmul(up(a), up(b)))
    wide, other = a.astype("f8"), b.astype("f8")
    plain = np.zeros((40, 36), np.float32)
    for column, row in zip(a.T, b, strict=True):
        plain += column[:, None] * row

    def error(product: Any) -> float:
        return float((np.abs(product - wide @ other) / (np.abs(wide) @ np.abs(other))).max())

    assert error(got) <= error(plain)


def test_lines_that_halves_would_spoil_are_multiplied_as_they_are(
    gpu: Wgpu, up: Up, halves: None, rng: np.random.Generator, dispatches: list[int]
) -> None:
    del halves
    a, b = (rng.standard_normal(s).astype("f4") for s in ((3, 1, 40, 72), (2, 72, 36)))
    a[0, 0, 3, 5], a[1, 0, 7, 0], a[2, 0, 11], b[1, 3, 9] = np.inf, np.nan, 0, 1e30
    a[2, 0, 20, :2] = 1e-12, 1
    want = np.matmul(a.astype("f8"), b.astype("f8")).astype("f4")
    got = gpu.read(gpu.ops.matmul(up(a), up(b)))
    assert len(dispatches) == 5
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    bias = rng.standard_normal(72).astype("f4")
    every_other = up(bias).view((36,), (-2,), 71)
    got = gpu.read(_matmul.linear(gpu.device, up(a[1, 0]), up(b[0]), every_other))
    want = a[1, 0].astype("f8") @ b[0] + bias[::-2]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.fixture
def convolutions(half: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del half
    monkeypatch.setattr(tensor, "tile_of", lambda *_: TINY)
    for name in ("cooperative_conv", "cooperative_weight"):
        make = getattr(cooperative_conv, name)

        def source(spec: Any, make: Any = make) -> Kernel:
            return with_squares(make(spec), getattr(spec, "tile", spec))

        monkeypatch.setattr(tensor, name, source)


@pytest.mark.parametrize(
    ("image", "weight", "stride", "padding", "dilation", "groups"),
    [
        ((3, 8, 8, 8), (40, 8, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        ((2, 20, 7, 9), (32, 20, 2, 3), (1, 1), ((0, 1), (2, 0)), (2, 1), 1),
        ((2, 16, 9, 9), (24, 8, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), 2),
        ((5, 4, 6, 6), (36, 4, 3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ],
)
def test_convolutions_and_their_cotangents(
    gpu: Wgpu,
    up: Up,
    convolutions: None,
    image: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del convolutions
    taken: list[int] = []
    for name in ("plan_tensor", "plan_weight_tensor"):
        plan = getattr(_conv, name)

        def counted(*given: Any, plan: Any = plan) -> Any:
            found = plan(*given)
            taken.append(found is not None)
            return found

        monkeypatch.setattr(_conv, name, counted)
    rng = np.random.default_rng(1)
    rest = (stride, padding, dilation, groups)
    x, w = (rng.integers(-2, 3, shape).astype("f2") for shape in (image, weight))
    bias = rng.integers(-4, 5, weight[0]).astype("f2")
    want = ref.conv2d(x.astype("f4"), w.astype("f4"), bias.astype("f4"), *rest)
    np.testing.assert_array_equal(gpu.read(gpu.ops.conv2d(up(x), up(w), up(bias), *rest)), want)
    g = rng.integers(-2, 3, want.shape).astype("f2")
    wide = [v.astype("f4") for v in (g, x, w)]
    found = gpu.read(gpu.ops.conv2d_input_grad(up(g), up(w), image, *rest))
    want = ref.conv2d_input_grad(wide[0], wide[2], image, *rest)
    np.testing.assert_array_equal(found, want)
    found = gpu.read(gpu.ops.conv2d_weight_grad(up(g), up(x), weight, *rest))
    want = ref.conv2d_weight_grad(wide[0], wide[1], weight, *rest)
    np.testing.assert_array_equal(found, want)
    assert sum(taken) >= 2


def test_tiles_need_tensor_cores_and_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(lanes: int, memory: int = 49_152) -> Any:
        limits = {"max-compute-workgroup-storage-size": memory}
        return SimpleNamespace(tensor_lanes=lanes, limits=limits)

    def shape(device: Any, *sizes: int) -> tuple[int, int, bool] | None:
        found = tile_of(device, *sizes)
        return None if found is None else (found[0].rows, found[0].columns, found[1])

    assert shape(device(32), 4096, 4096, 4096, 1) == (128, 256, False)
    assert shape(device(32), 2048, 2048, 2048, 1) == (128, 256, False)
    assert shape(device(32), 4096, 4096, 256, 1) == (128, 256, False)
    assert shape(device(32), 4096, 4100, 4096, 1) == (128, 256, False)
    assert shape(device(32), 512, 512, 512, 1) == (64, 64, True)
    assert shape(device(32, 32_768), 4096, 4096, 256, 1) == (128, 128, False)
    assert shape(device(32, 16_384), 4096, 4096, 256, 1) is None
    for sizes in ((4096, 4098, 64, 1), (16, 4096, 64, 1), (64, 64, 16, 1)):
        assert shape(device(32), *sizes) is None
    assert shape(device(0), 4096, 4096, 4096, 1) is None

    asked = device(0)
    asked.tensor_lanes = None
    asked.features = frozenset({"shader-f16", "cooperative-matrix"})
    asked.engine = SimpleNamespace(products=[(16, 16, 16, "f16", "f32")], lanes=32)
    monkeypatch.setattr(_tensor_cores, "_multiplies", lambda _: False)
    assert shape(asked, 4096, 4096, 4096, 1) is None, "a wrong first product rules them out"
    assert asked.tensor_lanes == 0
