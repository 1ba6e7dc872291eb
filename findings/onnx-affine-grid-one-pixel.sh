#!/usr/bin/env bash
# onnx 1.23.2 and ONNX Runtime 1.32.0: AffineGrid of one row with align_corners=1 has two answers.
#
# Guess: 0 for the identity, the middle, as `torch.nn.functional.affine_grid` gives, to whose page
# ONNX's page "AffineGrid" refers: -1 and 1 are the centers of the corner pixels, and one pixel is
# both corners. At least the reference evaluator and the runtime agree.
# Done: the identity transform on a grid of 1 x 2 positions, coordinate y.
# Seen: the reference says -1, ONNX Runtime says 1: an exported spatial transformer reads the
# lower edge or the upper one, and neither is where it was trained to read.
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

theta, size = np.eye(2, 3, dtype=np.float32)[None], np.array([1, 1, 1, 2])
graph = helper.make_graph(
    [helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=1)],
    "g",
    [
        helper.make_tensor_value_info("theta", TensorProto.FLOAT, theta.shape),
        helper.make_tensor_value_info("size", TensorProto.INT64, size.shape),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
feed = {"theta": theta, "size": size}
reference = ReferenceEvaluator(model).run(None, feed)[0][0, 0, :, 1].tolist()
runtime = session.run(None, feed)[0][0, 0, :, 1].tolist()
print("y of the two positions: reference", reference, "ONNX Runtime", runtime)
assert reference == [-1.0, -1.0] and runtime == [1.0, 1.0]
PYTHON
