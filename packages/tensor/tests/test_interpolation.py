"""Interpolation beside values of PyTorch 2.15 (``torch.nn.functional.interpolate``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor import ArgumentError

IMAGE = [[1.0, 4.0, 2.0], [0.0, 8.0, -3.0]]
NEAREST = [[1, 1, 4, 2], [1, 1, 4, 2], [0, 0, 8, -3]]
EXPECTED: dict[tuple[str, bool], Any] = {
    ("nearest", True): NEAREST,
    ("nearest", False): NEAREST,
    ("bilinear", True): [
        [1, 3, 3.333333, 2],
        [0.5, 4.166667, 3.833333, -0.5],
        [0, 5.333333, 4.333333, -3],
    ],
    ("bilinear", False): [[1, 2.875, 3.25, 2], [0.5, 3.9375, 3.5625, -0.5], [0, 5, 3.875, -3]],
    ("bicubic", True): [
        [1, 3.277778, 3.703704, 2],
        [0.5, 4.990741, 4.564815, -0.5],
        [0, 6.703704, 5.425926, -3],
    ],
    ("bicubic", False): [
        [0.902627, 2.862022, 3.495505, 2.346549],
        [0.105225, 4.732178, 4.261963, -0.966553],
        [-0.692178, 6.602334, 5.02842, -4.279655],
    ],
}


@pytest.mark.parametrize(("mode", "align_corners"), sorted(EXPECTED))
def test_values_are_those_of_pytorch(mode: str, align_corners: bool) -> None:
    x = pt.asarray(IMAGE, dtype=pt.float64)[None, None]
    y = pt.interpolate2d(x, (3, 4), mode, align_corners)
    assert y.shape == (1, 1, 3, 4)
    expected = np.array(EXPECTED[mode, align_corners])
    np.testing.assert_allclose(y.numpy()[0, 0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", ["bicubic", "bilinear", "nearest"])
def test_the_same_size_gives_the_same_image(mode: str) -> None:
    x = pt.asarray(IMAGE)[None, None]
    for align_corners in (True, False):
        assert pt.interpolate2d(x, (2, 3), mode, align_corners).tolist() == x.tolist()


LINE = [float(i) for i in range(1, 5)]


def _resized(size: int, **how: Any) -> list[float]:
    found: list[float] = pt.resize(pt.asarray(LINE, dtype=pt.float64), (size,), **how).tolist()
    return found


def test_sizes_are_those_of_the_last_axes() -> None:
    x = pt.asarray(IMAGE)
    assert pt.resize(x, (3,)).shape == (2, 3)
    assert pt.resize(x[None, None], (5, 4)).shape == (1, 1, 5, 4)
    assert pt.resize(x, ()).tolist() == x.tolist()
    assert pt.resize(x, (0,)).shape == (2, 0)


@pytest.mark.parametrize(
    ("size", "how", "expected"),
    [
        (8, {}, [1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4]),
        (3, {"coordinates": "asymmetric"}, [1, 7 / 3, 11 / 3]),
        (1, {"coordinates": "pytorch_half_pixel"}, [1]),
        (1, {"coordinates": "half_pixel"}, [2.5]),
        (1, {"coordinates": "align_corners"}, [1]),
        (2, {"coordinates": "half_pixel_symmetric", "scale": 0.6}, [5 / 3, 10 / 3]),
        (2, {"antialias": True}, [1.625, 3.375]),
        (2, {"antialias": True, "exclude_outside": True}, [12 / 7, 23 / 7]),
        (4, {"coordinates": "tf_crop_and_resize", "region": (-1 / 3, 2 / 3), "fill_value": 9},
         [9, 1, 2, 3]),
        (2, {"mode": "nearest", "coordinates": "tf_half_pixel_for_nn", "rounding": "floor"},
         [2, 4]),
        (3, {"mode": "nearest"}, [1, 2, 4]),
        (2, {"mode": "nearest", "rounding": "round_prefer_floor"}, [1, 3]),
        (2, {"mode": "nearest", "rounding": "round_prefer_ceil"}, [2, 4]),
        (8, {"mode": "nearest", "rounding": "floor"}, [1, 1, 1, 2, 2, 3, 3, 4]),
        (8, {"mode": "nearest", "rounding": "ceil"}, [1, 2, 2, 3, 3, 4, 4, 4]),
        (2, {"mode": "cubic", "cubic_coefficient": -0.5}, [1.4375, 3.5625]),
    ],
)  # fmt: skip
def test_places_are_those_of_the_formulas(
    size: int, how: dict[str, Any], expected: list[float]
) -> None:
    np.testing.assert_allclose(_resized(size, **how), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "how",
    [
        {"mode": "bilinear"},
        {"coordinates": "corners"},
        {"mode": "nearest", "rounding": "up"},
        {"mode": "nearest", "antialias": True},
        {"rounding": "floor"},
        {"cubic_coefficient": -0.5},
        {"region": (0.0, 1.0)},
        {"fill_value": 1.0},
        {"scale": 2.0},
        {"scale": (0.75, 0.75)},
        {"coordinates": "tf_crop_and_resize", "region": (0.0, 0.5, 1.0)},
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        _resized(3, **how)


def test_what_is_outside_a_crop_does_not_move_with_the_tensor() -> None:
    how: Any = {"coordinates": "tf_crop_and_resize", "region": (-1 / 3, 2 / 3), "fill_value": 9.0}
    x = pt.asarray(LINE, dtype=pt.float64)
    moved = pt.resize(x + 1, (4,), **how) - pt.resize(x, (4,), **how)
    assert moved.tolist() == [0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(("mode", "word"), [("cubic", "bicubic"), ("linear", "bilinear")])
def test_each_word_for_a_mode_leads_to_the_other(mode: str, word: str) -> None:
    x = pt.ones((1, 1, 2, 2))
    with pytest.raises(pt.ArgumentError) as caught:
        pt.interpolate2d(x, (4, 4), mode=mode)
    assert caught.value.hint == f'mode="{word}"'
    with pytest.raises(pt.ArgumentError) as caught:
        pt.interpolate(x, (4, 4), mode=word)
    assert caught.value.hint == f'mode="{mode}"'
