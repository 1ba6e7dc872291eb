"""Margins of pools: no window of a largest element may lie whole in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import ArgumentError

POOLS: list[tuple[Any, int]] = [(nn.MaxPool1d, 1), (nn.MaxPool2d, 2), (nn.MaxPool3d, 3)]


@pytest.mark.parametrize(("pool", "axes"), POOLS)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_margins_that_hide_a_window_are_refused(pool: Any, axes: int, ceil_mode: bool) -> None:
    x = pt.ones((1, 1, *(4,) * axes))
    layer = pool(2, padding=2, ceil_mode=ceil_mode)
    for call in (layer, layer.with_indices):
        with pytest.raises(
            ArgumentError, match=r"padding too large: got \(2, 2\), expected at most"
        ):
            call(x)


@pytest.mark.parametrize(("pool", "axes"), POOLS)
def test_margins_of_a_kernel_with_distances_reach_half_of_its_span(pool: Any, axes: int) -> None:
    x = pt.ones((1, 1, *(6,) * axes))
    assert np.isfinite(pool(3, 1, padding=2, dilation=2)(x).numpy()).all()
    assert pool(3, 1, padding="same", dilation=3)(x).shape == x.shape
    with pytest.raises(ArgumentError, match="padding too large"):
        pool(3, 1, padding=3, dilation=2)(x)
