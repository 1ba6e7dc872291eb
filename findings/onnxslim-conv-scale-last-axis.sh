#!/usr/bin/env bash
# onnxslim 0.1.98 (onnx 1.23.2): a factor along the width of a picture is multiplied into the channels of the convolution before it.
#
# Guess: Conv gives [1, 2, 2, 2], and a Mul by a constant of shape [2] scales its last axis, as ONNX broadcasts like
# NumPy (Broadcasting in ONNX); a tool that only makes models smaller keeps that.
# Done: a Conv of two channels and a Mul by [2, 3], before and after onnxslim.slim, by onnxruntime with its own
# optimizations off; and the same with the factor written as [2, 1, 1], which is one for each channel.
# Seen: both become one Conv with the weights of channel 0 doubled and those of channel 1 tripled. For [2, 1, 1] that
# is right. For [2] half of the elements are wrong, by a factor of 2/3 or 3/2, without a word. It happens wherever the
# width equals the number of channels. skip_fusion_patterns=["FusionConvMul"] leaves the Mul alone.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxslim==0.1.98 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper


def model(factor):
    weight = np.ones((2, 1, 3, 3), np.float32)
    nodes = [helper.make_node("Conv", ["x", "weight"], ["y"]), helper.make_node("Mul", ["y", "factor"], ["z"])]
    held = [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(factor, "factor")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4, 4])
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2, 2, 2])
    graph = helper.make_graph(nodes, "scaled", [x], [z], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def result(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.ones((1, 1, 4, 4), np.float32)})[0]


width = np.array([2, 3], np.float32)
right = result(model(width))
slim = result(onnxslim.slim(model(width)))
kept = result(onnxslim.slim(model(width), skip_fusion_patterns=["FusionConvMul"]))
print("by width, a row of each channel:", right[0, :, 0].tolist(), " slim:", slim[0, :, 0].tolist())
assert right[0, :, 0].tolist() == [[18, 27], [18, 27]] == kept[0, :, 0].tolist()
assert slim[0, :, 0].tolist() == [[18, 18], [27, 27]], "the factor is right now"

channels = width.reshape(2, 1, 1)
assert (result(onnxslim.slim(model(channels))) == result(model(channels))).all()
PYTHON
