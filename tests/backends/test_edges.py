"""Values far out, empty, infinite or unknown, on which every device has to agree."""

from __future__ import annotations

from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import ArgumentError, Backend, Cpu, Numpy, Wgpu

DEVICES: list[Backend] = [Cpu(), Numpy(), Wgpu()]
HOSTED: list[Backend] = [Cpu(), Numpy()]
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)
each_hosted = pytest.mark.parametrize("device", HOSTED, ids=repr)


def close(got: Any, want: Any, rtol: float = 1e-5) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-6)


# Losses of sequences


@each_device
def test_rnnt_loss_takes_a_class_without_probability_and_refuses_no_label(device: Backend) -> None:
    rng = np.random.default_rng(5)
    given = rng.normal(size=(1, 3, 3, 4))
    given[..., 0] = -inf
    x = px.asarray(given.astype(np.float32), device=device).log_softmax(axis=-1)
    targets = px.asarray([[2, 3]], device=device)
    # By all ways: three steps, two labels.
    steps = x.numpy().astype(np.float64)[0]
    ways = []
    for first, second in product(range(3), repeat=2):
        if first <= second:
            emitted = steps[first, 0, 2] + steps[second, 1, 3]
            blanks = [steps[t, (first <= t) + (second <= t), 1] for t in range(3)]
            ways.append(emitted + sum(blanks))
    close(px.rnnt_loss(x, targets, blank=1), [-np.logaddexp.reduce(ways)])
    impossible = px.asarray([[0, 3]], device=device)
    assert px.rnnt_loss(x, impossible, blank=1).tolist() == [inf]


@pytest.mark.parametrize("device", HOSTED, ids=repr)
def test_the_gradient_of_rnnt_loss_is_finite_beside_a_class_without_probability(
    device: Backend,
) -> None:
    given = np.random.default_rng(6).normal(size=(2, 3, 2, 3)).astype(np.float32)
    given[..., 0] = -inf
    targets = px.asarray([[2], [1]], device=device)

    def loss(x: Any) -> Any:
        return px.rnnt_loss(x, targets, blank=1)[0]

    gradient = px.grad(loss)(px.asarray(given, device=device))
    assert bool(gradient.isfinite().all())


# Factorisations


@each_hosted
@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_that_is_not_finite_gives_nan_and_leaves_the_others(
    device: Backend, bad: float, dtype: str
) -> None:
    array = np.tile(np.diag([3.0, 2.0, 1.0]), (2, 1, 1)).astype(dtype)
    array[1, 0, 0] = bad
    x = px.asarray(array, device=device)
    linalg = px.linalg
    found = {
        "cholesky": linalg.cholesky(x),
        "cofactor": px.ops.cofactor(x),
        "det": linalg.det(x),
        "eigh": linalg.eigh(x),
        "eigvalsh": linalg.eigvalsh(x),
        "inv": linalg.inv(x),
        "lstsq": px.ops.lstsq(x, px.ones((2, 3, 2), dtype=dtype, device=device), None),
        "lu": px.ops.lu(x),
        "matrix_exp": linalg.matrix_exp(x),
        "pinv": linalg.pinv(x),
        "qr": linalg.qr(x),
        "slogdet": linalg.slogdet(x),
        "solve": linalg.solve(x, px.ones((3, 2), dtype=dtype, device=device)),
        "svd": linalg.svd(x),
        "svdvals": linalg.svdvals(x),
    }
    for name, result in found.items():
        parts = result if isinstance(result, tuple) else (result,)
        for part in parts:
            known, unknown = part.numpy()
            assert np.isfinite(known).all(), name
            assert np.isnan(unknown).all(), name


# Images


@each_device
@pytest.mark.parametrize("align_corners", [False, True])
def test_places_far_away_are_reflected_by_their_remainder(
    device: Backend, align_corners: bool
) -> None:
    x = px.asarray(np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), device=device)
    far = px.asarray([[[[0.0, 1e30], [4096.0, -4096.0]]]], device=device)
    found = px.grid_sample(x, far, padding_mode="reflection", align_corners=align_corners).numpy()
    assert ((found >= 0) & (found <= 3)).all()
    # 4096 is an even number of reflections away from 0.
    middle = px.grid_sample(
        x, px.zeros((1, 1, 1, 2), device=device), padding_mode="reflection",
        align_corners=align_corners,
    )  # fmt: skip
    close(middle, found[..., 1:])


@each_device
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_far_places_read_the_edge_of_a_border(device: Backend, mode: str) -> None:
    x = px.arange(16.0, device=device).reshape((1, 1, 4, 4))
    places = px.asarray([[[[1e30, 0.0], [1e19, 0.0], [-1e30, 0.0]]]], device=device)
    found = px.grid_sample(x, places, mode=mode, padding_mode="border").flatten()
    np.testing.assert_allclose(found.numpy(), [9.0, 9.0, 6.0], rtol=1e-6)
    mirrored = px.grid_sample(x, places, mode=mode, padding_mode="reflection")
    assert bool(((mirrored >= 0) & (mirrored <= 15)).all())


@each_device
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers_raise_nothing(
    device: Backend, mode: str, padding_mode: str
) -> None:
    x = px.ones((1, 1, 3, 3), device=device)
    places = px.asarray([[[[nan, 0.0], [0.0, 0.0]]]], device=device)
    found = px.grid_sample(x, places, mode=mode, padding_mode=padding_mode).numpy()
    assert found[0, 0, 0, 1] == pytest.approx(1.0)
    edge = padding_mode != "zeros" and mode != "bicubic"
    wanted = 1.0 if edge else 0.0 if mode == "nearest" else nan
    np.testing.assert_allclose(found[0, 0, 0, 0], wanted)
    boxes = px.asarray([[0.0, nan, 0.0, 1.0, 1.0]], device=device)
    assert px.roi_align(x, boxes, 1).shape == (1, 1, 1, 1)


@each_device
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding_mode", ["border", "reflection"])
def test_places_that_are_no_numbers_read_the_first_pixel(
    device: Backend, mode: str, padding_mode: str
) -> None:
    tracked = px.Autodiff(device)
    x = px.asarray([[[[2.0, 3.0], [4.0, 5.0]]]], device=tracked).require_grad()
    far = inf if padding_mode == "reflection" else -inf
    places = px.asarray([[[[nan, nan], [far, 1.0]]]], device=tracked).require_grad()
    found = px.grid_sample(x, places, mode=mode, padding_mode=padding_mode)
    assert found.flatten().tolist() == [2.0, 4.0]
    gradients = found.sum().backward()
    assert x.grad(gradients).tolist() == [[[[1.0, 0.0], [1.0, 0.0]]]]
    if mode == "bilinear":
        assert bool(places.grad(gradients)[0, 0, 0].isfinite().all())


@each_device
def test_a_volume_of_equal_layers_is_read_as_one_of_them(device: Backend) -> None:
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 3, 4, 5)).astype("float32")
    grid = rng.uniform(-0.6, 0.6, (2, 3, 2, 3)).astype("float32")  # between the middles of layers
    x = px.asarray(np.repeat(image[:, :, None], 3, axis=2), device=device)
    deep = px.asarray(grid[:, None], device=device)
    flat = px.asarray(np.ascontiguousarray(grid[..., :2]), device=device)
    for mode in ("bilinear", "nearest"):
        found = px.grid_sample(x, deep, mode=mode)
        close(found[:, :, 0], px.grid_sample(px.asarray(image, device=device), flat, mode).numpy())
    with pytest.raises(px.ArgumentError, match="no such mode for volumes"):
        px.grid_sample(x, deep, mode="bicubic")


@each_device
def test_interpolation_reads_only_what_is_near(device: Backend) -> None:
    line = px.asarray([[[1.0, nan, 3.0, 4.0]]], device=device)
    got = px.interpolate(line, (8,), "nearest").numpy()[0, 0]
    np.testing.assert_array_equal(got, [1, 1, nan, nan, 3, 3, 4, 4])
    infinite = px.asarray([[[1.0, inf, 3.0, 4.0]]], device=device)
    got = px.interpolate(infinite, (8,), "nearest").numpy()[0, 0]
    np.testing.assert_array_equal(got, [1, 1, inf, inf, 3, 3, 4, 4])
    image = np.ones((1, 1, 4, 4), np.float32)
    image[0, 0, 0, 0] = nan
    for mode in ("linear", "lanczos3"):
        found = px.interpolate(px.asarray(image, device=device), (8, 8), mode).numpy()[0, 0]
        assert np.isnan(found[0, 0])
        assert np.isfinite(found[7]).all(), mode


# Statistics


@each_device
def test_covariances_take_any_correction_and_one_row(device: Backend) -> None:
    rows = [[1.0, 2.0, 4.0, 3.0], [0.0, 1.0, 5.0, 1.0]]
    array = np.array(rows)
    gaps = array - array.mean(axis=1, keepdims=True)
    x = px.asarray(rows, device=device)
    close(px.cov(x, correction=0.5), gaps @ gaps.T / 3.5)
    for one in (px.cov(x[:1]), px.corrcoef(x[:1])):
        assert one.shape == (1, 1)
    assert px.cov(x[0]).shape == px.corrcoef(x[0]).shape == ()
    assert np.isnan(px.cov(x[:, :1]).numpy()).all()  # of one observation
    assert np.isnan(px.corrcoef(x[:, :1]).numpy()).all()


@each_device
@pytest.mark.parametrize("scales", [(1e25, 1e-25), (1e-25, 1.0), (1e30, 1e30)])
def test_correlations_do_not_depend_on_units(device: Backend, scales: tuple[float, float]) -> None:
    rows = np.array([[1.0, 2.0, 4.0, 3.0], [0.0, 1.0, 5.0, 1.0]]) * np.array(scales)[:, None]
    close(px.corrcoef(px.asarray(rows.astype(np.float32), device=device)), np.corrcoef(rows))
    assert np.isnan(px.corrcoef(px.zeros((2, 0), device=device)).numpy()).all()
    if px.float64 in device.dtypes:
        close(
            px.corrcoef(px.asarray(rows * 1e200, dtype="float64", device=device)), np.corrcoef(rows)
        )
    recorded = px.asarray(rows.astype(np.float32), device=px.Autodiff(device))
    x = recorded.require_grad()
    slope = x.grad(x.corrcoef()[0, 1].backward()).numpy() * np.array(scales)[:, None]
    unit = px.asarray(rows / np.array(scales)[:, None], device=px.Autodiff(Numpy()))
    unit = unit.astype("float64").require_grad()
    want = unit.grad(unit.corrcoef()[0, 1].backward()).numpy()
    np.testing.assert_allclose(slope, want, rtol=1e-4, atol=1e-5)


@each_device
def test_quantiles_beside_infinities_and_between_far_numbers(device: Backend) -> None:
    def of(values: list[float], q: float = 0.5) -> float:
        return px.quantile(px.asarray(values, device=device), q).item()

    assert of([-inf, 1.0]) == -inf
    assert of([1.0, inf]) == inf
    assert of([-inf, -2.5, 0.3, 1.5], 0.3) == -inf
    assert np.isnan(of([-inf, inf]))
    assert of([inf, inf]) == inf
    assert np.isnan(of([nan, 1.0, 2.0], 0.0))
    assert of([-3e38, 3e38]) == 0.0
    assert px.median(px.asarray([-inf, -inf, 1.0, inf], device=device)).item() == -inf


@each_device
def test_a_histogram_of_nothing_and_one_without_a_range(device: Backend) -> None:
    counts, edges = px.histogram(px.zeros((0,), device=device), 2)
    assert (counts.tolist(), edges.tolist()) == ([0, 0], [0.0, 0.5, 1.0])
    for values in ([inf, 1.0], [nan, 1.0]):
        x = px.asarray(values, device=device)
        with pytest.raises(ArgumentError, match=r"\[histogram\] the range is not finite"):
            px.histogram(x)
        assert px.histogram(x, 2, min=0.0, max=2.0)[0].tolist() == [0, 1]


@each_device
def test_counts_do_not_wrap_and_have_the_default_type(device: Backend) -> None:
    for name, many in (("uint8", 300), ("int8", 300), ("int16", 70000), ("int32", 5)):
        if px.as_dtype(name) in device.dtypes:
            x: Any = px.zeros((many,), dtype=name, device=device)
            counts = px.bincount(x, minlength=2)
            assert counts.tolist() == [many, 0]
            assert counts.dtype is device.default_int


# Numbers


@each_device
def test_integers_are_near_as_integers(device: Backend) -> None:
    def near(a: int, b: int, rtol: float, atol: float, dtype: str = "int32") -> bool:
        x1, x2 = (px.asarray([n], dtype=dtype, device=device) for n in (a, b))
        return bool(px.isclose(x1, x2, rtol=rtol, atol=atol).item())

    assert not near(2**24, 2**24 + 1, 0.0, 0.0)
    assert near(2**24, 2**24, 0.0, 0.0)
    assert not near(10**9, 10**9 + 30, 1e-8, 0.0)
    assert near(10**9, 10**9 + 5, 1e-8, 0.0)
    assert not near(-(2**31), 2**31 - 1, 1e-5, 2.0)
    if px.int64 in device.dtypes:
        assert not near(2**53, 2**53 + 1, 0.0, 0.0, "int64")
        assert not near(-(2**63), 2**63 - 1, 1e-5, 2.0, "int64")
        a, b = (px.asarray([2**53 + i], dtype="int64", device=device) for i in range(2))
        assert not px.allclose(a, b, rtol=0.0, atol=0.0)


@each_device
def test_special_functions_at_the_ends_of_their_ranges(device: Backend) -> None:
    zeros = px.erfinv(px.asarray([-0.0, 0.0], device=device)).numpy()
    assert np.signbit(zeros).tolist() == [True, False]
    if px.float64 in device.dtypes:
        near_one = px.asarray(1 - 2.0**-53, dtype="float64", device=device)
        close(near_one.erfinv(), 5.8635847487551676, rtol=1e-9)
        close((-near_one).erfinv(), -5.8635847487551676, rtol=1e-9)
        far = px.asarray([1e301, 1e306, inf], dtype="float64", device=device)
        close(far.lgamma(), [6.920781129912077e303, inf, inf], rtol=1e-9)


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("n", [2, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_what_a_triangle_leaves_out_is_not_looked_at(device: str, n: int, upper: bool) -> None:
    a = np.random.default_rng(0).standard_normal((n, n)) / n + np.eye(n)
    half = np.triu(a) if upper else np.tril(a)
    hidden = np.where(half == 0, np.nan, a)
    x, b = (
        px.asarray(hidden, device=device),
        px.asarray(np.random.default_rng(0).standard_normal((n, 2)), device=device),
    )
    plain = px.linalg.solve_triangular(x, b, upper=upper).numpy()
    np.testing.assert_allclose(plain, np.linalg.solve(half, b.numpy()), rtol=1e-8)
    np.fill_diagonal(hidden, np.inf)
    np.fill_diagonal(half, 1.0)
    found = px.linalg.solve_triangular(
        px.asarray(hidden, device=device), b, upper=upper, unit_diagonal=True
    )
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(half, b.numpy()), rtol=1e-8)
    hidden[n - 1, 0] = hidden[0, n - 1] = np.nan
    out = px.linalg.solve_triangular(px.asarray(hidden, device=device), b, upper=upper)
    assert out.isnan().all()


@pytest.mark.parametrize("device", [Cpu(), Numpy()])
def test_sums_of_products_in_float16_are_rounded_once(device: str) -> None:
    def held(*values: object) -> list[px.Tensor]:
        return [px.asarray(v, dtype="float16", device=device) for v in values]

    pair = held([300.0, 300.0], [300.0, -300.0])
    assert px.vecdot(pair[0], pair[1]).item() == 0
    assert px.einsum("bi,bi->b", *(x[None] for x in pair)).tolist() == [0.0]
    assert px.einsum("bi,i->", pair[0].broadcast_to((2, 2)), pair[1]).item() == 0
    line = held([[300.0]], [[300.0]], [[1e-3]])
    assert px.einsum("ij,jk,kl->il", *line).item() == pytest.approx(90, rel=2**-9)
    total = px.einsum("ij,k->k", *held([[60000.0, 60000.0], [-60000.0, -60000.0]], [1.0, 2.0]))
    assert total.tolist() == [0.0, 0.0]
    three = held([300.0] * 3)[0]
    assert px.cross(three, three).tolist() == [0.0] * 3


def test_a_derivative_that_needs_an_inverse_says_whose_it_is() -> None:
    singular = px.asarray([[1.0, 2.0], [2.0, 4.0]])
    first = px.grad(px.linalg.det)
    assert first(singular).tolist() == [[4.0, -2.0], [-2.0, 1.0]]
    bend = px.grad(lambda x: first(x).sum())(singular).numpy()
    np.testing.assert_allclose(bend, [[1.0, -1.0], [-1.0, 1.0]], rtol=1e-5)
    with pytest.raises(px.GradientError, match=r"\[slogdet\] the derivative needs an inverse"):
        px.grad(lambda x: px.linalg.slogdet(x).logabsdet)(singular)


@each_device
def test_counts_that_no_memory_holds_are_refused(device: Backend) -> None:
    x = px.asarray([1, 1, 3], device=device)
    assert px.bincount(x, minlength=5).tolist() == [0, 2, 0, 1, 0]
    with pytest.raises(px.ArgumentError, match="up to the largest: got minlength="):
        px.bincount(x, minlength=2**40)


@each_hosted
@pytest.mark.parametrize("number", [2**32, 2**40, 2**63 - 1])
def test_numbers_that_are_too_far_to_count_are_refused(device: Backend, number: int) -> None:
    with pytest.raises(px.ArgumentError, match=f"up to the largest: got {number}, expected below"):
        px.bincount(px.asarray([1, number], device=device))


@each_device
@pytest.mark.parametrize("hold", [px.int8, px.int16, px.int32])
def test_a_quantized_weight_keeps_the_range_of_float32(device: Backend, hold: px.DType) -> None:
    if hold not in device.dtypes:
        pytest.skip("the device has no such integers")
    weight = px.full((64, 8), 100, dtype=hold, device=device)
    scale = px.full((1, 8), 1000.0, dtype="float16", device=device)
    for rows in (1, 16, 17):
        x = px.full((rows, 64), 0.001, dtype="float16", device=device)
        found = px.quantized_linear(x, weight, scale)
        assert (found == 6404.0).all().item(), rows
