"""Matrix products: every kernel, edges of tiles, layouts, batches, special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray
from phlox_wgpu._kernel import source
from phlox_wgpu.products import matmul as _matmul
from phlox_wgpu.products import plans as _plans
from phlox_wgpu.wgsl.matmul import Matmul, Reading, matmul_source
from phlox_wgpu.wgsl.tile import Tile

Array = np.ndarray[Any, Any]
Up = Callable[[Any], GpuArray]
Make = Callable[..., _plans.Plan]

TINY = Tile(16, 16, 8, 4, 4)
TOLERANCE = {"float16": 2e-2, "float32": 2e-5}


@pytest.fixture
def hardware(gpu: Wgpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Choose kernels as on a GPU, also where the adapter is software."""
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", False)
    yield
    gpu.device.plans.clear()


def close(got: Array, want: Array, dtype: str = "float32") -> None:
    scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=TOLERANCE[dtype] * scale)


def turned(up: Up, values: Array, turn: bool) -> GpuArray:
    """The same matrix, stored by columns when `turn`."""
    if not turn:
        return up(values)
    x = up(np.ascontiguousarray(values.swapaxes(-1, -2)))
    rank = len(x.shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    return x.view(tuple(x.shape[i] for i in order), tuple(x.strides[i] for i in order), 0)


def run(gpu: Wgpu, make: Make, a: GpuArray, b: GpuArray, bias: GpuArray | None) -> Array:
    """Run the plan that `make` gives for a product."""
    batch = a.shape[:-2]
    found = _matmul._matrices(a, b, batch)
    assert found is not None
    shape = (*batch, a.shape[-2], b.shape[-1])
    step = None if bias is None else bias.strides[0]
    plan = make(found, a.wgsl, (a.offset, b.offset), shape, step)
    return gpu.read(_matmul._run(gpu.device, plan, (a, b), bias))


def tiled(gpu: Wgpu, tile: Tile, parts: int) -> Make:
    return lambda found, *rest: _plans.plan_tiled(gpu.device, found, tile, parts, *rest)


def thin(gpu: Wgpu) -> Make:
    return lambda *rest: _plans.plan_thin(gpu.device, *rest)


def draw(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.normal(size=shape).astype(dtype)


def check(
    gpu: Wgpu,
    up: Up,
    rng: np.random.Generator,
    make: Make,
    sizes: tuple[int, int, int],
    turn: tuple[bool, ...],
    batch: tuple[int, ...] = (),
    dtype: str = "float32",
) -> None:
    m, n, k = sizes
    a = draw(rng, *batch, m, k, dtype=dtype)
    b = draw(rng, *batch, k, n, dtype=dtype)
    bias = draw(rng, n, dtype=dtype)
    got = run(gpu, make, turned(up, a, turn[0]), turned(up, b, turn[1]), up(bias))
    assert got.dtype == dtype
    close(got, a.astype(np.float64) @ b.astype(np.float64) + bias, dtype)


EDGES = [(16, 16, 8), (15, 17, 9), (17, 15, 7), (32, 36, 40), (1, 16, 8), (3, 4, 0), (33, 1, 23)]


@pytest.mark.parametrize("turn", list(product((False, True), repeat=2)), ids=str)
@pytest.mark.parametrize("sizes", EDGES, ids=str)
def test_tiles_and_their_edges(
    gpu: Wgpu, up: Up, rng: np.random.Generator, sizes: tuple[int, int, int], turn: Any
) -> None:
    check(gpu, up, rng, tiled(gpu, TINY, 1), sizes, turn)
    check(gpu, up, rng, tiled(gpu, TINY, 3), sizes, turn, batch=(2,))


@pytest.mark.parametrize("tile", _plans.RATES, ids=lambda t: f"{t.rows}x{t.columns}")
def test_the_tiles_of_a_gpu(gpu: Wgpu, up: Up, rng: np.random.Generator, tile: Tile) -> None:
    check(gpu, up, rng, tiled(gpu, tile, 1), (tile.rows + 4, tile.columns + 8, 68), (False, False))


def test_half_precision_tiles(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    for turn in product((False, True), repeat=2):
        check(gpu, up, rng, tiled(gpu, TINY, 1), (20, 24, 44), turn, dtype="float16")
        check(gpu, up, rng, tiled(gpu, TINY, 2), (19, 23, 45), turn, dtype="float16")


@pytest.mark.parametrize(
    "sizes", [(1, 300, 520), (300, 2, 520), (4, 5, 3), (4, 301, 77), (1, 1, 5000), (3, 64, 2051)]
)
def test_thin_operands(
    gpu: Wgpu, up: Up, rng: np.random.Generator, sizes: tuple[int, int, int]
) -> None:
    for turn in product((False, True), repeat=2):
        check(gpu, up, rng, thin(gpu), sizes, turn)
        check(gpu, up, rng, thin(gpu), sizes, turn, batch=(2,))
    check(gpu, up, rng, thin(gpu), sizes, (False, True), dtype="float16")


def test_rows_past_the_end_do_not_leak_special_values(gpu: Wgpu, up: Up) -> None:
    # The last row is read again for the rows that fill the tile up; the inner rest must be 0.
    a, b = np.ones((17, 9), np.float32), np.ones((9, 18), np.float32)
    a[16, 8], b[8, 17] = np.nan, np.inf
    got = run(gpu, tiled(gpu, TINY, 1), up(a), up(b), None)
    want = np.full((17, 18), 9.0)
    want[:, 17], want[16] = np.inf, np.nan
    np.testing.assert_array_equal(got, want)


def test_a_long_inner_dimension(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    a, b = rng.random((9, 30_000), np.float32), rng.random((30_000, 7), np.float32)
    want = a.astype(np.float64) @ b.astype(np.float64)
    for make, rows in ((tiled(gpu, TINY, 1), 9), (tiled(gpu, TINY, 40), 9), (thin(gpu), 4)):
        got = run(gpu, make, up(a[:rows]), up(b), None)
        np.testing.assert_allclose(got, want[:rows], rtol=2e-5)


def test_a_split_gives_the_same_bits_again(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    a, b = up(draw(rng, 20, 999)), up(draw(rng, 999, 20))
    first = run(gpu, tiled(gpu, TINY, 7), a, b, None)
    for _ in range(3):
        np.testing.assert_array_equal(run(gpu, tiled(gpu, TINY, 7), a, b, None), first)


def views(x: GpuArray) -> dict[str, GpuArray]:
    """The same shape under other strides (other values, too)."""
    rank = len(x.shape)
    last, before = x.strides[-1], x.strides[-2] if rank > 1 else 0
    flipped = x.view(
        x.shape,
        tuple(-s for s in x.strides),
        x.offset + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True)),
    )
    found = {"dense": x, "reversed": flipped, "repeated": x.view(x.shape, (0,) * rank, 3)}
    if rank > 1:
        found["one row"] = x.view(x.shape, (*x.strides[:-2], 0, last), x.offset)
        found["one column"] = x.view(x.shape, (*x.strides[:-2], before, 0), x.offset)
    return found


@pytest.mark.parametrize("shapes", [((70, 9), (9, 70)), ((2, 70, 9), (9, 66)), ((9,), (9, 5))])
def test_any_layout(
    gpu: Wgpu, up: Up, rng: np.random.Generator, shapes: Any, hardware: None
) -> None:
    del hardware
    a, b = (up(draw(rng, *shape)) for shape in shapes)
    for (_, x), (_, y) in product(views(a).items(), views(b).items()):
        want = gpu.read(x).astype(np.float64) @ gpu.read(y).astype(np.float64)
        close(gpu.read(_matmul.matmul(gpu.device, x, y)), want)


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 1, 3, 5, 6), (4, 1, 6, 7)),  # three batch axes that do not merge
        ((3, 1, 70, 20), (2, 20, 70)),
        ((5, 4, 8), (8,)),
        ((8,), (5, 8, 4)),
        ((0, 4, 8), (8, 3)),
        ((2, 3, 0), (2, 0, 4)),
        ((300, 40, 5), (5, 3)),
    ],
    ids=str,
)
def test_batches_broadcast(
    gpu: Wgpu, up: Up, rng: np.random.Generator, shapes: Any, hardware: None
) -> None:
    del hardware
    a, b = (draw(rng, *shape) for shape in shapes)
    got = gpu.read(gpu.ops.matmul(up(a), up(b)))
    want = a.astype(np.float64) @ b
    assert got.shape == want.shape
    close(got, want)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_wrap(gpu: Wgpu, up: Up, rng: np.random.Generator, dtype: str) -> None:
    a, b = (rng.integers(0, 2**31, shape).astype(dtype) for shape in ((2, 17, 33), (33, 65)))
    np.testing.assert_array_equal(gpu.read(gpu.ops.matmul(up(a), up(b))), a @ b)


def test_a_bias_of_any_stride(gpu: Wgpu, up: Up, rng: np.random.Generator, hardware: None) -> None:
    del hardware
    x, w, bias = draw(rng, 5, 6), draw(rng, 6, 40), draw(rng, 80)
    half = up(bias).view((40,), (-2,), 79)
    got = gpu.read(_matmul.linear(gpu.device, up(x), up(w), half))
    close(got, x.astype(np.float64) @ w + bias[::-2])


def test_tiles_are_chosen_by_size(gpu: Wgpu, hardware: None) -> None:
    del hardware
    chosen = [_plans.choose_tile(gpu.device, n, n, n, 1) for n in (64, 1024, 4096)]
    assert chosen == [(_plans.HALF, 1), (_plans.MEDIUM, 1), (_plans.WIDE, 1)]
    assert _plans.choose_tile(gpu.device, 256, 1568, 2304, 1) == (_plans.LARGE, 9)
    assert _plans.choose_tile(gpu.device, 64, 256, 784, 1)[1] > 1


def test_a_tile_that_its_threads_do_not_fit_is_refused() -> None:
    rows = Reading(k_contiguous=False, vector=False)
    with pytest.raises(ValueError, match="12 threads"):
        matmul_source(Matmul(Tile(8, 24, 8, 4, 4), "f32", rows, rows, True, False, False, False))


def test_text_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    rows, columns = (
        Reading(k_contiguous=True, vector=False),
        Reading(k_contiguous=False, vector=True),
    )
    spec = Matmul(_plans.MEDIUM, "f32", rows, columns, False, True, False, False)
    golden("matmul_medium", source(matmul_source(spec)))
    spec = Matmul(
        TINY, "f16", Reading(False, False), Reading(True, False), True, False, True, False
    )
    golden("matmul_tiny_ragged_bias", source(matmul_source(spec)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize("left", [(1, 70_000), (70_000,), (2, 3, 70_000)], ids=str)
def test_inner_lengths_that_loops_of_software_end_before(
    gpu: Wgpu, up: Up, left: tuple[int, ...], dtype: str
) -> None:
    x, y = np.ones(left, dtype), np.ones((70_000, 2), dtype)
    y[:] = [0.25, 0.5] if dtype != "int32" else [1, 3]
    want = np.broadcast_to(70_000 * y[0].astype(np.float64), (*left[:-1], 2))
    if gpu.is_software and dtype == "int32":
        with pytest.raises(pt.DeviceError, match=r"matmul.*cut loops short"):
            gpu.ops.matmul(up(x), up(y))
        return
    np.testing.assert_allclose(
        gpu.read(gpu.ops.matmul(up(x), up(y))), want, rtol=1e-3 if dtype == "float16" else 1e-5
    )
