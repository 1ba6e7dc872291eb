"""Tables of positions: made once, the same wherever a sequence begins, gone with their layers."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn.layers import position

Encoding = nn.RotaryEncoding | nn.SinusoidalEncoding


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many positions tables were made."""
    found: list[int] = []
    compute = position._computed

    def counted(settings: Any, positions: int, *args: Any) -> Any:
        found.append(positions)
        return compute(settings, positions, *args)

    monkeypatch.setattr(position, "_computed", counted)
    return found


@pytest.mark.parametrize("layer", [nn.RotaryEncoding(6), nn.SinusoidalEncoding(6)])
def test_sines_of_known_positions_are_not_made_again(layer: Encoding, made: list[int]) -> None:
    x = pt.ones((1, 8, 6))
    whole = layer(x)
    assert made == [8]
    steps = [layer(x[:, :1], place).numpy() for place in range(4, 8)]
    again = layer(x)
    assert made == [8]
    assert np.allclose(np.concatenate(steps, 1), whole.numpy()[:, 4:], rtol=1e-6, atol=1e-7)
    assert np.array_equal(again.numpy(), whole.numpy())


def test_layers_of_equal_settings_share_sines_and_a_larger_table_replaces_a_smaller(
    made: list[int],
) -> None:
    one, other = nn.RotaryEncoding(6, theta=77.0), nn.RotaryEncoding(6, theta=77.0)
    for layer in (one, other, one.map(lambda _, param: param)):
        layer(pt.ones((3, 6)))
    assert made == [4]
    one(pt.ones((5, 6)))
    other(pt.ones((3, 6)))
    assert made == [4, 8]
    (kept,) = position._TABLES[one.settings].values()
    assert [part.shape for part in kept] == [(8, 3), (8, 3)]


def test_sines_go_with_the_last_layer_that_has_them() -> None:
    layer: Any = nn.SinusoidalEncoding(6, max_timescale=77.0)
    layer(pt.ones((3, 6)))
    settings = nn.SinusoidalEncodingConfig(6, max_timescale=77.0)
    assert settings in position._TABLES
    layer = layer.map(lambda _, param: param)  # as an optimizer gives it back
    gc.collect()
    assert settings in position._TABLES
    del layer
    gc.collect()
    assert settings not in position._TABLES


def test_kept_sines_are_those_of_the_element_type() -> None:
    layer, x = nn.RotaryEncoding(4), pt.ones((3, 4), device=pt.Numpy())
    single = layer(x).numpy()
    double = layer(pt.ones((3, 4), dtype="float64", device=pt.Numpy())).numpy()
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    assert np.allclose(single, double, rtol=1e-6, atol=1e-7)
    turned = [np.cos(1) - np.sin(1), np.cos(1) + np.sin(1)]
    assert np.allclose(double[1, :2], turned, rtol=1e-14, atol=1e-15)
