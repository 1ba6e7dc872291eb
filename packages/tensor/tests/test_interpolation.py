"""Interpolation beside values of PyTorch 2.15 (``torch.nn.functional.interpolate``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_tensor as pt

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
