"""Masks of attention with three axes: as PyTorch has them, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import ShapeError

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_mask_of_three_axes_has_one_for_each_example_and_head(dropout: float) -> None:
    layer, x = nn.MultiHeadAttention(4, 2, dropout), pt.asarray(X)
    both = np.random.default_rng(1).random((2, 2, 3, 3)) < 0.4
    both[..., 0] = False
    whole, flat = pt.asarray(both), pt.asarray(both.reshape(4, 3, 3))
    assert np.array_equal(layer(x, mask=flat).numpy(), layer(x, mask=whole).numpy())
    added = whole.astype("float32")
    one = layer(x, bias=added).numpy()
    assert np.array_equal(layer(x, bias=added.reshape(4, 3, 3)).numpy(), one)
    assert np.array_equal(layer(x, mask=flat[:1]).numpy(), layer(x, mask=flat[0]).numpy())
    alone = layer(x[:1], mask=flat[:2]).numpy()  # one example has as many as heads
    assert np.array_equal(alone, layer(x[:1], mask=whole[:1]).numpy())


def test_a_mask_of_examples_or_of_heads_says_which() -> None:
    layer, x = nn.MultiHeadAttention(4, 2), pt.asarray(X)
    mask = pt.zeros((2, 3, 3)).astype("bool")  # as many examples as heads
    with pytest.raises(ShapeError, match=r"could be that of examples or of heads") as error:
        layer(x, mask=mask)
    assert "hint: mask[:, None] for one of each example, mask[None]" in str(error.value)
    with pytest.raises(ShapeError, match=r"hint: bias\[:, None\]"):
        layer(x, bias=mask.astype("float32"))
    for given in (mask[:, None], mask[None]):
        assert layer(x, mask=given).shape == x.shape
    assert layer(x[0], mask=mask).shape == (3, 4)  # without a batch the axis is that of heads
