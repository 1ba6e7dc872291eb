#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's LogSoftmax is -inf for logits 110 apart.
#
# Guess: -200 for the second of [0, -200]: the log-softmax is finite for finite input, and ONNX's
# page "LogSoftmax" writes it as Log(Softmax(x)) but of real numbers. ONNX Runtime gives -200.
# Done: LogSoftmax of [0, -50, -200] in both.
# Seen: the reference takes the logarithm of a float32 softmax that has gone to 0: -inf. A test
# suite that trusts it calls every careful implementation wrong.
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

x = np.array([[0, -50, -200]], np.float32)
graph = helper.make_graph(
    [helper.make_node("LogSoftmax", ["x"], ["y"], axis=1)],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
reference = ReferenceEvaluator(model).run(None, {"x": x})[0].tolist()
runtime = session.run(None, {"x": x})[0].tolist()
print("reference", reference, "ONNX Runtime", runtime)
assert reference == [[0, -50, -np.inf]] and runtime == [[0, -50, -200]]
PYTHON
