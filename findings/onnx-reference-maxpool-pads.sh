#!/usr/bin/env bash
# onnx 1.23.2: the reference evaluator's MaxPool without a stride pairs the pads of different axes.
#
# Guess: pads [1, 1, 0, 0] add a row above and a column to the left: ONNX's page "MaxPool" gives their order
# as x1_begin, x2_begin, ..., x1_end, x2_end. AveragePool of the same evaluator and ONNX Runtime do so.
# Done: windows of 2 x 2 over 2 x 3 values with five lists of pads, as MaxPool in both and as AveragePool in
# the reference; then MaxPool with the stride 2.
# Seen: the reference takes pads 1 and 2 for the first axis and 3 and 4 for the second: [1, 1, 0, 0] gives 3 x 2
# values in place of 2 x 3. It disagrees in shape with the shape inference of its own package. Lists that are
# equal under that mistake, such as [1, 1, 1, 1], and all strides but 1 are right.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, shape_inference
from onnx.reference import ReferenceEvaluator

x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)


def run(op, pads, stride=1):
    node = helper.make_node(op, ["x"], ["y"], kernel_shape=[2, 2], pads=pads, strides=[stride, stride])
    graph = helper.make_graph(
        [node],
        "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    runtime = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    inferred = shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in inferred] == list(runtime.shape)
    return ReferenceEvaluator(model).run(None, {"x": x})[0], runtime


wrong = []
for pads in ([1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1]):
    reference, runtime = run("MaxPool", pads)
    print(f"MaxPool, pads {pads}: reference {reference[0, 0].tolist()}, runtime {runtime[0, 0].tolist()}")
    if reference.shape != runtime.shape:
        wrong.append(pads)
    average, expected = run("AveragePool", pads)
    assert average.shape == expected.shape == runtime.shape
    strided, expected = run("MaxPool", pads, 2)
    assert np.array_equal(strided, expected)
assert wrong == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], wrong
PYTHON
