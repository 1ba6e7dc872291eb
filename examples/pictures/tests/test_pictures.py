"""The published weights say of two pictures what they are known to say."""

from __future__ import annotations

import os

import pytest

from examples.pictures.classify import classify, load
from examples.pictures.data import folder

LONG = os.environ.get("PHLOX_TEST_EXAMPLES") == "long"


@pytest.mark.long
@pytest.mark.skipif(not LONG, reason="needs the weights: ./x test --long")
@pytest.mark.parametrize("device", ["cpu", "numpy", "wgpu"])
def test_a_cat_and_a_cup_are_seen(device: str) -> None:
    place = folder()
    model = load(place, device)
    pictures = [place / "cat.png", place / "cup.png"]
    ((cat, first), *_), ((cup, second), *_) = classify(model, place, pictures, device=device)
    # PyTorch gives .71 and .99 with the same weights.
    assert (cat, cup) == ("Egyptian cat", "espresso")
    assert abs(first - 0.71) < 0.01
    assert abs(second - 0.99) < 0.01
