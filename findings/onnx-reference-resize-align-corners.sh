#!/usr/bin/env bash
# onnx 1.23.2 and ONNX Runtime 1.32.0: Resize with align_corners differs for a fractional length.
#
# Guess: the last output equals the last input. That is what ONNX's page "Resize" and the name
# align_corners promise, and the output length is the floor of length times scale: 6 of 4 * 1.6.
# Done: linear Resize of [1, 2, 3, 4] with scale 1.6 in the reference evaluator and the runtime.
# Seen: the reference spaces by (4 - 1) / (6.4 - 1) and ends at 3.78, so no corner is aligned.
# ONNX Runtime spaces by (4 - 1) / (6 - 1) and ends at 4.
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

x, scales = np.array([[[1, 2, 3, 4]]], np.float32), np.array([1, 1, 1.6], np.float32)
mode = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
graph = helper.make_graph(
    [helper.make_node("Resize", ["x", "", "scales"], ["y"], **mode)],
    "g",
    [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, scales.shape),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
feed = {"x": x, "scales": scales}
reference = ReferenceEvaluator(model).run(None, feed)[0].ravel()
runtime = session.run(None, feed)[0].ravel()
print("reference", reference.round(4).tolist(), "ONNX Runtime", runtime.round(4).tolist())
assert len(reference) == len(runtime) == 6
assert abs(reference[-1] - 3.7778) < 1e-3 and abs(runtime[-1] - 4) < 1e-3
PYTHON
