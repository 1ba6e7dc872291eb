"""A call that was checked before takes a shorter way, and does the same."""

from __future__ import annotations

import math

import pytest

import phlox_tensor as pt
from phlox_tensor import Numpy, Tensor


def _signs(x: Tensor) -> list[float]:
    return [math.copysign(1.0, value) for value in x.numpy().ravel().tolist()]


def test_zeros_of_both_signs_are_two_attributes() -> None:
    x = pt.ones(1, device=Numpy())
    for zero in (0.0, -0.0, 0.0, -0.0):
        sign = math.copysign(1.0, zero)
        assert _signs(pt.pad(x, ((1, 0),), zero)) == [sign, 1.0]


def test_what_a_call_was_told_before_does_not_matter() -> None:
    x = pt.asarray([[1.0, 5.0], [7.0, 3.0]], device=Numpy())
    for _ in range(3):
        assert pt.sum(x, axis=0).tolist() == [8.0, 8.0]
        assert pt.sum(x, axis=1, keepdims=True).tolist() == [[6.0], [10.0]]
        assert pt.sum(x, axis=[0, 1]).item() == 16.0
        assert pt.clip(x, 2.0, None).tolist() == [[2.0, 5.0], [7.0, 3.0]]
        assert pt.clip(x, None, 2.0).tolist() == [[1.0, 2.0], [2.0, 2.0]]
        assert pt.concat([x, x], axis=1).shape == (2, 4)
        assert pt.concat([x, x, x], axis=1).shape == (2, 6)
        with pytest.raises(pt.ShapeError):
            pt.sum(x, axis=2)
        with pytest.raises(pt.ShapeError):
            pt.concat([x, pt.ones((3, 3), device=Numpy())], axis=1)
