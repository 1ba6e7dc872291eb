"""Nodes of com.microsoft whose weights are constants, as source: unpacked once, or in a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest

import phlox as px
from phlox_onnx.testing import _written

with np.load(Path(__file__).parents[2] / "packages/onnx/golden/microsoft.npz") as _file:
    GOLDEN: Final[dict[str, Any]] = dict(_file)
CASES: Final = {key.partition("/")[0] for key in GOLDEN}
PACKED: Final = sorted(c for c in CASES if c[3:] in ("DynamicQuantizeLSTM", "MatMulNBits"))


@pytest.mark.parametrize("case", PACKED)
def test_constant_weights_give_the_same_from_source(case: str) -> None:
    made = onnx.load_model_from_string(GOLDEN[f"{case}/model"].tobytes())
    for value in list(made.graph.input)[1:]:
        array = GOLDEN[f"{case}/in/{value.name}"]
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        made.graph.input.remove(value)
    found = _written(made.SerializeToString(), device=px.Cpu())(px.asarray(GOLDEN[f"{case}/in/x0"]))
    first = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(first.numpy(), GOLDEN[f"{case}/out/0"], rtol=1e-4, atol=2e-5)
