"""A layer with weights computes in their type, whatever stands at its input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import DTypeError, Numpy

DEVICE = Numpy()
LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "BatchNorm": (lambda: nn.BatchNorm(3, device=DEVICE), (2, 3, 4, 4)),
    "Conv2d": (lambda: nn.Conv2d(3, 2, 3, device=DEVICE), (2, 3, 4, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(3, device=DEVICE), (2, 3)),
    "Linear": (lambda: nn.Linear(3, 2, device=DEVICE), (2, 3)),
    "RmsNorm": (lambda: nn.RmsNorm(3, device=DEVICE), (2, 3)),
}


@pytest.mark.parametrize("name", sorted(LAYERS))
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_floats_of_another_type_are_refused(name: str, dtype: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    x = pt.ones(shape, dtype=dtype, device=DEVICE)
    with pytest.raises(DTypeError) as caught:
        layer(x)
    assert str(caught.value) == (
        f"[{name}] input and weights differ in type: got {dtype} beside weights of float32, "
        "expected float32\nhint: x.astype('float32')"
    )
    assert layer(x.astype("float32")).dtype is pt.float32


def test_a_numpy_input_of_float64_does_not_widen_a_model() -> None:
    layer = nn.Linear(3, 2, device=DEVICE)
    data = np.random.default_rng(0).normal(size=(2, 3))
    with pytest.raises(DTypeError):
        layer(pt.asarray(data, device=DEVICE))
    assert layer(pt.asarray(data, dtype="float32", device=DEVICE)).dtype is pt.float32


def test_a_model_of_another_type_takes_inputs_of_it() -> None:
    wide = Numpy("float64")
    x = pt.ones((2, 3), device=wide)
    assert nn.Linear(3, 2, device=wide)(x).dtype is pt.float64
    with pytest.raises(DTypeError, match=r"x\.astype\('float64'\)"):
        nn.Linear(3, 2, device=wide)(x.astype("float32"))
