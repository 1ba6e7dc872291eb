"""What layers give, and their slopes, at kinks, ties, zeros and where they saturate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Numpy
from tests.layers.edges import EDGES

WANT = json.loads((Path(__file__).parent / "edges.json").read_text())
DOUBLE = Autodiff(Numpy(float="float64"))


def test_every_row_has_values() -> None:
    assert set(WANT) == set(EDGES)


@pytest.mark.parametrize("name", EDGES)
def test_values_and_slopes_are_those_of_pytorch(name: str) -> None:
    case, want = EDGES[name], WANT[name]
    module = case.config.init(DOUBLE).with_training(False)
    inputs = [px.asarray(array, device=DOUBLE) for array in case.inputs]
    inputs = [x.require_grad() if x.dtype.kind == "Float" else x for x in inputs]
    out = module(*inputs)
    assert np.allclose(out.numpy().reshape(-1), want["value"], rtol=1e-9, atol=1e-12)
    grads = out.sum().backward()
    leaves = {str(i): x for i, x in enumerate(inputs)}
    leaves |= {path: param.value for path, param in module.params().items()}
    for key in want.keys() - {"value"}:
        slope = grads.get(leaves[key])
        got = np.zeros(leaves[key].shape) if slope is None else slope.numpy()
        assert np.allclose(got.reshape(-1), want[key], rtol=1e-7, atol=1e-12), (
            key
        )  # its 1 / 6 is float32
