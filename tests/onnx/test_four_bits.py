"""Whole numbers of four bits lie in bytes, and keep the bounds of four bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import phlox_tensor as px
from phlox_onnx import load
from phlox_onnx.testing import _written

INT4, UINT4 = TensorProto.INT4, TensorProto.UINT4
X = np.array([2.5, -9, 300, -300], np.float32)
# What ONNX Runtime 1.32 gives.
ROUNDED = {INT4: [2, -8, 7, -8], UINT4: [2, 0, 15, 0]}
CAST = {INT4: [-7, 7, 4, -4], UINT4: [9, 7, 4, 12]}


def file(nodes: list[Any], x: int, y: int, *constants: Any) -> bytes:
    given, found = (helper.make_tensor_value_info(n, t, [4]) for n, t in (("x", x), ("y", y)))
    graph = helper.make_graph(nodes, "g", [given], [found], list(constants))
    opsets = [helper.make_opsetid("", 21)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(made.SerializeToString())


def one(name: str, code: int, value: float) -> Any:
    return helper.make_tensor(name, code, [], [value])


def ways(data: bytes, **words: Any) -> list[Any]:
    return [load(data, **words), _written(data, device=px.default_device())]


@pytest.mark.parametrize("code", [INT4, UINT4])
@pytest.mark.parametrize("zero", ["constant", "cast", "none", "turned"])
@pytest.mark.parametrize("how", ["exact", "fake", "learned"])
def test_what_is_quantized_is_cut_off_at_four_bits(code: Any, zero: str, how: Any) -> None:
    """Whichever way the file says that the numbers have four bits."""
    scale, nodes = one("s", TensorProto.FLOAT, 1.0), []
    constants = [scale, one("z", code, 0)]
    words: dict[str, Any] = {}
    if zero == "cast":
        constants[1] = one("eight", TensorProto.INT8, 0)
        nodes = [helper.make_node("Cast", ["eight"], ["z"], to=code)]
    if zero == "turned":
        constants[1] = one("flat", code, 0)
        nodes = [helper.make_node("Identity", ["flat"], ["z"])]
    if zero == "none":
        constants, words = [scale], {"output_dtype": code}
    names = ["s", *(["z"] if zero != "none" else [])]
    nodes += [
        helper.make_node("QuantizeLinear", ["x", *names], ["q"], **words),
        helper.make_node("DequantizeLinear", ["q", *names], ["y"]),
    ]
    data = file(nodes, TensorProto.FLOAT, TensorProto.FLOAT, *constants)
    for model in ways(data, quantized=how):
        assert model(px.asarray(X)).tolist() == ROUNDED[code]


@pytest.mark.parametrize("code", [INT4, UINT4])
@pytest.mark.parametrize("op", ["Cast", "CastLike"])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.int64])
def test_a_cast_keeps_the_low_four_bits(code: Any, op: str, dtype: Any) -> None:
    like = op == "CastLike"
    nodes = [
        helper.make_node("CastLike", ["x", "z"], ["a"])
        if like
        else helper.make_node("Cast", ["x"], ["a"], to=code),
        helper.make_node("Cast", ["a"], ["y"], to=TensorProto.INT32),
    ]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    data = file(nodes, kind, TensorProto.INT32, *([one("z", code, 0)] if like else []))
    for model in ways(data):
        found = model(px.asarray(np.array([9, -9, 20, -20], dtype)))
        assert found.tolist() == CAST[code]


@pytest.mark.parametrize(("x", "y", "wanted"), [(INT4, UINT4, [15, 8, 7, 0]), (UINT4, INT4, [-1])])
def test_bits_are_those_of_four(x: int, y: int, wanted: list[int]) -> None:
    nodes = [helper.make_node("BitCast", ["x"], ["y"], to=y)]
    given = np.array([-1, -8, 7, 0], np.int8) if x == INT4 else np.full(4, 15, np.uint8)
    found = load(file(nodes, x, y))(given)
    assert found.tolist()[: len(wanted)] == wanted


def test_an_input_of_four_bits_has_their_bounds() -> None:
    data = file([helper.make_node("Identity", ["x"], ["y"])], INT4, INT4)
    assert load(data)(np.array([-8, 7, 0, 1], np.int8)).tolist() == [-8, 7, 0, 1]
    with pytest.raises(px.ArgumentError, match="got \\(-9, 8\\) for 'x', expected -8 to 7"):
        load(data)(np.array([-9, 8, 0, 1], np.int8))
