"""Tables of positions: made once, and the same wherever a sequence begins."""

from __future__ import annotations

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn._position import _table


@pytest.mark.parametrize("layer", [nn.RotaryEncoding(6), nn.SinusoidalEncoding(6)])
def test_sines_of_known_positions_are_not_made_again(
    layer: nn.RotaryEncoding | nn.SinusoidalEncoding,
) -> None:
    x = pt.ones((1, 8, 6))
    whole = layer(x)
    made = _table.cache_info().misses
    steps = [layer(x[:, :1], place).numpy() for place in range(4, 8)]
    again = layer(x)
    assert _table.cache_info().misses == made
    assert np.allclose(np.concatenate(steps, 1), whole.numpy()[:, 4:], rtol=1e-6, atol=1e-7)
    assert np.array_equal(again.numpy(), whole.numpy())


def test_kept_sines_are_those_of_the_element_type() -> None:
    layer, x = nn.RotaryEncoding(4), pt.ones((3, 4), device=pt.Numpy())
    single = layer(x).numpy()
    double = layer(pt.ones((3, 4), dtype="float64", device=pt.Numpy())).numpy()
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    assert np.allclose(single, double, rtol=1e-6, atol=1e-7)
    turned = [np.cos(1) - np.sin(1), np.cos(1) + np.sin(1)]
    assert np.allclose(double[1, :2], turned, rtol=1e-14, atol=1e-15)
