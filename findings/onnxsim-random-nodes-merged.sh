#!/usr/bin/env bash
# onnxsim 0.8.1, onnxslim 0.1.98 (onnx 1.23.2): two random nodes become one, so that what was drawn twice is equal.
#
# Guess: two nodes RandomNormalLike without a seed draw apart, as their page says that "one will be auto generated",
# and Dropout in training gives two masks: neither is a common subexpression.
# Done: x + noise and x - other noise, of two RandomNormalLike each, and two Dropout of one input in training mode,
# before and after both tools, by onnxruntime with its own optimizations off, which itself keeps such nodes apart.
# Seen: one node is left of each pair. The sum of both is 2x without any noise, and both masks are one: noise layers,
# samples of a variational encoder, two views of one picture agree to the bit. Nothing is said.
# Other seed attributes keep nodes apart in both tools.
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

ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
NONE = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


def model(op, extra, **attributes):
    seeds = attributes.pop("seeds", (None, None))
    nodes = []
    for name, seed in zip("ab", seeds, strict=True):
        own = {} if seed is None else {"seed": seed}
        nodes.append(helper.make_node(op, ["x", *extra], [name], **attributes, **own))
    nodes.append(helper.make_node("Sub", ["a", "b"], ["z"]))
    held = [numpy_helper.from_array(value, name) for name, value in extra.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1000])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [1000])
    graph = helper.make_graph(nodes, "random", [x], [z], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def difference(made, level=NONE):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return float(np.abs(session.run(None, {"x": np.ones(1000, np.float32)})[0]).max())


tools = {"onnxsim": lambda made: onnxsim.simplify(made)[0], "onnxslim": onnxslim.slim}
dropout = {"ratio": np.float32(0.5), "training": np.bool_(True)}
for op, extra in (("RandomNormalLike", {}), ("Dropout", dropout)):
    made = model(op, extra)
    assert difference(made) > 0 and difference(made, ALL) > 0
    for tool, smaller in tools.items():
        print(op, "largest difference:", difference(made), f"{tool}:", difference(smaller(model(op, extra))))
        assert difference(smaller(model(op, extra))) == 0, "both draw apart now"

for smaller in tools.values():
    assert difference(smaller(model("RandomNormalLike", {}, seeds=(1.0, 2.0)))) > 0
PYTHON
