#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU): MaxPool and GlobalMaxPool of -inf give -3.4028235e38.
#
# Guess: -inf, the largest of two -inf; ONNX's page "MaxPool" asks for the maximum of the window,
# and a masked score is often -inf. ReduceMax of the same runtime gives -inf.
# Done: MaxPool, GlobalMaxPool and ReduceMax of two -inf.
# Seen: the pools start from the lowest finite float32 and return it; ReduceMax returns -inf.
# So `isinf` finds no masked window after a pool, and exp(x - max) is 0 where NaN was due.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run(op, **attributes):
    x = np.full((1, 1, 2), -np.inf, np.float32)
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return float(session.run(None, {"x": x})[0].max())


seen = {
    "MaxPool": run("MaxPool", kernel_shape=[2]),
    "GlobalMaxPool": run("GlobalMaxPool"),
    "ReduceMax": run("ReduceMax"),
}
print(seen)
assert seen["ReduceMax"] == -np.inf
assert seen["MaxPool"] == seen["GlobalMaxPool"] == float(np.finfo(np.float32).min)
PYTHON
