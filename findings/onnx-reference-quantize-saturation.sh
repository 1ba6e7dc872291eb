#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's QuantizeLinear turns large values into the smallest code.
#
# Guess: 127 for int8 and 255 for uint8: ONNX's page "QuantizeLinear" says that the quotient is
# saturated to the type's range, and ONNX Runtime does so.
# Done: quantize 300, 3e9, 1e10 and inf with scale 1 to int8 and uint8, in both.
# Seen: 300 is right. From 2^31 on the reference gives -128 and 0: it casts to int32 before it
# clips. The negative end is right by luck. ONNX Runtime gives 127 or 255 for 1e10 and inf.
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

x = np.array([300, 3e9, 1e10, np.inf] * 16, np.float32)
for kind, low, high in ((np.int8, -128, 127), (np.uint8, 0, 255)):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
            helper.make_tensor_value_info("scale", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("zero", element, []),
        ],
        [helper.make_tensor_value_info("y", element, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"x": x, "scale": np.array(1, np.float32), "zero": np.array(0, kind)}
    reference = ReferenceEvaluator(model).run(None, feed)[0].tolist()[:4]
    runtime = session.run(None, feed)[0].tolist()[:4]
    print(kind.__name__, "reference", reference, "ONNX Runtime", runtime)
    assert reference == [high, low, low, low] and runtime == [high] * 4
PYTHON
