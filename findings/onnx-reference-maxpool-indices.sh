#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's MaxPool without a stride says wrong positions of the maxima.
#
# Guess: x.ravel()[indices] equals the output: ONNX's page "MaxPool" says that the second output holds the
# positions of the selected values in the flattened input, and ONNX Runtime and the same evaluator with a
# stride of 2 do so.
# Done: windows of 2 x 2 over a shuffled 4 x 5 image, with stride 1 and 2, in both; values beside x[indices].
# Seen: with stride 1 six of twelve positions of the reference point at smaller values: the place inside of the window is
# unraveled by the output's width instead of the window's. A maximum in the window's lower row is said to be in
# the upper one. MaxUnpool after it puts values in wrong places. The values of the first output are right.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

x = np.random.default_rng(0).permutation(20).astype(np.float32).reshape(1, 1, 4, 5)
print(x[0, 0].astype(int))
for stride in (1, 2):
    node = helper.make_node("MaxPool", ["x"], ["y", "indices"], kernel_shape=[2, 2], strides=[stride, stride])
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
        helper.make_tensor_value_info("indices", TensorProto.INT64, None),
    ]
    graph = helper.make_graph([node], "pool", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    values, right = session.run(None, {"x": x})
    same, said = ReferenceEvaluator(model).run(None, {"x": x})
    off = int((x.ravel()[said] != same).sum())
    print(f"stride {stride}: runtime {right.ravel().tolist()}, reference {said.ravel().tolist()}, {off} wrong")
    assert np.array_equal(values, same) and np.array_equal(x.ravel()[right], values)
    assert off == 6 if stride == 1 else off == 0, off
PYTHON
