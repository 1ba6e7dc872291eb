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
from phlox_wgpu import Wgpu, _matmul, _tensor_cores
from phlox_wgpu._array import GpuArray
from phlox_wgpu._kernel import Kernel
from phlox_wgpu._tensor_cores import tile_of
from phlox_wgpu.wgsl.cooperative import Cooperative, CooperativeTile, cooperative_source

Up = Callable[[Any], GpuArray]
TINY = CooperativeTile(32, 32, 16, 32, 16, 16)  # each thread of a subgroup has a row of squares
SQUARES = 5  # that one subgroup has at a time: two sums, two of a, one of b
PLAYED = f"""
var<workgroup> squares: array<f32, {256 * SQUARES * TINY.subgroups}>;
var<private> row: i32;
fn zero(z: i32) {{ for (var i = 0; i < 16; i++) {{ squares[z + 16 * row + i] = 0.0; }} }}
fn multiply(x: i32, y: i32, z: i32) {{
  workgroupBarrier();
  for (var i = 0; i < 16; i++) {{
    for (var k = 0; k < 16; k++) {{
      squares[z + 16 * row + i] += squares[x + 16 * row + k] * squares[y + 16 * k + i];
    }}
  }}
  workgroupBarrier();
}}
fn store(z: i32, at: i32, pitch: i32) {{
  for (var i = 0; i < 16; i++) {{ results[at + row * pitch + i] = squares[z + 16 * row + i]; }}
}}
"""
LOAD = """
fn load{how}_{side}(z: i32, at: i32, pitch: i32) {{
  for (var i = 0; i < 16; i++) {{
    squares[z + {place}] = f32(tile_{side}[at + row * pitch + i / 4][i % 4]);
  }}
}}
"""


def played(spec: Cooperative) -> Kernel:
    """The kernel of a product, with a place in workgroup memory for each square."""
    kernel = cooperative_source(spec)
    body = re.sub(
        r"let (\w+) = coopLoad(T?)<\S+>\(&tile_(.)\[(\w+)\], (\w+)\)",
        r"load\2_\3(\1, \4, i32(\5))",
        kernel.body,
    )
    body = re.sub(r"var (\w+) = coop_mat16x16<f32,C>\(\)", r"zero(\1)", body)
    body = re.sub(r"\w+ = coopMultiplyAdd", "multiply", body)
    out = "out0" if spec.partial else "results"
    body = re.sub(r"coopStoreT\((\w+), &\w+\[(\w+)\], (\w+)", r"store(\1, \2, i32(\3)", body)
    names = sorted(set(re.findall(r"\b(?:c\d_0|[ab]_s0_\d)\b", body)))
    assert len(names) == SQUARES
    places = [f"let {x} = 256 * ({SQUARES} * subgroup + {i});" for i, x in enumerate(names)]
    body = re.sub(
        r"(let subgroup = .*\n)", "\\1row = lane % 16;\n" + "\n".join(places) + "\n", body
    )
    assert "coop" not in body
    for side in "ab":
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
        _matmul, "tile_of", lambda _, m, n, k, __: (TINY, k > 512 and not (m % 32 or n % 32))
    )
    monkeypatch.setattr(_matmul, "cooperative_source", played)
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


def test_tiles_need_tensor_cores_and_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(lanes: int, memory: int = 49_152) -> Any:
        limits = {"max-compute-workgroup-storage-size": memory}
        return SimpleNamespace(tensor_lanes=lanes, limits=limits)

    def shape(device: Any, *sizes: int) -> tuple[int, int, bool] | None:
        found = tile_of(device, *sizes)
        return None if found is None else (found[0].rows, found[0].columns, found[1])

    assert shape(device(32), 4096, 4096, 4096, 1) == (128, 256, True)
    assert shape(device(32), 4096, 4096, 256, 1) == (128, 128, False)
    assert shape(device(32), 4096, 4100, 4096, 1) == (128, 128, False)
    assert shape(device(32), 512, 512, 512, 1) == (64, 64, True)
    assert shape(device(32, 32_768), 4096, 4096, 256, 1) == (64, 64, False)
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
