#!/usr/bin/env bash
# onnxscript 0.7.2: a Clip and a Relu, or two Clips, whose ranges do not meet become one Clip with another result.
#
# Guess: one after the other, each limits what the one before gave: Relu(Clip(x, -3, -1)) is 0, and a Clip to [8, 10]
# after one to [0, 6] gives 8. So ranges apart are left alone, as the sibling rule does that makes a Clip of Max and Min: by its
# docstring "lower_bound ≤ upper_bound" is a condition.
# Done: both graphs and one whose ranges meet, before and after onnxscript.optimizer.optimize, run by ONNX Runtime.
# Seen: -1 in place of 0, and 6 in place of 8: the larger minimum and the smaller maximum are taken, which cross, and of
# crossed bounds Clip gives the maximum. Ranges meet in most models; a Relu after a clamp of logarithms has them apart.
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

x = np.float32([-9, -2, 0, 7, 9])


def model(first, second):
    held = {f"{name}{end}": np.float32(value) for name, pair in zip("ab", (first, second)) for end, value in enumerate(pair)}
    last = ("Clip", ["t", "b0", "b1"]) if second else ("Relu", ["t"])
    nodes = [helper.make_node("Clip", ["x", "a0", "a1"], ["t"]), helper.make_node(*last, ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [len(x)]) for name in "xy"]
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "limits", ends[:1], ends[1:], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def result(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


cases = (
    ((-3, -1), (), np.zeros(5), np.full(5, -1)),
    ((0, 6), (8, 10), np.full(5, 8), np.full(5, 6)),
    ((-3, 8), (-5, 7), np.clip(x, -3, 7), np.clip(x, -3, 7)),
)
for first, second, right, seen in cases:
    made = model(first, second)
    optimized = onnxscript.optimizer.optimize(made)
    print(f"Clip{first} then {f'Clip{second}' if second else 'Relu'}:", result(made), " optimized:", result(optimized))
    assert np.array_equal(result(made), right)
    assert [node.op_type for node in optimized.graph.node] == ["Clip"]
    assert np.array_equal(result(optimized), seen), "the ranges are kept now"
PYTHON
