#!/usr/bin/env bash
# onnxscript 0.7.2: its optimizer takes x + 1e-8 for x + 0 and drops the addition, so that divisions and logarithms meet 0.
#
# Guess: adding a number that is not 0 stays. The rule is named add_0, and the page "Optimizing a Model using the Optimizer"
# speaks of folding, inlining and clean-ups. An epsilon of 1e-8 or 1e-12 is added because it has an effect.
# Done: x / (x + epsilon) and log(x + epsilon) of x = 0 for five epsilons, before and after onnxscript.optimizer.optimize,
# run by ONNX Runtime with and without its own optimizations.
# Seen: from 1e-8 on the Add is gone: 0 / 0 is nan where 0 was right, and log(1e-8) = -18.4 becomes -inf. 1e-7 stays, and
# so does an epsilon of shape [1]. Constants of a pattern are compared with a tolerance of 1e-8. ONNX Runtime's own
# optimizations leave all five.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxscript==0.7.2 onnx-ir==1.1.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
import onnxscript.optimizer
from onnx import TensorProto, helper, numpy_helper


def model(epsilon):
    nodes = [
        helper.make_node("Add", ["x", "epsilon"], ["safe"]),
        helper.make_node("Div", ["x", "safe"], ["quotient"]),
        helper.make_node("Log", ["safe"], ["logarithm"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("quotient", "logarithm")]
    graph = helper.make_graph(nodes, "safe", [x], outputs, [numpy_helper.from_array(epsilon, "epsilon")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def results(made, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [float(each[0]) for each in session.run(None, {"x": np.zeros(1, np.float32)})]


cases = ((1e-6, True), (1e-7, True), (1e-8, False), (1e-12, False), ([1e-12], True))
for epsilon, kept in cases:
    made = model(np.asarray(epsilon, np.float32))
    optimized = onnxscript.optimizer.optimize(made)
    before = results(made, "ORT_DISABLE_ALL")
    after = results(optimized, "ORT_DISABLE_ALL")
    kinds = [node.op_type for node in optimized.graph.node]
    print(f"epsilon {epsilon}: 0 / (0 + e), log(0 + e) = {before}, optimized {after} by {kinds}")
    assert before[0] == 0 and np.isclose(before[1], np.log(epsilon).item())
    assert np.allclose(results(made, "ORT_ENABLE_ALL"), before)
    assert ("Add" in kinds) == kept, "the rule changed"
    assert kept or (np.isnan(after[0]) and after[1] == -np.inf), "the result is right now"
PYTHON
