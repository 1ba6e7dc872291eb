#!/usr/bin/env bash
# onnx 1.23.2 and ONNX Runtime 1.32.0: MeanVarianceNormalization of ordinary data is -1e9 or NaN.
#
# Guess: about -1.414, 0, 1.414, 0 for four values near 10,000 and 0 for equal ones: ONNX's page
# "MeanVarianceNormalization" gives (X - EX) / sqrt(E(X - EX)^2), with a small term added.
# Done: the op on [1e4, 1e4 + 1, 1e4 + 2, 1e4 + 1] and on four equal values.
# Seen: the function body that the standard ships computes E[X^2] - E[X]^2 in float32, which is 0
# here, so the reference returns -1e9 and 1e9. ONNX Runtime centers first and is right there, but
# leaves the small term out: equal values are NaN where the standard's body gives 0.
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


def both(values):
    x = np.array(values, np.float32).reshape(1, 1, 2, 2)
    graph = helper.make_graph(
        [helper.make_node("MeanVarianceNormalization", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = ReferenceEvaluator(model).run(None, {"x": x}), session.run(None, {"x": x})
    return [output[0].ravel().tolist() for output in outputs]


far, equal = both([1e4, 1e4 + 1, 1e4 + 2, 1e4 + 1]), both([3, 3, 3, 3])
print("near 10,000: reference", far[0], "ONNX Runtime", far[1])
print("equal:       reference", equal[0], "ONNX Runtime", equal[1])
assert min(far[0]) < -1e8 and np.allclose(far[1], [-(2**0.5), 0, 2**0.5, 0], atol=1e-3)
assert equal[0] == [0, 0, 0, 0] and np.isnan(equal[1]).all()
PYTHON
