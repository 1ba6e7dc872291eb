"""Ops of com.microsoft give what ONNX Runtime gave; golden/make_microsoft.py wrote it down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import phlox_tensor as px
from phlox_onnx import load
from phlox_onnx.table import TABLE

with np.load(Path(__file__).parents[1] / "golden" / "microsoft.npz") as _file:
    GOLDEN: dict[str, Any] = dict(_file)
CASES = sorted({key.split("/")[0] for key in GOLDEN})


@pytest.mark.parametrize("case", CASES)
def test_a_row_gives_what_onnx_runtime_gives(case: str) -> None:
    model = load(GOLDEN[f"{case}/model"].tobytes())
    given = {name: px.asarray(GOLDEN[f"{case}/in/{name}"]) for name in model.inputs}
    found = model(**given)
    outputs = found if isinstance(found, tuple) else (found,)
    for i, output in enumerate(outputs):
        wanted = GOLDEN[f"{case}/out/{i}"]
        assert output.shape == wanted.shape
        assert output.numpy().dtype == wanted.dtype
        step = wanted.dtype in (np.int8, np.uint8)  # a half may be rounded to either side
        atol = 1 if step else 2e-5
        np.testing.assert_allclose(output.numpy().astype(float), wanted, rtol=1e-4, atol=atol)
        assert not step or np.mean(output.numpy() != wanted) < 0.05


PACKED = [c for c in CASES if c[3:] in ("DynamicQuantizeLSTM", "MatMulNBits")]


@pytest.mark.parametrize("case", PACKED)
def test_weights_may_be_constants(case: str) -> None:
    """As files have them: then they are unpacked once, or lie in a record."""
    made = onnx.load_model_from_string(GOLDEN[f"{case}/model"].tobytes())
    for value in list(made.graph.input)[1:]:
        array = GOLDEN[f"{case}/in/{value.name}"]
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
        made.graph.input.remove(value)
    model = load(made.SerializeToString(), device=px.default_device())
    found = model(px.asarray(GOLDEN[f"{case}/in/x0"]))
    first = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(first.numpy(), GOLDEN[f"{case}/out/0"], rtol=1e-4, atol=2e-5)


def test_every_row_has_a_case() -> None:
    rows = {op for domain, op in TABLE if domain == "com.microsoft"}
    assert rows <= {case[3:] for case in CASES}
