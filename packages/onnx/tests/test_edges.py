"""Rows where a size is 0 or 1; what ONNX Runtime 1.32 gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import phlox_tensor as px
from phlox_onnx import load


@pytest.mark.parametrize("shape", [(1, 0, 0), (0, 3, 3), (0, 0), (2, 0, 0, 0)])
def test_the_determinant_of_nothing_is_one(shape: tuple[int, ...]) -> None:
    text = """<ir_version: 9, opset_import: ["" : 21]> g (float x) => (float y) { y = Det(x) }"""
    proto = onnx.parser.parse_model(text)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.ClearField("shape")
    found = load(proto)(px.zeros(shape))
    assert found.shape == shape[:-2]
    assert (found.numpy() == 1).all()


@pytest.mark.parametrize("op", ["BlackmanWindow", "HammingWindow", "HannWindow"])
def test_a_window_of_one_up_to_its_end_is_no_number(op: str) -> None:
    """0 / 0 in the text of the standard; over a whole period it is the first element."""
    for periodic in (0, 1):
        text = f"""<ir_version: 9, opset_import: ["" : 21]> g (int64 n) => (float[n] y)
        {{ y = {op}<periodic = {periodic}>(n) }}"""
        found = load(onnx.parser.parse_model(text))(np.array(1))
        assert found.shape == (1,)
        assert np.isnan(found.numpy()).all() == (not periodic)
