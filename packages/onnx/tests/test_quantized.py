"""Quantized files: rounding as the file says, gradients as if nothing had been rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import phlox_tensor as px
from phlox_onnx import load, source

TEXT = """<ir_version: 8, opset_import: ["" : 21]>
g (float[n, 4] x) => (float[n, 3] y) {
    q = QuantizeLinear(x, xs, xz)
    d = DequantizeLinear(q, xs, xz)
    w = DequantizeLinear<axis = 1>(wq, ws)
    h = MatMul(d, w)
    hq = QuantizeLinear(h, hs, hz)
    y = DequantizeLinear(hq, hs, hz)
}"""


@pytest.fixture
def file() -> bytes:
    rng = np.random.default_rng(0)
    constants: dict[str, Any] = {
        "xs": np.float32(0.05),
        "xz": np.uint8(128),
        "wq": rng.integers(-127, 128, (4, 3)).astype(np.int8),
        "ws": np.array([0.01, 0.02, 0.03], np.float32),
        "hs": np.float32(0.1),
        "hz": np.int8(3),
    }
    proto = parser.parse_model(TEXT)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return bytes(proto.SerializeToString())


X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)


def reference(data: bytes) -> Any:
    """The plain evaluator of the onnx wheel."""
    from onnx.reference import ReferenceEvaluator

    results: Any = ReferenceEvaluator(onnx.load_model_from_string(data)).run(None, {"x": X})
    return results[0]


def test_fake_and_exact_round_as_the_file_says(file: bytes) -> None:
    wanted = reference(file)
    for model in (load(file, quantized="fake"), load(file, quantized="exact")):
        found = model(px.asarray(X))
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_float_does_not_round(file: bytes) -> None:
    net = load(file, quantized="float")
    weight = net.params()["w"].value.numpy()
    np.testing.assert_allclose(net(px.asarray(X)).numpy(), X @ weight, rtol=1e-5, atol=1e-5)
    assert np.abs(net(px.asarray(X)).numpy() - reference(file)).max() > 1e-3


def test_weights_of_whole_numbers_are_trained_floats(file: bytes) -> None:
    assert list(load(file).params(trainable=True)) == ["w"]
    assert "w" not in load(file, quantized="exact").params()


CAST = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 4] x) => (float[n, 3] y) { f = Cast<to = 1>(wq) w = Mul(f, ws) y = MatMul(x, w) }"""


@pytest.mark.parametrize(
    ("scale", "dtype", "trained"),
    [
        ((1, 3), np.int8, ["w"]),
        ((3,), np.uint8, ["w"]),
        ((), np.int16, ["w"]),
        ((1, 3), np.int64, ["ws"]),  # numbers, for all that is known
        ((1, 1, 3), np.int8, ["ws"]),
    ],
)
def test_whole_numbers_that_are_cast_and_scaled_are_weights(
    scale: tuple[int, ...], dtype: Any, trained: list[str]
) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 100, (4, 3)).astype(dtype)
    by = (rng.random(scale) / 50).astype(np.float32)
    proto = parser.parse_model(CAST)
    for name, value in (("wq", whole), ("ws", np.asarray(by))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    data = bytes(proto.SerializeToString())
    net = load(data)
    assert list(net.params(trainable=True)) == trained
    wanted = X @ (whole.astype(np.float32) * by)
    np.testing.assert_allclose(net(px.asarray(X)).numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert "w" not in load(data, quantized="exact").params()


def test_scales_are_trained_where_that_is_asked(file: bytes) -> None:
    net = load(file, quantized="learned")
    assert list(net.params(trainable=True)) == ["xs", "hs", "w"]
    np.testing.assert_allclose(net(px.asarray(X)).numpy(), reference(file), rtol=1e-5, atol=1e-5)


def test_rounding_is_one_call_in_source(file: bytes) -> None:
    assert "px.fake_quantize(x, 0.05, 128, signed=False)" in source(file)
    assert "px.fake_quantize(x, self.xs.value, 128, signed=False)" in source(
        file, quantized="learned"
    )


def test_an_unknown_way_is_told(file: bytes) -> None:
    with pytest.raises(px.ArgumentError, match="'fake', 'float', 'exact'"):
        load(file, quantized="none")  # type: ignore[arg-type]


def test_ops_of_the_other_domain_train_alike(file: bytes) -> None:
    proto = onnx.load_model_from_string(file)
    for node in proto.graph.node:
        if node.op_type.endswith("uantizeLinear"):
            node.domain = "com.microsoft"
    proto.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    model = load(proto.SerializeToString())
    assert list(model.params(trainable=True)) == ["w"]
    found, wanted = model(px.asarray(X)), load(file)(px.asarray(X))
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize(
    ("bits", "zero", "bias"), [(4, True, True), (4, False, False), (8, True, False)]
)
def test_packed_weights_are_unpacked_once_and_train(bits: int, zero: bool, bias: bool) -> None:
    rng = np.random.default_rng(bits)
    rows, columns, block = 5, 40, 16
    blocks, per = 3, 16 * bits // 8
    constants: dict[str, Any] = {
        "B": rng.integers(0, 256, (rows, blocks, per)).astype(np.uint8),
        "scales": rng.normal(size=rows * blocks).astype(np.float32),
        "zero": rng.integers(0, 256, rows * -(-blocks * bits // 8)).astype(np.uint8),
        "bias": rng.normal(size=rows).astype(np.float32),
    }
    inputs = ["x", "B", "scales", "zero" if zero else "", "", "bias" if bias else ""]
    node = helper.make_node(
        "MatMulNBits",
        inputs,
        ["y"],
        domain="com.microsoft",
        K=columns,
        N=rows,
        bits=bits,
        block_size=block,
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, columns])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, rows])
    given = [numpy_helper.from_array(v, k) for k, v in constants.items() if k in inputs]
    graph = helper.make_graph([node], "g", [x], [y], given)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    file = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    model, packed = load(file), load(file, quantized="exact")
    value = rng.normal(size=(2, columns)).astype(np.float32)
    np.testing.assert_allclose(model(value).numpy(), packed(value).numpy(), rtol=1e-5, atol=1e-4)
    sizes = [p.value.shape for p in model.params(trainable=True).values()]
    assert (columns, rows) in sizes
    assert "MatMulNBits" not in [n.op for n in model.program.graph.nodes]
