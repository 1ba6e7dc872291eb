"""The nearest solutions of systems of all ranks, on every device that has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import linalg
from phlox_tensor import Backend

DEVICES: list[Backend] = [px.Cpu(), px.Numpy()]
each_device = pytest.mark.parametrize("device", DEVICES, ids=repr)


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def close(got: Any, want: Any, tolerance: float = 1e-10) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=tolerance, atol=tolerance)


@each_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_solutions_of_all_ranks_are_those_of_the_pseudoinverse(device: Backend, dtype: str) -> None:
    tall = drawn(2, 40, 5)
    poor = tall.copy()
    poor[1, :, 3] = 2 * poor[1, :, 2] - poor[1, :, 0]
    tolerance = 1e-10 if dtype == "float64" else 2e-4
    for a in (tall, poor, poor[1], drawn(2, 3, 7), drawn(70, 45), np.zeros((1, 4, 2))):
        b = drawn(*a.shape[:-1], 2)
        x1, x2 = (px.asarray(x, dtype=dtype, device=device) for x in (a, b))
        got = linalg.lstsq(x1, x2)
        close(got.solution, np.linalg.pinv(a, rcond=1e-5) @ b, tolerance)
        values = np.linalg.svd(a, compute_uv=False)
        close(got.singular_values, values, 10 * tolerance)
        assert got.rank.tolist() == (values > 1e-5 * values[..., :1]).sum(-1).tolist()
        assert {each.dtype.name for each in (got.solution, got.singular_values)} == {dtype}


@each_device
def test_a_bound_decides_which_rank_a_matrix_has(device: Backend) -> None:
    a, b = np.diag([4.0, 1.0, 1e-3]), drawn(3, 2)
    x1, x2, tenth = (px.asarray(x, dtype="float64", device=device) for x in (a, b, 0.1))
    for rtol, rank in ((0.0, 3), (0.1, 2), (0.5, 1), (tenth, 2)):
        got = linalg.lstsq(x1, x2, rtol=rtol)
        assert got.rank.item() == rank
        close(got.solution, np.where(np.arange(3)[:, None] < rank, b / np.diag(a)[:, None], 0))


@each_device
def test_batches_of_systems_broadcast(device: Backend) -> None:
    a, b = drawn(2, 1, 5, 3), drawn(4, 5, 2)
    got = linalg.lstsq(px.asarray(a, device=device), px.asarray(b, device=device))
    close(got.solution, np.linalg.pinv(a) @ b)
    assert got.singular_values.shape == (2, 1, 3)


@each_device
def test_a_right_side_that_is_not_finite_stays_in_its_column(device: Backend) -> None:
    a, b = drawn(2, 4, 2), drawn(2, 4, 3)
    want = np.linalg.lstsq(a[0], b[0, :, :2], rcond=None)[0]
    b[0, 1, 2] = np.inf
    got = linalg.lstsq(px.asarray(a, device=device), px.asarray(b, device=device))
    close(got.solution[0, :, :2], want)
    assert not bool(got.solution[0, :, 2].isfinite().any())


@each_device
def test_a_matrix_that_is_not_finite_or_poor_leaves_the_others_alone(device: Backend) -> None:
    a, b = drawn(4, 6, 2), drawn(4, 6, 3)
    good = linalg.lstsq(px.asarray(a, device=device), px.asarray(b, device=device))
    a[1, 0, 0], a[2, :, 1], a[3, 1, 1] = np.nan, 3 * a[2, :, 0], 1e200
    got = linalg.lstsq(px.asarray(a, device=device), px.asarray(b, device=device))
    assert got.solution[0].tolist() == good.solution[0].tolist()
    assert bool(got.solution[1].isnan().all())
    assert bool(got.singular_values[1].isnan().all())
    close(got.solution[2], np.linalg.pinv(a[2], rcond=1e-5) @ b[2])
    assert got.rank.tolist()[2] == 1
    assert bool(got.solution[3].isfinite().all())


def test_large_numbers_that_are_finite_are_no_warning() -> None:
    x = px.asarray(np.diag([3e38, 2e38, 2e38]).astype(np.float32), device=px.Cpu())
    got = linalg.lstsq(x, x)
    close(got.solution, np.eye(3), 1e-6)


@each_device
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_gradients_of_solutions_are_central_differences(
    device: Backend, shape: tuple[int, int]
) -> None:
    tracked = px.Autodiff(device)
    x1, x2 = (px.asarray(drawn(*size), device=tracked) for size in (shape, (shape[0], 2)))

    def length(x1: px.Tensor, x2: px.Tensor) -> px.Tensor:
        found = linalg.lstsq(x1, x2)
        return found.solution.sin().sum() + found.singular_values.square().sum()

    assert px.gradcheck(length, (x1, x2))


@each_device
@pytest.mark.parametrize("mapped", [(True, False), (True, True), (False, True)], ids=str)
def test_lanes_have_the_bounds_that_they_would_have_alone(
    device: Backend, mapped: tuple[bool, bool]
) -> None:
    """A bound has the axes of the batch alone, where lanes are one more."""
    x2 = px.asarray(drawn(4, 1), device=device)
    for a, rtol in ((drawn(3, 4, 2), np.asarray([1e-9, 0.5, 0.9])), (drawn(3, 2, 4, 2), None)):
        bounds = np.asarray([[0.0, 0.4], [0.9, 0.1], [0.5, 0.7]]) if rtol is None else rtol
        x1s, bound = (px.asarray(x, device=device) for x in (a, bounds))
        given = [x if m else x[0] for x, m in zip((x1s, bound), mapped, strict=True)]
        axes = tuple(0 if m else None for m in mapped)
        solved = px.vmap(lambda x1, r: linalg.lstsq(x1, x2, rtol=r), axes)(*given)
        inverses = px.vmap(lambda x1, r: linalg.pinv(x1, rtol=r), axes)(*given)
        for lane in range(3):
            x1, r = (x[lane] if m else x for x, m in zip(given, mapped, strict=True))
            want = linalg.lstsq(x1, x2, rtol=r)
            close(solved.solution[lane], want.solution.numpy())
            close(solved.singular_values[lane], want.singular_values.numpy())
            assert solved.rank[lane].tolist() == want.rank.tolist()
            close(inverses[lane], linalg.pinv(x1, rtol=r).numpy())


@each_device
@pytest.mark.parametrize("rtol", [None, 0.5])
def test_one_bound_for_all_lanes(device: Backend, rtol: float | None) -> None:
    x1s, x2 = (px.asarray(x, device=device) for x in (drawn(3, 4, 2), drawn(4, 1)))
    solved = px.vmap(lambda x1: linalg.lstsq(x1, x2, rtol=rtol).solution)(x1s)
    inverses = px.vmap(lambda x1: linalg.pinv(x1, rtol=rtol))(x1s)
    for lane, x1 in enumerate(x1s):
        close(solved[lane], linalg.lstsq(x1, x2, rtol=rtol).solution.numpy())
        close(inverses[lane], linalg.pinv(x1, rtol=rtol).numpy())
