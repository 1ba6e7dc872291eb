"""Attention by tiles: as the formula gives it, in one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu, _attention
from phlox_wgpu._array import GpuArray
from phlox_wgpu.wgsl.attention import AttentionTile
from phlox_wgpu.wgsl.attention_few import FewQueries
from phlox_wgpu.wgsl.attention_forward import ForwardTile

Up = Callable[[Any], GpuArray]


@pytest.fixture
def tiled(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take tiles here too, of which a small one compiles soon."""
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", False)
    monkeypatch.setattr(_attention, "has_tensor_cores", lambda _: False)
    monkeypatch.setattr(_attention, "_TILES", ((math.inf, ForwardTile(8, 4, 2, 1, 4)),))
    yield
    gpu.device.plans.clear()


def check(
    gpu: Wgpu, up: Up, dispatches: list[int], *operands: Any, **scoring: Any
) -> np.ndarray[Any, Any]:
    given = (scoring.get("scale", 0.5), scoring.get("softcap"), scoring.get("is_causal", False))
    arrays = [None if x is None else x if type(x) is GpuArray else up(x) for x in operands]
    before = len(dispatches)
    got = gpu.ops.attention(*arrays, *given)
    assert len(dispatches) == before + 1
    values = [None if x is None else gpu.read(x) if type(x) is GpuArray else x for x in operands]
    wide = [x.astype("f8") if x is not None and x.dtype.kind == "f" else x for x in values]
    want = pt.Numpy().ops.attention(*wide, *given)
    found = gpu.read(got)
    assert found.shape == want.shape
    epsilon = float(np.finfo(found.dtype).eps)
    np.testing.assert_allclose(found, want, rtol=16 * epsilon, atol=16 * epsilon)
    return found


def test_tiles_and_what_hides_keys(
    gpu: Wgpu, up: Up, tiled: None, dispatches: list[int], rng: np.random.Generator
) -> None:
    del tiled

    def heads(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    q, k, v = heads(2, 4, 37, 8), heads(2, 2, 29, 8), heads(2, 2, 29, 12)
    check(gpu, up, dispatches, q, k, v, None, None)
    check(gpu, up, dispatches, q, k, v, None, None, is_causal=True)
    found = check(gpu, up, dispatches, q[..., :20, :], k, v, None, None, is_causal=True)
    assert np.isfinite(found).all()
    mask = rng.random((2, 1, 37, 29)) < 0.5
    mask[:, :, 5] = True
    bias = np.where(rng.random((4, 1, 29)) < 0.2, -np.inf, heads(4, 1, 29)).astype(np.float32)
    found = check(gpu, up, dispatches, q, k, v, mask, bias, is_causal=True, softcap=1.5)
    assert not found[:, :, 5].any(), "a query that sees nothing gives zeros"
    check(gpu, up, dispatches, q * 40, k, v, None, bias, is_causal=True, softcap=1.5)
    if pt.float16 in gpu.dtypes:
        halves = [up(x.astype(np.float16)) for x in (q, k, v)]
        check(gpu, up, dispatches, *halves, None, None, is_causal=True)
    endless = v.copy()
    endless[1, 1, 28, 3] = np.inf  # of the last key, which no tile takes twice
    found = check(gpu, up, dispatches, q, k, endless, None, None)
    assert np.isinf(found).sum() == 2 * 37
    q[0, 1, 3, 2] = np.nan
    nan = np.isnan(gpu.read(gpu.ops.attention(*map(up, (q, k, v)), None, None, 0.5, None, False)))
    assert nan[0, 1, 3].all()
    assert nan.sum() == 12


@pytest.mark.parametrize(("depth", "columns"), [(8, 12), (20, 8), (64, 64)])
def test_few_queries_share_keys(
    gpu: Wgpu,
    up: Up,
    tiled: None,
    dispatches: list[int],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    depth: int,
    columns: int,
) -> None:
    del tiled
    monkeypatch.setattr(_attention, "_BY_KEYS", FewQueries(32, 16))

    def heads(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape).astype(np.float32)

    q, k, v = heads(2, 4, 3, depth), heads(2, 2, 37, depth), heads(2, 2, 37, columns)
    check(gpu, up, dispatches, q, k, v, None, None)
    check(gpu, up, dispatches, q[..., :1, :], k, v, None, None, is_causal=True)
    mask = rng.random((2, 1, 3, 37)) < 0.5
    mask[:, :, 1] = True
    mask[:, :, 2, :20] = True  # nothing is seen at first
    bias = np.where(rng.random((4, 1, 37)) < 0.2, -np.inf, heads(4, 1, 37)).astype(np.float32)
    found = check(gpu, up, dispatches, q, k, v, mask, bias, is_causal=True, softcap=1.5)
    assert not found[:, :, 1].any(), "a query that sees nothing gives zeros"
    few = check(
        gpu,
        up,
        dispatches,
        heads(1, 2, 9, depth),
        k[:1, :, :3],
        v[:1, :, :3],
        None,
        None,
        is_causal=True,
    )
    assert not few[:, :, :6].any()
    if pt.float16 in gpu.dtypes:
        halves = [up(x.astype(np.float16)) for x in (q, k, v)]
        check(gpu, up, dispatches, *halves, mask, None)
    k[0, 1, 3, 2] = np.nan
    nan = np.isnan(gpu.read(gpu.ops.attention(*map(up, (q, k, v)), None, None, 0.5, None, False)))
    assert nan[0, 2:].all()
    assert nan.sum() == 2 * 3 * columns


def test_threads_with_rows_and_keys_in_several_fours(
    gpu: Wgpu,
    up: Up,
    tiled: None,
    dispatches: list[int],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del tiled
    monkeypatch.setattr(_attention, "_TILES", ((math.inf, ForwardTile(16, 8, 2, 2, 8)),))
    q, k, v = (
        rng.standard_normal((1, 2, n, width)).astype(np.float32)
        for n, width in ((37, 12), (29, 12), (29, 8))
    )
    check(gpu, up, dispatches, q, k, v, None, None, is_causal=True)


def test_heads_are_read_where_they_lie(
    gpu: Wgpu, up: Up, tiled: None, dispatches: list[int], rng: np.random.Generator
) -> None:
    del tiled
    x = up(rng.standard_normal((2, 33, 3, 4, 8)).astype(np.float32))
    q, k, v = (
        gpu.ops.permute_dims(x.view((2, 33, 4, 8), (33 * 96, 96, 8, 1), 32 * i), (0, 2, 1, 3))
        for i in range(3)
    )
    check(gpu, up, dispatches, q, k, v, None, None, is_causal=True)


def test_the_formula_takes_the_rest(
    gpu: Wgpu,
    up: Up,
    tiled: None,
    dispatches: list[int],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del tiled
    for queries, depth, is_causal in (
        (15, 6, True),
        (15, 260, True),
        (16, 6, True),
        (16, 132, True),
        (16, 68, False),
    ):
        x = up(rng.standard_normal((1, queries, depth)).astype(np.float32))
        before = len(dispatches)
        got = gpu.read(gpu.ops.attention(x, x, x, None, None, 0.1, None, is_causal))
        want = pt.Numpy().ops.attention(*[gpu.read(x)] * 3, None, None, 0.1, None, is_causal)
        assert len(dispatches) > before + 1
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    keys = up(np.ones((1, 0, 68), np.float32))
    nothing = gpu.read(gpu.ops.attention(x, keys, keys, None, None, 1.0, None, False))
    assert nothing.shape == (1, 16, 68)
    assert not nothing.any()
    monkeypatch.setattr(gpu.device, "max_binding_bytes", 22_000)  # 80 x 80 scores do not fit
    wide = rng.standard_normal((1, 80, 68)).astype(np.float32)
    check(gpu, up, dispatches, wide, wide, wide, None, None, scale=0.1)


def test_cotangents_by_tiles(
    gpu: Wgpu,
    up: Up,
    tiled: None,
    dispatches: list[int],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del tiled
    monkeypatch.setattr(_attention, "_BACKWARD", (AttentionTile(16, 8),))
    monkeypatch.setattr(gpu.device, "max_binding_bytes", 20_000)

    def pull(dtype: str, *operands: Any, bound: float, **scoring: Any) -> list[Any]:
        given = (0.5, scoring.get("softcap"), scoring.get("is_causal", False))
        narrow = [x if x is None or x.dtype == bool else x.astype(dtype) for x in operands]
        arrays = [None if x is None else up(x) for x in narrow]
        gpu.ops.attention_backward(*arrays, None, *given)  # asks once for tensor cores
        before = len(dispatches)
        got = gpu.ops.attention_backward(*arrays, None, *given)
        assert len(dispatches) == before + 3
        wide = [x if x is None or x.dtype == bool else x.astype("f8") for x in narrow]
        want = pt.Numpy().ops.attention_backward(*wide, None, *given)
        found = [gpu.read(x) for x in got]
        assert [x.shape for x in found] == [x.shape for x in want]
        assert [x.dtype for x in found] == [np.dtype(dtype)] * 4
        for x, y in zip(found, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=bound, atol=bound)
        again = [gpu.read(x) for x in gpu.ops.attention_backward(*arrays, None, *given)]
        assert all(np.array_equal(x, y) for x, y in zip(found, again, strict=True))
        return found

    q, k = rng.standard_normal((2, 4, 37, 8)), rng.standard_normal((2, 2, 29, 8))
    v, g = rng.standard_normal((2, 2, 29, 12)), rng.standard_normal((2, 4, 37, 12))
    pull("float32", g, q, k, v, None, bound=1e-5)
    pull("float32", g, q, k, v, None, bound=1e-5, is_causal=True)
    pull("float32", g[:, :, :20], q[:, :, :20], k, v, None, bound=1e-5, is_causal=True)
    mask = rng.random((2, 1, 37, 29)) < 0.5
    mask[:, :, 5] = True
    found = pull("float32", g, q, k, v, mask, bound=1e-5, is_causal=True, softcap=1.5)
    assert not found[0][:, :, 5].any(), "a query that sees nothing takes nothing"
    if pt.float16 in gpu.dtypes:
        pull("float16", *(x[..., :4] for x in (g, q, k, v)), None, bound=4e-3)


def test_tiles_need_room() -> None:
    for width, tile in _attention._TILES:
        head = 64 if math.isinf(width) else int(width)
        assert tile.threads in (64, 128, 256)
        assert tile.threads * tile.rows * tile.vectors * 4 == tile.own * tile.others
        assert tile.workgroup_bytes(head, head) <= 49_152
    assert _attention._TILES[-1][1].workgroup_bytes(64, 64) <= 16_384, "what every device has"
