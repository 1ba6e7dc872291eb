"""Files that are well formed and wrong: no input makes them right, so none of them runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from phlox_onnx import load, source
from phlox_onnx.table import TABLE
from phlox_onnx.table._row import row
from phlox_tensor import PhloxError

MATRIX = "(float[2, 3] x) => (float y)"
PICTURE = "(float[1, 1, 9, 9] x) => (float y)"
BRANCH = "(float[2] x, bool c) => (float y) "

# Refused before anything runs, by `load` and by `source`: text of the graph, what is said.
AT_ONCE = {
    "attribute of another type": (f'{MATRIX} {{ y = LeakyRelu<alpha = "a">(x) }}', "another type"),
    "axis that is no whole number": (f"{MATRIX} {{ y = Softmax<axis = 1.0>(x) }}", "another type"),
    "branch that takes values": (
        BRANCH + "{ y = If(c) <then_branch = a (float q) => (float[2] s) { s = Relu(q) },"
        " else_branch = b () => (float[2] t) { t = Relu(x) }> }",
        "1 and 1, then_branch",
    ),
    "branch without a result": (
        BRANCH.replace("y)", "y, float z)")
        + "{ y, z = If(c) <then_branch = a () => (float[2] s) { s = Relu(x) },"
        " else_branch = b () => (float[2] t) { t = Relu(x) }> }",
        "0 and 2",
    ),
    "loop that gives too little": (
        "(float[2] x, int64 n) => (float y) { y = Loop(n, , x) "
        "<body = b (int64 i, bool p, float[2] v) => (bool q) { q = Identity(p) }> }",
        "3 and 1, body of Loop 'y', expected 3 and 2",
    ),
    "loop that takes too little": (
        "(float[2] x, int64 n) => (float y) { y = Loop(n, , x) <body = "
        "b (int64 i, bool p) => (bool q, float[2] v) { q = Identity(p) v = Relu(x) }> }",
        "2 and 2, body of Loop 'y', expected 3 and 2",
    ),
    "mode that is none": (
        f'{MATRIX} <float[2] s = {{1, 1}}> {{ y = Resize<mode = "cube">(x, , s) }}',
        "expected nearest, linear, cubic",
    ),
    "scan without a result": (
        "(float[2, 2] x) => (float y, float z) { y, z = Scan(x) <num_scan_inputs: int = 1,"
        " body: graph = b (float[2] v) => (float[2] w) { w = Relu(v) }> }",
        "1 and 1",
    ),
    "two results of an op that has one": (
        "(float[2] x) => (float y, float z) { y, z = Relu(x) }",
        "too many results",
    ),
}

AT_ONCE["value that is absent among those that an op joins"] = (
    f"{MATRIX} {{ y = Concat<axis = 0>(x, , x) }}",
    "an input is missing: got Concat 'y', expected inputs",
)

# Refused when sizes are known.
AT_THE_CALL = {
    "axes of reductions": (
        f"{MATRIX} <int64[1] a = {{3}}> {{ y = ReduceMean(x, a) }}",
        "axis out of range: got 3",
    ),
    "axes that are no whole numbers": (
        f"{MATRIX} <float[1] a = {{0}}> {{ y = Unsqueeze(x, a) }}",
        "no list of whole numbers: got float32",
    ),
    "axis of a sum": (f"{MATRIX} <int64 a = {{5}}> {{ y = CumSum(x, a) }}", "axis out of range"),
    "axis of flattening": (f"{MATRIX} {{ y = Flatten<axis = 7>(x) }}", "axis out of range"),
    "axis of layer norm": (
        f"{MATRIX} <float[3] s = {{1, 1, 1}}> {{ y = LayerNormalization<axis = 7>(x, s) }}",
        "axis out of range: got 7",
    ),
    "axis of one hot": (
        "(int64[2] x) => (float y) <int64 d = {3}, float[2] v = {0, 1}> "
        "{ y = OneHot<axis = 9>(x, d, v) }",
        "axis out of range",
    ),
    "dilations of a convolution": (
        f"{PICTURE} <float[1, 1, 1, 1] w = {{1}}> {{ y = Conv<dilations = [1]>(x, w) }}",
        "not a number for each axis",
    ),
    "kernel of a convolution": (
        f"{PICTURE} <float[1, 1, 1, 1] w = {{1}}> {{ y = Conv<kernel_shape = [5, 5]>(x, w) }}",
        "kernel_shape is not that of the weights",
    ),
    "kernel of a pool": (f"{PICTURE} {{ y = MaxPool<kernel_shape = [2]>(x) }}", "for each axis"),
    "pads of a convolution": (
        f"{PICTURE} <float[1, 1, 1, 1] w = {{1}}> {{ y = Conv<pads = [1, 1, 1, 1, 1]>(x, w) }}",
        "not a number for each axis",
    ),
    "pads of padding": (f"{MATRIX} <int64[2] p = {{0, 0}}> {{ y = Pad(x, p) }}", "for each axis"),
    "parts that no result takes": (
        "(float[3, 2] x) => (float y, float z) <int64[3] s = {1, 1, 1}> { y, z = Split(x, s) }",
        "got 3, expected 2",
    ),
    "parts that are counted": (
        "(float[3, 2] x) => (float y, float z) { y, z = Split<num_outputs = 3>(x) }",
        "got 3, expected 2",
    ),
    "repeats of a tile": (f"{MATRIX} <int64[1] r = {{2}}> {{ y = Tile(x, r) }}", "for each axis"),
    "shape of two axes": (
        f"{MATRIX} <int64[1, 2] s = {{3, 2}}> {{ y = Reshape(x, s) }}",
        r"int64 of shape \(1, 2\)",
    ),
    "starts without ends": (
        f"{MATRIX} <int64[2] a = {{0, 0}}, int64[1] b = {{1}}> {{ y = Slice(x, a, b) }}",
        "unlike lengths",
    ),
    "strides of a convolution": (
        f"{PICTURE} <float[1, 1, 1, 1] w = {{1}}> {{ y = Conv<strides = [1]>(x, w) }}",
        "not a number for each axis",
    ),
    "vectors in a Gemm": (
        "(float[2] x) => (float y) <float[2, 1] w = {1, 1}> { y = Gemm(x, w) }",
        "no matrices",
    ),
}


def file(text: str, opset: int = 18, ir: int = 9) -> bytes:
    head = f'<ir_version: {ir}, opset_import: ["" : {opset}]> g '
    return bytes(parser.parse_model(head + text).SerializeToString())


def inputs(data: bytes) -> list[Any]:
    out = []
    for value in onnx.load_from_string(data).graph.input:
        kind = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        out.append(np.ones([d.dim_value for d in kind.shape.dim], dtype))
    return out


@pytest.mark.parametrize(("text", "said"), AT_ONCE.values(), ids=AT_ONCE)
def test_a_file_that_no_input_makes_right_is_refused(text: str, said: str) -> None:
    for read in (load, source):
        with pytest.raises(PhloxError, match=said):
            read(file(text))


@pytest.mark.parametrize(("text", "said"), AT_THE_CALL.values(), ids=AT_THE_CALL)
def test_a_node_that_does_not_fit_its_input_is_refused(text: str, said: str) -> None:
    data = file(text)
    model = load(data)
    with pytest.raises(PhloxError, match=said):
        model(*inputs(data))


@pytest.mark.parametrize("opset", [0, -1, 1 << 40, onnx.defs.onnx_opset_version() + 1])
def test_versions_that_nobody_knows_are_refused(opset: int) -> None:
    model = onnx.load_from_string(file(f"{MATRIX} {{ y = Relu(x) }}"))
    model.opset_import[0].version = opset
    with pytest.raises(PhloxError, match="an opset that is not known"):
        load(model)


def test_a_model_without_outputs_is_refused() -> None:
    model = onnx.load_from_string(file(f"{MATRIX} {{ y = Relu(x) }}"))
    del model.graph.output[:]
    for read in (load, source):
        with pytest.raises(PhloxError, match="a model without outputs"):
            read(model)


def test_a_newer_form_of_file_is_refused() -> None:
    with pytest.raises(PhloxError, match="a newer form of file: got version 100"):
        load(file(f"{MATRIX} {{ y = Relu(x) }}", ir=100))


def test_two_constants_of_one_name_are_refused() -> None:
    model = onnx.load_from_string(file(f"{MATRIX} <float[3] w = {{1, 2, 3}}> {{ y = Add(x, w) }}"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    with pytest.raises(PhloxError, match="two constants have one name"):
        load(model)


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_whole_numbers_by_zero_are_zero_on_the_host_as_on_the_device(op: str) -> None:
    text = f"(float[2, 3] x) => (int64 y) <int64[1] z = {{0}}> {{ s = Shape(x) y = {op}(s, z) }}"
    assert load(file(text))(np.ones((2, 3), np.float32)).tolist() == [0, 0]


def test_a_fault_of_a_row_is_not_told_as_one_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    data = file(f"{MATRIX} {{ y = Relu(x) }}")
    monkeypatch.setitem(TABLE, ("", "Relu"), row(14, lambda X: X.no_such_method()))
    with pytest.raises(AttributeError, match="no_such_method"):
        load(data)(np.ones((2, 3), np.float32))


def test_an_absent_value_that_an_op_needs_is_refused_by_its_name() -> None:
    head = '<ir_version: 8, opset_import: ["" : 18]> g (optional(float[2]) x) => (float y)'
    proto = parser.parse_model(f"{head} {{ y = Relu(x) }}")
    with pytest.raises(PhloxError, match="an input is missing: got Relu 'y', expected X"):
        load(proto)(None)


def test_a_scan_that_lacks_its_last_value_is_left_to_the_call() -> None:
    text = """(float i, float[2] x) => (float y, float[2] z) {
        y, z = Scan(i, x) <num_scan_inputs: int = 1, body: graph = b (float v, float u) =>
            (float w, float o) { w = Add(v, u) o = Relu(w) }> }"""
    proto = onnx.load_model_from_string(file(text))
    proto.graph.node[0].input[1] = ""
    data = proto.SerializeToString()
    assert "_ops.scan" in source(data)
    with pytest.raises(PhloxError):
        load(data)(np.ones((), np.float32), np.ones(2, np.float32))
