"""Attention on tensor cores: its kernel, with the squares and subgroups played by plain WGSL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, update_wrapper
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu, _attention
from phlox_wgpu._array import GpuArray
from phlox_wgpu._kernel import Kernel
from phlox_wgpu.wgsl.attention import Attention
from phlox_wgpu.wgsl.cooperative_attention import (
    CooperativeAttentionTile,
    cooperative_attention_source,
)
from phlox_wgpu.wgsl.cooperative_backward import (
    cooperative_keys,
    cooperative_queries,
    cooperative_rows,
)

Up = Callable[[Any], GpuArray]
TILE = CooperativeAttentionTile(2, 16)
PLAYED = f"""
var<workgroup> squares: array<f32, SIZE>;
var<workgroup> floats: array<f32, {TILE.threads}>;
var<private> place: i32;
fn zero(z: i32) {{
  for (var i = 0; i < 8; i++) {{ squares[z + 8 * (place % 32) + i] = 0.0; }}
}}
fn multiply(x: i32, y: i32, z: i32) {{
  workgroupBarrier();
  for (var i = 0; i < 8; i++) {{
    let at = 8 * (place % 32) + i;
    for (var k = 0; k < 16; k++) {{
      squares[z + at] += squares[x + at / 16 * 16 + k] * squares[y + 16 * k + at % 16];
    }}
  }}
  workgroupBarrier();
}}
fn other(x: f32) -> f32 {{
  floats[place] = x;
  workgroupBarrier();
  let y = floats[place ^ 16];
  workgroupBarrier();
  return y;
}}
fn any_of(x: bool) -> bool {{
  floats[place] = f32(x);
  workgroupBarrier();
  var found = false;
  for (var i = 0; i < {TILE.threads}; i++) {{ found = found || floats[i] == 1.0; }}
  workgroupBarrier();
  return found;
}}
"""
STORE = """
fn store_{array}(z: i32, first: i32, pitch: i32) {{
  for (var i = 0; i < 8; i++) {{
    let at = 8 * (place % 32) + i;
    {array}[first + at / 16 * pitch + at % 16] = squares[z + at];
  }}
}}
"""
LOAD = """
fn load{how}_{array}(z: i32, first: i32, pitch: i32) {{
  for (var i = 0; i < 8; i++) {{
    let at = 8 * (place % 32) + i;
    squares[z + {to}] = {value};
  }}
}}
"""


def played(make: Callable[..., Kernel], spec: Attention[CooperativeAttentionTile]) -> Kernel:
    """The kernel with a place in workgroup memory for each square."""
    kernel = make(spec)
    loads = set(re.findall(r"coopLoad(T?)<.*?>>\(&(\w+)\[", kernel.body))
    loaded = r"(?:let )?(\w+) = coopLoad(T?)<.*?>>\(&(\w+)\[(\w+)\], (\w+)\)"
    body = re.sub(loaded, r"load\2_\3(\1, \4, i32(\5))", kernel.body)
    body = re.sub(r"var (\w+) = coop_mat16x16<f32,C>\(\)", r"zero(\1)", body)
    body = re.sub(r"\w+ = coopMultiplyAdd", "multiply", body)
    stores = set(re.findall(r"coopStoreT\(\w+, &(\w+)\[", body))
    stored = r"coopStoreT\((\w+), &(\w+)\[(\w+)\], (\w+)"
    body = re.sub(stored, r"store_\2(\1, \3, i32(\4)", body)
    body = body.replace("subgroupBarrier", "workgroupBarrier").replace(", 16u)", ")")
    body = body.replace("subgroupShuffleXor", "other").replace("subgroupAny", "any_of")
    names = sorted(set(re.findall(r"(?:var|let) (\w+) = coop", kernel.body)))
    places = [f"let {x} = 256 * ({len(names)} * subgroup + {i});" for i, x in enumerate(names)]
    start = "\n".join(["place = lane;", *places, ""])
    body = re.sub(r"(let own_lane = .*\n)", rf"\1{start}", body)
    assert "coop" not in body
    for how, array in loads:
        element = "{}[first + at / 16 * pitch + {}]"
        value = element.format(array, "at % 16")
        if array != "scores":
            value = f"f32({element.format(array, 'at % 16 / 4')}[at % 4])"
        to = "at" if how else "16 * (at % 16) + at / 16"
        body += LOAD.format(how=how, array=array, to=to, value=value)
    body += "".join(STORE.format(array=array) for array in sorted(stores))
    size = str(256 * len(names) * TILE.subgroups)
    return replace(kernel, body=body + PLAYED.replace("SIZE", size), enables=())


PLAYED_BY = {
    make: update_wrapper(partial(played, make), make)
    for make in (
        cooperative_attention_source,
        cooperative_rows,
        cooperative_queries,
        cooperative_keys,
    )
}


@pytest.fixture
def half(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if pt.float16 not in gpu.dtypes:
        pytest.skip("this adapter has no float16")
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", False)
    monkeypatch.setattr(gpu.device, "tensor_lanes", 32)
    features = gpu.device.features | {"subgroup", "subgroup-barrier"}
    monkeypatch.setattr(gpu.device, "features", features)
    monkeypatch.setattr(_attention, "_COOPERATIVE", ((64, TILE),))
    monkeypatch.setattr(_attention, "_COOPERATIVE_BACKWARD", (TILE,))
    for make, played_by in PLAYED_BY.items():
        monkeypatch.setattr(_attention, make.__name__, played_by)
    played_first = PLAYED_BY[cooperative_attention_source]
    monkeypatch.setitem(_attention._SOURCES, CooperativeAttentionTile, played_first)
    yield
    gpu.device.plans.clear()


def check(
    gpu: Wgpu, dispatches: list[int], arrays: list[Any], scale: float, is_causal: bool
) -> np.ndarray[Any, Any]:
    before = len(dispatches)
    got = gpu.ops.attention(*arrays, scale, None, is_causal)
    assert len(dispatches) == before + 1
    found = gpu.read(got)
    wide = [None if x is None else gpu.read(x) for x in arrays]
    wide = [x.astype("f8") if x is not None and x.dtype.kind == "f" else x for x in wide]
    want = pt.Numpy().ops.attention(*wide, scale, None, is_causal)
    assert found.shape == want.shape
    # Weights and results are of 11 bits.
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-3)
    return found


def test_tiles_and_what_hides_keys(
    gpu: Wgpu, up: Up, half: None, dispatches: list[int], rng: np.random.Generator
) -> None:
    del half

    def heads(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float16)

    q, k, v = heads(2, 4, 37, 16), heads(2, 2, 45, 16), heads(2, 2, 45, 16)
    check(gpu, dispatches, [up(q), up(k), up(v), None, None], 0.3, is_causal=True)
    # Scores that grow from tile to tile, so that what is summed is scaled anew.
    k[:, :, :] *= (1 + np.arange(45)[:, None] / 4).astype(np.float16)
    check(gpu, dispatches, [up(q), up(k), up(v), None, None], 1.0, is_causal=True)
    mask = rng.random((2, 1, 37, 45)) < 0.5
    mask[:, :, 5] = True
    bias = np.where(rng.random((4, 1, 45)) < 0.2, -np.inf, heads(4, 1, 45)).astype(np.float16)
    found = check(gpu, dispatches, [up(x) for x in (q, k, v, mask, bias)], 0.3, is_causal=False)
    assert not found[:, :, 5].any(), "a query that sees nothing gives zeros"


@pytest.mark.long  # llvmpipe compiles float16 for a minute
def test_cotangents_by_tiles(
    gpu: Wgpu, up: Up, half: None, dispatches: list[int], rng: np.random.Generator
) -> None:
    del half

    q, k = rng.standard_normal((2, 4, 37, 16)), rng.standard_normal((2, 2, 45, 16))
    v, g = rng.standard_normal((2, 2, 45, 16)), rng.standard_normal((2, 4, 37, 16))
    mask = rng.random((2, 1, 37, 45)) < 0.5
    mask[:, :, 5] = True
    narrow = [x.astype(np.float16) for x in (g, q, k, v)]
    before = len(dispatches)
    got = gpu.ops.attention_backward(*map(up, narrow), up(mask), None, 0.3, 1.5, True)
    assert len(dispatches) == before + 3
    wide = (x.astype("f8") for x in narrow)
    want = pt.Numpy().ops.attention_backward(*wide, mask, None, 0.3, 1.5, True)
    for x, y in zip(map(gpu.read, got), want, strict=True):
        assert x.shape == y.shape
        # Weights, their cotangents and results are of 11 bits.
        np.testing.assert_allclose(x, y, rtol=4e-3, atol=4e-3)


def test_heads_are_read_where_they_lie(
    gpu: Wgpu, up: Up, half: None, dispatches: list[int], rng: np.random.Generator
) -> None:
    del half
    x = up(rng.standard_normal((2, 33, 3, 4, 16)).astype(np.float16))
    q, k, v = (
        gpu.ops.permute_dims(x.view((2, 33, 4, 16), (33 * 192, 192, 16, 1), 64 * i), (0, 2, 1, 3))
        for i in range(3)
    )
    check(gpu, dispatches, [q, k, v, None, None], 0.3, is_causal=True)


def test_tiles_need_room() -> None:
    for width, tile in _attention._COOPERATIVE:
        assert tile.workgroup_bytes(width, width) <= 49_152
        assert tile.threads == 256
