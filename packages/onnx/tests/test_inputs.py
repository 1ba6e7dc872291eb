"""What a model may be called with: the element types of its file, and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import phlox_tensor as px
from phlox_onnx import OnnxModel, load

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
f (float[n] x, int64[k] i, bool[m] b) => (float[n] y, int64[k] j, bool[m] c) {
    y = Relu(x)  j = Neg(i)  c = Not(b)
}"""
X, N, B = np.array([-1, 2], "float32"), np.array([3]), np.array([True])


@pytest.fixture(scope="module")
def model() -> OnnxModel:
    return load(parser.parse_model(TEXT).SerializeToString())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((X.astype("float64"), N, B), r"got float64 for 'x', expected float32"),
        ((X.astype("float16"), N, B), r"got float16 for 'x', expected float32"),
        ((np.array([1, 2]), N, B), r"got int64 for 'x', expected float32"),
        ((X, N.astype("int32"), B), r"got int32 for 'i', expected int64"),
        ((X, N, np.array([1])), r"got int64 for 'b', expected bool"),
        ((px.asarray(X).astype(px.float64), N, B), r"hint: x.astype\(px.float32\)"),
        ((np.float64(2), N, B), r"hint: x.astype\('float32'\)"),
    ],
)
def test_arrays_and_tensors_of_another_type_are_refused(
    model: OnnxModel, given: tuple[Any, ...], said: str
) -> None:
    with pytest.raises(px.ArgumentError, match=said):
        model(*given)


def test_types_of_the_file_and_numbers_are_taken(model: OnnxModel) -> None:
    wanted = ([0.0, 2.0], [-3], [False])
    for given in ((X, N, B), tuple(map(px.asarray, (X, N, B))), ([-1, 2.0], [3.0], [1])):
        found = model(*given)
        assert tuple(t.tolist() for t in found) == wanted
        assert [t.dtype.name for t in found] == ["float32", "int64", "bool"]


@pytest.mark.parametrize(
    ("given", "name"),
    [((X, [0.7], B), "'i'"), ((X, [2**70], B), "'i'"), ((X, N, [2]), "'b'")],
)
def test_numbers_that_the_type_does_not_hold_are_refused(
    model: OnnxModel, given: tuple[Any, ...], name: str
) -> None:
    with pytest.raises(px.ArgumentError, match=f"list for {name}"):
        model(*given)
