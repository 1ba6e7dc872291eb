#!/usr/bin/env bash
# onnxsim 0.8.1 (onnx 1.23.2): two constant factors are multiplied with each other first, so that 1 becomes inf.
#
# Guess: x * 1e30 * 1e30 of x = 1e-30 is 1e30: each product fits float32. A tool that folds constants folds what is
# constant, and (x * a) is not; onnxslim and onnxruntime leave both factors.
# Done: two Mul by 1e30, and by 1e-30 twice, before and after onnxsim.simplify, whose own check of the result is asked for.
# Seen: one Mul by 1e30 * 1e30, which is inf in float32, and by 1e-60, which is 0. So 1e30 becomes inf, and 1e-30
# becomes 0. The check draws inputs of ordinary size, where both models overflow or end at 0 alike: it says that all is well.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxsim==0.8.1 onnxslim==0.1.98 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
import onnxsim
import onnxslim
from onnx import TensorProto, helper, numpy_helper


def model(factor):
    kind = helper.np_dtype_to_tensor_dtype(factor.dtype)
    nodes = [helper.make_node("Mul", ["x", "a"], ["y"]), helper.make_node("Mul", ["y", "b"], ["z"])]
    held = [numpy_helper.from_array(factor, name) for name in "ab"]
    x = helper.make_tensor_value_info("x", kind, [1])
    z = helper.make_tensor_value_info("z", kind, [1])
    graph = helper.make_graph(nodes, "factors", [x], [z], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def result(made, x, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.array([x])})[0][0])


cases = (
    (np.float32(1e30), np.float32(1e-30), 1e30, np.inf),
    (np.float32(1e-30), np.float32(1e30), 1e-30, 0),
)
for factor, x, right, seen in cases:
    made = model(np.asarray(factor))
    smaller, checked = onnxsim.simplify(made, check_n=3)
    print(f"{x} * {factor} * {factor}:", result(made, x), " onnxsim:", result(smaller, x), " its check:", checked)
    assert np.isclose(result(made, x), right, rtol=1e-2)
    assert np.isclose(result(made, x, "ORT_DISABLE_ALL"), right, rtol=1e-2)
    assert np.isclose(result(onnxslim.slim(model(np.asarray(factor))), x), right, rtol=1e-2)
    assert result(smaller, x) == seen, "both factors stay now"
PYTHON
