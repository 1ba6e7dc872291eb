"""Places of max pools, what takes them back, and dropout that keeps mean and variance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Numpy, nn
from tests.layers.case import normal

DOUBLE = Numpy(float="float64")
POOLS: list[tuple[Any, Any, tuple[int, ...]]] = [
    (nn.MaxPool1d(2), nn.MaxUnpool1d(2), (2, 3, 8)),
    (nn.MaxPool2d((2, 3)), nn.MaxUnpool2d((2, 3)), (2, 3, 4, 6)),
    (nn.MaxPool2d(3, padding=1), nn.MaxUnpool2d(3, padding=1), (1, 2, 7, 7)),
    (nn.MaxPool3d(2), nn.MaxUnpool3d(2), (1, 2, 4, 2, 4)),
]


@pytest.mark.parametrize(("pool", "unpool", "shape"), POOLS)
def test_unpooled_elements_stand_where_the_pool_found_them(
    pool: Any, unpool: Any, shape: tuple[int, ...]
) -> None:
    array = normal(*shape)
    x = px.asarray(array, device=DOUBLE)
    y, places = pool.with_indices(x)
    assert np.array_equal(y.numpy(), pool(x).numpy())
    back = unpool(y, places, shape[2:]).numpy()
    assert back.shape == shape
    assert np.array_equal(back, np.where(np.isin(array, y.numpy()), array, 0.0))
    assert np.array_equal(unpool(y, places).numpy(), back)


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (nn.AdaptiveMaxPool1d(3), (2, 3, 8)),
        (nn.AdaptiveMaxPool2d((2, 3)), (2, 2, 5, 6)),
        (nn.AdaptiveMaxPool3d(2), (1, 2, 4, 3, 4)),
    ],
)
def test_places_of_adaptive_pools_hold_their_elements(pool: Any, shape: tuple[int, ...]) -> None:
    x = px.asarray(normal(*shape), device=DOUBLE)
    y, places = pool.with_indices(x)
    rows = x.numpy().reshape(*shape[:2], -1)
    found = np.take_along_axis(rows, places.numpy().reshape(*shape[:2], -1), axis=2)
    assert np.array_equal(found.reshape(y.shape), y.numpy())


def test_places_in_a_wide_margin_are_refused() -> None:
    x = px.zeros((1, 1, 4, 4), device=DOUBLE)
    wide = nn.MaxPool2d(2, padding=2)
    for call in (wide, wide.with_indices):
        with pytest.raises(px.PhloxError, match="padding"):
            call(x)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    px.seed(0)
    x = px.random.normal((100, 50, 4, 4), device=DOUBLE)
    low = -1.0507009873554805 * 1.6732632423543772  # where selu ends
    for prob in (0.2, 0.5):
        y = nn.AlphaDropout(prob).with_training(True)(x).numpy()
        assert (y.mean(), y.std()) == pytest.approx((0.0, 1.0), abs=0.02)
        scale = (1 - prob + prob * (1 - prob) * low**2) ** -0.5
        dropped = np.isclose(y, scale * low * (1 - prob), rtol=1e-12)
        assert dropped.mean() == pytest.approx(prob, abs=0.01)
        kept = (x.numpy() - low * prob) * scale
        assert np.allclose(y[~dropped], kept[~dropped], rtol=1e-12)
    channels = nn.FeatureAlphaDropout(0.5).with_training(True)(x).numpy()
    same = (channels == channels[..., :1, :1]).all(axis=(2, 3))
    assert same.mean() == pytest.approx(0.5, abs=0.03)


def test_shares_of_a_bag_are_of_a_sum() -> None:
    bags = px.asarray([[0, 1]], device=DOUBLE)
    ones = px.ones((1, 2), device=DOUBLE)
    with pytest.raises(px.ArgumentError, match=r'hint: nn.EmbeddingBag\(3, 2, "sum"\)'):
        nn.EmbeddingBag(3, 2, device=DOUBLE)(bags, ones)


def test_distances_of_narrow_rows_are_added_in_wide_ones() -> None:
    row = px.asarray([[300.0, -290.0, 500.0]], dtype=px.float16)
    zero = row.zeros(row.shape)
    assert nn.PairwiseDistance()(row, zero).numpy().tolist() == [651.0]
    assert nn.CosineSimilarity()(row, row).numpy().tolist() == [1.0]
    images = px.full((1, 4, 2), 300.0, dtype=px.float16)
    norm = nn.LocalResponseNorm(2, alpha=1.0)
    want = norm(images.astype(px.float32)).numpy()
    assert np.allclose(norm(images).numpy(), want, rtol=2e-3)
