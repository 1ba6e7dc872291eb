"""First values of chosen weights, drawn anew."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn.initializers import KaimingNormal, Orthogonal, XavierUniform


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(400, 100), nn.Conv2d(20, 50, 3), nn.LayerNorm(7))


def test_the_weight_alone_has_the_spread_of_pytorch() -> None:
    pt.seed(0)
    before = model()
    after = nn.initialize(before, KaimingNormal(sqrt(2)), "layers.0.weight")
    weight, bias = (after.params()[f"layers.0.{name}"] for name in ("weight", "bias"))
    assert not weight.is_initialized
    assert np.isclose(weight.value.numpy().std(), sqrt(2 / 400), rtol=0.02)
    assert bias is before.params()["layers.0.bias"]
    assert weight.id == before.params()["layers.0.weight"].id
    assert after.params()["layers.1.weight"] is before.params()["layers.1.weight"]


def test_without_paths_all_weights_of_several_axes_are_drawn() -> None:
    pt.seed(0)
    before = model().freeze("layers.1.*")
    after = nn.initialize(before, XavierUniform())
    changed = {p for p, v in after.params().items() if v is not before.params()[p]}
    assert changed == {"layers.0.weight", "layers.1.weight"}
    kernel = after.params()["layers.1.weight"]
    assert kernel.frozen
    bound = sqrt(6 / (20 * 9 + 50 * 9))
    assert bound * 0.99 < np.abs(kernel.value.numpy()).max() <= bound


def test_a_shared_weight_stays_one() -> None:
    layer = nn.Linear(3, 3)
    after = nn.initialize(nn.Sequential(layer, layer), KaimingNormal(), "layers.0.weight")
    first, second = (part.weight for part in after.layers)  # type: ignore[attr-defined]
    assert first is second
    assert first is not layer.weight


def test_a_path_of_nothing_is_refused() -> None:
    with pytest.raises(pt.ArgumentError, match="no weight has such a path"):
        nn.initialize(model(), KaimingNormal(), "layers.9")


@pytest.mark.parametrize("shape", [(5, 5), (3, 8), (8, 3), (4, 2, 3)], ids=str)
def test_orthogonal_rows_or_columns_are_at_right_angles(shape: Any) -> None:
    pt.seed(1)
    found = Orthogonal(2.0).param(shape).value.astype("float64").numpy().reshape(shape[0], -1)
    small = found @ found.T if found.shape[0] <= found.shape[1] else found.T @ found
    assert np.allclose(small, 4 * np.eye(len(small)), rtol=0, atol=1e-5)


def test_no_sign_of_an_orthogonal_matrix_is_likelier() -> None:
    """Without the signs of the triangle the first column of Householder's would have one."""
    pt.seed(2)
    signs = [Orthogonal().param((3, 3)).value.numpy()[0, 0] > 0 for _ in range(200)]
    assert 60 < sum(signs) < 140
