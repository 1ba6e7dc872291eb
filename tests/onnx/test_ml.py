"""Ops of ai.onnx.ml that scikit-learn's linear models need: what ONNX Runtime 1.32 gives."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from phlox_onnx import OnnxError, load
from phlox_onnx.testing import _written
from phlox_tensor import Numpy, asarray

X: Final = np.array([[1, -2, 0.5], [0, 0, 0], [-1, -3, -2]], np.float32)
TWO: Final = {"coefficients": [1.0, 2.0, 3.0, -1.0, 0.0, 1.0], "intercepts": [0.5, 0.1]}
ONE: Final = {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5], "classlabels_ints": [3, 7]}
LINES: Final = X @ np.array([[1, 2, 3], [-1, 0, 1]], np.float32).T + np.array([0.5, 0.1])
FIRST: Final = LINES[:, :1]


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


CASES: Final[dict[str, tuple[str, dict[str, Any], list[Any]]]] = {
    "a scaler": ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5]}, [(X - [1, 2, 3]) * 0.5]),
    "columns over 0.3": ("Binarizer", {"threshold": 0.3}, [X > 0.3]),
    "one row, as it is": ("LinearClassifier", ONE, [[3, 7, 3], np.hstack([1 - FIRST, FIRST])]),
    "one row, logistic": (
        "LinearClassifier",
        {**ONE, "post_transform": "LOGISTIC"},
        [[3, 7, 3], np.hstack([1 - logistic(FIRST), logistic(FIRST)])],
    ),
    "the largest": ("Normalizer", {"norm": "MAX"}, [[[1, -2, 0.5], [0, 0, 0], [1, 3, 2]]]),
    "the root of squares": (
        "Normalizer",
        {"norm": "L2"},
        [X / np.array([[5.25**0.5], [1], [14**0.5]])],
    ),
    "the sum": ("Normalizer", {"norm": "L1"}, [X / np.array([[3.5], [1], [6]])]),
    "two classes": (
        "LinearClassifier",
        {**TWO, "classlabels_ints": [4, 9], "post_transform": "SOFTMAX"},
        [[9, 4, 9], softmax(LINES)],
    ),
    "two targets": ("LinearRegressor", {**TWO, "targets": 2}, [LINES]),
}


def file(op: str, words: dict[str, Any]) -> bytes:
    count = 2 if op == "LinearClassifier" else 1
    types = [TensorProto.INT64, TensorProto.FLOAT][-count:]
    names = ["label", "y"][-count:]
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **words)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    found = [helper.make_tensor_value_info(n, t, None) for n, t in zip(names, types, strict=True)]
    graph = helper.make_graph([node], "g", [given], found)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


@pytest.mark.parametrize("read", [load, _written], ids=["load", "source"])
@pytest.mark.parametrize("name", CASES)
def test_a_linear_model_gives_labels_and_scores(name: str, read: Any) -> None:
    op, words, wanted = CASES[name]
    found = read(file(op, words), device=Numpy())(asarray(X, device=Numpy()))
    results = found if isinstance(found, tuple) else (found,)
    assert len(results) == len(wanted)
    for result, value in zip(results, wanted, strict=True):
        assert result.shape == np.shape(value)
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-5, atol=1e-6)


WRONG: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "a norm": ("Normalizer", {"norm": "L3"}, "no such norm: got 'L3', expected MAX, L1, L2"),
    "a transform": (
        "LinearRegressor",
        {**TWO, "targets": 2, "post_transform": "PROBIT"},
        "got PROBIT",
    ),
    "labels of text": (
        "LinearClassifier",
        {**TWO, "classlabels_strings": ["a", "b"]},
        "labels that are text",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_formula_is_refused_by_name(name: str) -> None:
    op, words, says = WRONG[name]
    with pytest.raises(OnnxError, match=says):
        load(file(op, words))(X)


def test_maps_are_refused_with_what_to_do() -> None:
    with pytest.raises(OnnxError, match=r"ops without a row: got ai.onnx.ml.ZipMap(.|\n)*zipmap"):
        load(file("ZipMap", {}))


def test_gradients_in_a_file_are_refused_with_what_to_do() -> None:
    domain = "ai.onnx.preview.training"
    text = f"""<ir_version: 8, opset_import: ["" : 18, "{domain}" : 1]>
    g (float[2] a) => (float[2] y, float[2] slope) {{
        y = Neg(a)
        slope = {domain}.Gradient<xs = ["a"], y = "y">(a)
    }}"""
    with pytest.raises(OnnxError, match=r"got ai.onnx.preview.training.Gradient(.|\n)*px\.grad"):
        load(parser.parse_model(text).SerializeToString())
