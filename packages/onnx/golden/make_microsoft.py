"""Write microsoft.npz: ops of com.microsoft as ONNX Runtime computes them.

Run by hand, with onnxruntime beside onnx: python golden/make_microsoft.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingImports] - never a dependency
from onnx import TensorProto, helper

TARGET = Path(__file__).parent / "microsoft.npz"
rng = np.random.default_rng(0)


def f(*shape: int) -> Any:
    """Floats."""
    return rng.normal(size=shape).astype(np.float32)


def whole(values: Any) -> Any:
    """Integers, as masks and lengths are."""
    return np.array(values, np.int32)


def bytes_(*shape: int) -> Any:
    """Bytes, as quantized activations are."""
    return rng.integers(0, 256, shape).astype(np.uint8)


def small(*shape: int) -> Any:
    """Signed bytes of 7 bits: with 8, ONNX Runtime's sums overflow where the CPU lacks VNNI."""
    return rng.integers(-64, 64, shape).astype(np.int8)


def byte(value: int) -> Any:
    """A zero point."""
    return np.array(value, np.uint8)


def one(value: float) -> Any:
    """A number, as scales are."""
    return np.array(value, np.float32)


GEMM_ACTIVATIONS: dict[str, dict[str, float]] = {
    "Celu": {"activation_alpha": 0.7},
    "Elu": {"activation_alpha": 0.7},
    "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
    "LeakyRelu": {"activation_alpha": 0.3},
    "Relu": {},
    "Selu": {"activation_alpha": 1.5, "activation_gamma": 1.1},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"activation_alpha": 0.2},
}
COS, SIN = np.cos(f(8, 2)), np.sin(f(8, 2))
WIDE_COS, WIDE_SIN = np.cos(f(8, 8)), np.sin(f(8, 8))
# Op, inputs (None is absent), number of outputs, attributes.
CASES: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("Attention", [f(2, 3, 8), f(8, 24), f(24)], 1, {"num_heads": 2}),
    ("Attention", [f(2, 3, 8), f(8, 24), f(24), whole([2, 3])], 1, {"num_heads": 2}),
    ("Attention", [f(2, 3, 8), f(8, 24), f(24), whole([[1, 1, 0], [1, 1, 1]])], 1,
     {"num_heads": 2}),
    ("Attention", [f(2, 3, 8), f(8, 24), f(24)], 1, {"num_heads": 2, "unidirectional": 1}),
    ("Attention", [f(1, 2, 8), f(8, 24), f(24), None, f(2, 1, 2, 3, 4)], 2,
     {"num_heads": 2, "unidirectional": 1}),
    ("BiasGelu", [f(2, 3), f(3)], 1, {}),
    ("EmbedLayerNormalization",
     [whole([[1, 2, 0]]), whole([[0, 1, 1]]), f(4, 6), f(5, 6), f(2, 6), f(6), f(6),
      whole([[1, 1, 0]])], 2, {"epsilon": 1e-5}),
    ("EmbedLayerNormalization", [whole([[1, 2, 0]]), None, f(4, 6), f(5, 6), None, f(6), f(6)], 2,
     {"epsilon": 1e-5}),
    ("FastGelu", [f(2, 3), f(3)], 1, {}),
    ("FastGelu", [f(2, 3)], 1, {}),
    ("FusedMatMul", [f(3, 2), f(4, 3)], 1, {"transA": 1, "transB": 1, "alpha": 0.5}),
    ("FusedMatMul", [f(2, 3, 4), f(2, 5, 4)], 1, {"transB": 1}),
    ("Gelu", [f(2, 3)], 1, {}),
    ("GroupQueryAttention",
     [f(1, 4, 64), f(1, 4, 32), f(1, 4, 32), None, None, whole([3]), whole([4])], 3,
     {"num_heads": 4, "kv_num_heads": 2}),
    ("GroupQueryAttention",
     [f(2, 1, 64), f(2, 1, 32), f(2, 1, 32), f(2, 2, 6, 16), f(2, 2, 6, 16), whole([3, 5]),
      whole([6]), WIDE_COS, WIDE_SIN], 3, {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}),
    ("GroupQueryAttention",
     [f(1, 5, 64), f(1, 5, 32), f(1, 5, 32), None, None, whole([4]), whole([5]), WIDE_COS,
      WIDE_SIN], 3,
     {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1, "local_window_size": 2}),
    ("MatMulNBits",
     [f(3, 40), rng.integers(0, 256, (5, 2, 16)).astype(np.uint8), f(10)], 1,
     {"K": 40, "N": 5, "bits": 4, "block_size": 32}),
    ("MatMulNBits",
     [f(3, 40), rng.integers(0, 256, (5, 2, 16)).astype(np.uint8), f(10),
      rng.integers(0, 256, 5).astype(np.uint8)], 1,
     {"K": 40, "N": 5, "bits": 4, "block_size": 32}),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 4, 8), f(2, 4, 8)], 1, {"num_heads": 2}),
    ("MultiHeadAttention", [f(2, 3, 8), f(2, 4, 8), f(2, 4, 8), f(24), whole([3, 4])], 1,
     {"num_heads": 2}),
    ("MultiHeadAttention",
     [f(2, 3, 8), f(2, 4, 8), f(2, 4, 8), None, whole([[1, 1, 0, 1], [1, 1, 1, 1]]), f(1, 2, 3, 4)],
     1, {"num_heads": 2, "scale": 0.3}),
    ("MultiHeadAttention",
     [f(1, 2, 8), f(1, 2, 8), f(1, 2, 8), None, None, None, f(1, 2, 3, 4), f(1, 2, 3, 4)], 3,
     {"num_heads": 2}),
    ("QuickGelu", [f(2, 3)], 1, {"alpha": 1.5}),
    ("RotaryEmbedding", [f(2, 3, 8), np.array([1]), COS, SIN], 1, {"num_heads": 2}),
    ("RotaryEmbedding", [f(2, 2, 3, 4), np.array([[0, 2, 1], [3, 4, 5]]), COS, SIN], 1,
     {"interleaved": 1}),
    ("SkipLayerNormalization", [f(2, 3, 6), f(2, 3, 6), f(6), f(6), f(6)], 4, {"epsilon": 1e-5}),
    ("SkipSimplifiedLayerNormalization", [f(2, 3, 6), f(2, 3, 6), f(6)], 4, {"epsilon": 1e-5}),
    ("SimplifiedLayerNormalization", [f(2, 3, 6), f(6)], 1, {"epsilon": 1e-5}),
    ("CDist", [f(3, 4), f(5, 4)], 1, {"metric": "sqeuclidean"}),
    ("CDist", [f(3, 4), f(5, 4)], 1, {"metric": "euclidean"}),
    ("DequantizeLinear", [bytes_(3, 4), one(0.1), byte(3)], 1, {}),
    ("DequantizeLinear", [small(3, 4).astype(np.int16), one(0.1), np.array(3, np.int16)], 1, {}),
    ("DynamicQuantizeMatMul", [f(3, 4), small(4, 5), one(0.02)], 1, {}),
    ("DynamicQuantizeMatMul", [f(2, 3, 4), small(4, 5), np.abs(f(5)), small(5), f(5)], 1, {}),
    ("ExpandDims", [f(3, 4), np.array(-1, np.int32)], 1, {}),
    ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3)], 1,
     {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), f(1, 3, 3, 3)], 1,
     {"activation": "Clip", "activation_params": [0.0, 6.0], "kernel_shape": [3, 3]}),
    ("FusedConv", [f(1, 2, 5, 5), f(2, 1, 3, 3)], 1,
     {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], "group": 2,
      "strides": [2, 2]}),
    ("FusedConv", [f(1, 2, 5, 5), f(2, 2, 1, 1)], 1,
     {"activation": "LeakyRelu", "activation_params": [0.3]}),
    *(("FusedGemm", [f(3, 4), f(5, 4), f(5)], 1, {"activation": a, "transB": 1, **words})
      for a, words in GEMM_ACTIVATIONS.items()),
    ("GatherBlockQuantized", [bytes_(6, 8), np.array([[1, 5], [0, 2]]), f(6, 1)], 1,
     {"block_size": 16, "bits": 4}),
    ("GatherBlockQuantized", [bytes_(6, 32), np.array([4, 1]), f(6, 4), bytes_(6, 2)], 1,
     {"block_size": 16, "bits": 4}),
    ("GatherBlockQuantized", [bytes_(6, 32), np.array([4, 1]), f(6, 2), bytes_(6, 2)], 1,
     {"block_size": 16, "bits": 8}),
    ("GatherBlockQuantized", [bytes_(6, 32), np.array([4, 1]), f(6, 2)], 1,
     {"block_size": 16, "bits": 8}),
    ("GridSample", [f(1, 2, 4, 4), f(1, 3, 3, 2) / 2], 1, {"mode": "bicubic"}),
    ("GridSample", [f(1, 2, 4, 4), f(1, 3, 3, 2)], 1, {"padding_mode": "border"}),
    ("Inverse", [f(2, 3, 3)], 1, {}),
    ("MatMulIntegerToFloat", [bytes_(2, 3, 4), bytes_(4, 5), one(0.1), one(0.02)], 1, {}),
    ("MatMulIntegerToFloat",
     [bytes_(2, 3, 4), small(4, 5), one(0.1), np.abs(f(5)), byte(100), small(5), f(5)], 1, {}),
    ("Pad", [f(2, 3), np.array([1, 0, 0, 2]), one(0.5)], 1, {}),
    ("Pad", [f(4, 3), np.array([1, 0, 2, 2])], 1, {"mode": "reflect"}),
    ("QAttention", [bytes_(2, 3, 8), small(8, 24), f(24), one(0.02), one(0.01), None, byte(128)], 1,
     {"num_heads": 2}),
    ("QAttention",
     [bytes_(2, 3, 8), small(8, 24), f(24), one(0.02), np.abs(f(24)) / 50, whole([2, 3]),
      byte(120), small(24)], 1, {"num_heads": 2}),
    ("QAttention",
     [bytes_(1, 2, 8), small(8, 24), f(24), one(0.02), one(0.01), None, byte(128),
      np.array(0, np.int8), f(2, 1, 2, 3, 4)], 2, {"num_heads": 2, "unidirectional": 1}),
    ("QGemm",
     [bytes_(3, 4), one(0.1), byte(120), small(5, 4), np.abs(f(5)) / 9, np.zeros(5, np.int8),
      rng.integers(-90, 90, 5).astype(np.int32)], 1, {"transB": 1}),
    ("QGemm",
     [bytes_(4, 3), one(0.1), byte(120), bytes_(4, 5), one(0.02), byte(99), None, one(0.3),
      byte(128)], 1, {"alpha": 0.5, "transA": 1}),
    ("QLinearAdd",
     [bytes_(2, 3), one(0.1), byte(120), bytes_(3), one(0.2), byte(99), one(0.3), byte(128)], 1,
     {}),
    ("QLinearAdd",
     [small(2, 3), one(0.1), np.array(3, np.int8), small(3), one(0.2),
      np.array(-7, np.int8), one(0.3), np.array(9, np.int8)], 1, {}),
    ("QLinearAveragePool",
     [bytes_(1, 2, 5, 5), one(0.1), byte(120), one(0.07), byte(99)], 1,
     {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ("QLinearAveragePool",
     [bytes_(1, 5, 5, 2), one(0.1), byte(120), one(0.07), byte(99)], 1,
     {"kernel_shape": [2, 2], "channels_last": 1, "count_include_pad": 1, "pads": [1, 0, 0, 1]}),
    ("QLinearConcat",
     [one(0.1), byte(120), bytes_(2, 3), one(0.2), byte(7), bytes_(2, 2), one(0.05), byte(130)], 1,
     {"axis": 1}),
    ("QLinearGlobalAveragePool",
     [bytes_(1, 2, 5, 5), one(0.1), byte(120), one(0.07), byte(99)], 1, {}),
    ("QLinearGlobalAveragePool",
     [bytes_(1, 5, 5, 2), one(0.1), byte(120), one(0.07), byte(99)], 1, {"channels_last": 1}),
    ("QLinearLeakyRelu",
     [small(3, 4), one(0.1), np.array(5, np.int8), one(0.07), np.array(-9, np.int8)], 1,
     {"alpha": 0.2}),
    ("QLinearMul",
     [bytes_(2, 3), one(0.1), byte(120), bytes_(3), one(0.2), byte(99), one(1.3), byte(128)], 1,
     {}),
    ("QLinearSigmoid", [bytes_(3, 4), one(0.1), byte(120), one(1 / 256), byte(0)], 1, {}),
    ("QLinearSoftmax", [bytes_(3, 4), one(0.02), byte(120), one(1 / 256), byte(0)], 1,
     {"axis": -1, "opset": 13}),
    ("QLinearSoftmax", [bytes_(2, 3, 4), one(0.02), byte(120), one(1 / 256), byte(0)], 1,
     {"axis": 1, "opset": 12}),
    ("QLinearWhere",
     [np.array([[True, False, True]] * 2), bytes_(2, 3), one(0.1), byte(120), bytes_(2, 3),
      one(0.2), byte(99), one(0.3), byte(128)], 1, {}),
    ("QuantizeLinear", [f(3, 4), one(0.1), byte(120)], 1, {}),
    ("QuantizeLinear", [f(3, 4), one(0.001), np.array(3, np.int16)], 1, {}),
    ("Range", [one(1), one(9), one(2.5)], 1, {}),
    ("Range", [np.array(2, np.int32), np.array(6, np.int32)], 1, {}),
    ("Trilu", [f(3, 4), np.array(1)], 1, {"upper": 0}),
    ("Unique", [np.array([2, 1, 1, 3, 4, 3, 2], np.float32)], 3, {}),
    ("DynamicQuantizeLSTM",
     [f(5, 2, 3), small(1, 3, 16), small(1, 4, 16), f(1, 32), None, f(1, 2, 4), f(1, 2, 4), None,
      np.abs(f(1)) / 50, small(1), np.abs(f(1)) / 50, small(1)], 3, {"hidden_size": 4}),
    ("DynamicQuantizeLSTM",
     [f(5, 2, 3), small(2, 3, 16), small(2, 4, 16), None, whole([5, 3]), None, None, f(2, 12),
      np.abs(f(2, 16)) / 50, np.zeros((2, 16), np.int8), np.abs(f(2, 16)) / 50,
      np.zeros((2, 16), np.int8)], 3, {"hidden_size": 4, "direction": "bidirectional"}),
    ("GatherBlockQuantized", [bytes_(6, 8), np.array([4, 1]), f(6, 2)], 1,
     {"block_size": 16, "bits": 2}),
    ("GatherBlockQuantized", [bytes_(6, 8), np.array([4, 1]), f(6, 2), bytes_(6, 1)], 1,
     {"block_size": 16, "bits": 2}),
    ("MatMulNBits", [f(3, 64), bytes_(5, 2, 8), f(10)], 1,
     {"K": 64, "N": 5, "bits": 2, "block_size": 32}),
    ("MatMulNBits", [f(3, 64), bytes_(5, 2, 8), f(10), bytes_(5)], 1,
     {"K": 64, "N": 5, "bits": 2, "block_size": 32}),
]  # fmt: skip


def model(op: str, inputs: list[Any], outputs: int, attributes: dict[str, Any]) -> bytes:
    """A file of one node; the second and third of four outputs of a norm have no name."""
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    results = [f"y{i}" if outputs < 4 or i in (0, 3) else "" for i in range(outputs)]
    domain = "" if op == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in zip(names, inputs, strict=True)
        if n
    ]
    found = [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in results if n]
    for value in found:
        value.ClearField("type")
    graph = helper.make_graph([node], "g", given, found)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def main() -> None:
    """Compute all cases."""
    out: dict[str, Any] = {}
    for number, (op, inputs, outputs, attributes) in enumerate(CASES):
        key = f"{number:02d}_{op}"
        data = model(op, inputs, outputs, attributes)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        feeds = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
        out[f"{key}/model"] = np.frombuffer(data, np.uint8)
        out |= {f"{key}/in/{name}": value for name, value in feeds.items()}
        for i, value in enumerate(session.run(None, feeds)):
            out[f"{key}/out/{i}"] = value
    np.savez_compressed(TARGET, **out)


if __name__ == "__main__":
    main()
