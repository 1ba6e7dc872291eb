"""Row kernels and norms: a thread per row, rows in registers, loops, parts of channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.reference import reduction, rows
from phlox_wgpu import Wgpu
from phlox_wgpu._array import GpuArray

ref: Any = rows
sums: Any = reduction
Array = np.ndarray[Any, Any]
Up = Callable[[Any], GpuArray]

# One thread per row; registers by ones and by fours, 32 to 256 threads; a loop.
LENGTHS = [7, 33, 100, 257, 600, 1024, 2048, 4000, 5000]
TOLERANCE = {"float16": 4e-3, "float32": 2e-5}


@pytest.fixture(params=["subgroups", "rounds"])
def hardware(
    gpu: Wgpu, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Choose kernels as on a GPU, also where there is none; with subgroups and without."""
    features = gpu.device.features
    if request.param == "rounds":
        features -= {"subgroup"}
    elif "subgroup" not in features:
        pytest.skip("this adapter has no subgroups")
    gpu.device.plans.clear()
    monkeypatch.setattr(gpu.device, "software", False)
    monkeypatch.setattr(gpu.device, "features", features)
    yield
    gpu.device.plans.clear()


def close(gpu: Wgpu, got: Any, want: Any, dtype: str) -> None:
    results = got if isinstance(got, tuple) else (got,)
    expected = want if isinstance(want, tuple) else (want,)
    for number, (a, exact) in enumerate(zip(results, expected, strict=True)):
        values, b = gpu.read(a), np.asarray(exact)
        assert values.shape == b.shape
        assert values.dtype == dtype
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        np.testing.assert_allclose(
            values.astype(np.float64),
            b,
            rtol=TOLERANCE[dtype],
            atol=TOLERANCE[dtype] * scale,
            err_msg=f"result {number}",
        )


def wide(*arrays: Array) -> Any:
    return [a.astype(np.float64) for a in arrays]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax_and_its_kin(
    gpu: Wgpu, up: Up, rng: np.random.Generator, length: int, dtype: str, hardware: None
) -> None:
    del hardware
    x, g = (rng.normal(size=(5, length)).astype(dtype) for _ in range(2))
    x[1], x[2, 3], x[3, 0] = -np.inf, np.nan, -np.inf
    a, b = wide(x, g)
    with np.errstate(invalid="ignore"):
        close(gpu, gpu.ops.softmax(up(x), 1), ref.softmax(a, 1), dtype)
        close(gpu, gpu.ops.log_softmax(up(x), 1), ref.log_softmax(a, 1), dtype)
        close(gpu, gpu.ops.logsumexp(up(x), (1,), True), sums.logsumexp(a, (1,), True), dtype)
    y = rng.random((5, length)).astype(dtype)
    (c,) = wide(y)
    close(gpu, gpu.ops.softmax_backward(up(g), up(y), 1), ref.softmax_backward(b, c, 1), dtype)
    want = ref.log_softmax_backward(b, c, 1)
    close(gpu, gpu.ops.log_softmax_backward(up(g), up(y), 1), want, dtype)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_norms_and_variance(
    gpu: Wgpu, up: Up, rng: np.random.Generator, length: int, dtype: str, hardware: None
) -> None:
    del hardware
    x, g = (rng.normal(size=(70, length)).astype(dtype) for _ in range(2))
    w, b = (rng.normal(size=length).astype(dtype) for _ in range(2))
    x64, g64, w64, b64 = wide(x, g, w, b)
    for weight, bias in ((True, True), (True, False), (False, False)):
        some = [up(v) if there else None for v, there in ((w, weight), (b, bias))]
        same = [v if there else None for v, there in ((w64, weight), (b64, bias))]
        close(gpu, gpu.ops.layer_norm(up(x), *some, 1e-5), ref.layer_norm(x64, *same, 1e-5), dtype)
    for weight in (True, False):
        vector, same_vector = (up(w), w64) if weight else (None, None)
        for name in ("layer_norm_backward", "rms_norm_backward"):
            got = gpu.ops[name](up(g), up(x), vector, 1e-5)
            close(gpu, got, getattr(ref, name)(g64, x64, same_vector, 1e-5), dtype)
        got = gpu.ops.rms_norm(up(x), vector, 1e-5)
        close(gpu, got, ref.rms_norm(x64, same_vector, 1e-5), dtype)
    close(gpu, gpu.ops.std(up(x), (1,), 1.0, False), sums.std(x64, (1,), 1.0, False), dtype)
    close(gpu, gpu.ops.var(up(x), (1,), 1.0, False), sums.var(x64, (1,), 1.0, False), dtype)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_along_any_axis(
    gpu: Wgpu, up: Up, rng: np.random.Generator, axis: int, hardware: None
) -> None:
    del hardware
    for shape in ((3, 40, 5), (2, 1500, 3)):
        x = rng.normal(size=shape).astype(np.float32)
        close(gpu, gpu.ops.softmax(up(x), axis), ref.softmax(*wide(x), axis), "float32")
        flipped = up(x).view(shape[::-1], (-1, -shape[2], -shape[1] * shape[2]), x.size - 1)
        want = ref.softmax(*wide(x[::-1, ::-1, ::-1].T), axis)
        close(gpu, gpu.ops.softmax(flipped, axis), want, "float32")


def test_a_masked_row_is_zero_and_its_gradient_too(gpu: Wgpu, up: Up) -> None:
    y = gpu.ops.softmax(up(np.full((2, 50), -np.inf, np.float32)), 1)
    np.testing.assert_array_equal(gpu.read(y), np.zeros((2, 50)))
    g = gpu.ops.softmax_backward(up(np.ones((2, 50), np.float32)), y, 1)
    np.testing.assert_array_equal(gpu.read(g), np.zeros((2, 50)))


def test_large_numbers_do_not_overflow(gpu: Wgpu, up: Up) -> None:
    x = up(np.array([[1e38, 1e38, -1e38]], np.float32))
    np.testing.assert_allclose(gpu.read(gpu.ops.softmax(x, 1)), [[0.5, 0.5, 0]], rtol=1e-6)
    np.testing.assert_allclose(gpu.read(gpu.ops.logsumexp(x, (1,), False)), [1e38], rtol=1e-6)


def test_equal_elements_have_no_variance(gpu: Wgpu, up: Up) -> None:
    for shape in ((2, 1000), (1, 50_000)):
        x = up(np.full(shape, 0.1, np.float32))
        np.testing.assert_array_equal(
            gpu.read(gpu.ops.var(x, (1,), 0.0, False)), np.zeros(shape[0])
        )
    assert np.isnan(gpu.read(gpu.ops.var(up(np.zeros((2, 0), np.float32)), (1,), 0.0, False))).all()


def test_variance_far_from_zero(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    x = (rng.normal(size=(40, 3, 5000)) + 1000).astype(np.float32)
    close(
        gpu,
        gpu.ops.var(up(x), (0, 2), 0.0, False),
        sums.var(*wide(x), (0, 2), 0.0, False),
        "float32",
    )
    close(gpu, gpu.ops.var(up(x), (1,), 0.0, True), sums.var(*wide(x), (1,), 0.0, True), "float32")


def test_deviation_of_a_long_row_whatever_its_size(gpu: Wgpu, up: Up) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 50_000))
    led, turned = noise.copy(), np.ones((2, 50_000))
    led[:, -1], turned[:, 30_000:] = 1e6, -1
    rows = (noise, 1e3 + noise, 1e20 * noise, 1e30 * led, 1e20 * turned, 1e-15 * noise, 0 * noise)
    for values in (*rows, 1e-25 * noise, 1e-25 * noise[:, :2], noise[:, :700] * 1e-30):
        x = values.astype(np.float32)
        got = gpu.read(gpu.ops.std(up(x), (1,), 0.0, False))
        np.testing.assert_allclose(got, x.astype(np.float64).std(1), rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "most"), [("rms_norm", 1), ("rms_norm_backward", 3), ("std", 1), ("long std", 2)]
)
def test_norms_are_few_kernels(
    gpu: Wgpu, up: Up, dispatches: list[int], name: str, most: int
) -> None:
    x, w = up(np.ones((4, 64), np.float32)), up(np.ones(64, np.float32))
    runs: dict[str, Callable[[], Any]] = {
        "rms_norm": lambda: gpu.ops.rms_norm(x, w, 1e-5),
        "rms_norm_backward": lambda: gpu.ops.rms_norm_backward(x, x, w, 1e-5),
        "std": lambda: gpu.ops.std(x, (1,), 0.0, False),
        "long std": lambda: gpu.ops.std(up(np.ones(50_000, np.float32)), (0,), 0.0, False),
    }
    runs[name]()
    assert len(dispatches) == most


# Runs of a channel: long and by fours, none (turned first), short and odd, short (turned first).
BATCHES = [(40, 3, 20, 8), (3000, 30), (7, 5, 33), (70, 40, 5, 5)]


@pytest.mark.parametrize("shape", BATCHES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batch_norm(
    gpu: Wgpu, up: Up, rng: np.random.Generator, shape: tuple[int, ...], dtype: str
) -> None:
    x, g = ((rng.normal(size=shape) + 1).astype(dtype) for _ in range(2))
    w, b = (rng.normal(size=shape[1]).astype(dtype) for _ in range(2))
    x64, g64, w64, b64 = wide(x, g, w, b)
    want = ref.batch_norm_train(x64, w64, b64, 1e-5)
    close(gpu, gpu.ops.batch_norm_train(up(x), up(w), up(b), 1e-5), want, dtype)
    mean, var = (a.astype(dtype) for a in want[1:])
    vectors = (w, mean, var)
    got = gpu.ops.batch_norm(up(x), up(w), up(b), up(mean), up(var), 1e-5)
    close(gpu, got, ref.batch_norm(x64, w64, b64, *wide(mean, var), 1e-5), dtype)
    got = gpu.ops.batch_norm_backward(up(g), up(x), *(up(v) for v in vectors), 1e-5)
    exact = w64, want[1], var.astype(np.float64)  # what is rounded off the mean is found again
    close(gpu, got, ref.batch_norm_backward(g64, x64, *exact, 1e-5), dtype)


def test_norms_of_nothing(gpu: Wgpu, up: Up) -> None:
    x, ones = up(np.zeros((0, 3), np.float32)), up(np.ones(3, np.float32))
    _, dweight, dbias = gpu.ops.layer_norm_backward(x, x, ones, 1e-5)
    np.testing.assert_array_equal(gpu.read(dweight), np.zeros(3))
    np.testing.assert_array_equal(gpu.read(dbias), np.zeros(3))
    y, mean, _ = gpu.ops.batch_norm_train(x, ones, ones, 1e-5)
    assert gpu.read(y).shape == (0, 3)
    assert np.isnan(gpu.read(mean)).all()


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_the_gradient_of_batch_norm_loses_nothing_far_from_zero(
    gpu: Wgpu, up: Up, rng: np.random.Generator, offset: float
) -> None:
    x = (rng.normal(size=(64, 3, 5, 5)) + offset).astype(np.float32)
    g, w = rng.normal(size=x.shape).astype(np.float32), np.ones(3, np.float32)
    x64, g64 = wide(x, g)
    mean, var = x64.mean((0, 2, 3)), x64.var((0, 2, 3))
    want = ref.batch_norm_backward(g64, x64, *wide(w), mean, var, 1e-5)
    given = (up(v.astype(np.float32)) for v in (g, x, w, mean, var))
    for got, exact in zip(gpu.ops.batch_norm_backward(*given, 1e-5), want, strict=True):
        np.testing.assert_allclose(gpu.read(got), exact, atol=3e-6 * np.abs(exact).max())


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, np.inf])
def test_distances_of_rows_that_lie_anyhow(
    gpu: Wgpu, up: Up, dispatches: list[int], rng: np.random.Generator, p: float
) -> None:
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 1, 40, 7), (3, 9, 40)))
    a[0, 0, :5] = b[0, 2, :5, None]
    a[..., 1] *= 1e30
    turned = up(a).view((2, 1, 7, 40), (280, 280, 1, 7), 0)
    dispatches.clear()
    got = gpu.ops.cdist(turned, up(b), p)
    assert len(dispatches) == 1
    want = np.linalg.norm(
        (a.swapaxes(-1, -2)[..., :, None, :] - b[..., None, :, :]).astype(np.float64), p, axis=-1
    )
    np.testing.assert_allclose(gpu.read(got), want, rtol=2e-5)
    with pytest.raises(pt.Rejected):
        gpu.ops.cdist(turned, up(b[..., :39]), p)


@pytest.mark.parametrize("length", [7, 100, 5000])
def test_cosines_and_lengths(
    gpu: Wgpu, up: Up, rng: np.random.Generator, length: int, hardware: None
) -> None:
    del hardware
    x, y = (rng.normal(size=(5, length)).astype(np.float32) for _ in range(2))
    x[1], y[2], x[3], y[4, 0] = 0, y[2] * 1e30, x[3] * 1e-25, np.nan
    x[0, 3] = -np.inf
    norms = [np.linalg.norm(v, axis=1) for v in wide(x, y)]
    np.testing.assert_allclose(
        gpu.read(gpu.ops.vector_norm(up(x), (1,), False)), norms[0], rtol=2e-6
    )
    with np.errstate(invalid="ignore"):
        want = (np.prod(wide(x, y), axis=0)).sum(1) / np.maximum(norms, 1e-8).prod(0)
    got = gpu.read(gpu.ops.cosine_similarity(up(x), up(y), 1, 1e-8))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_sums_of_exponentials_so_far(gpu: Wgpu, up: Up, rng: np.random.Generator) -> None:
    for shape, axis in (((3, 70_000), 1), ((700, 40), 0), ((4, 6), 1)):
        x = (100 * rng.normal(size=shape)).astype(np.float32)
        x.flat[0] = -np.inf
        got = gpu.read(gpu.ops.logcumsumexp(up(x), axis))
        want = np.logaddexp.accumulate(x.astype(np.float64), axis)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
