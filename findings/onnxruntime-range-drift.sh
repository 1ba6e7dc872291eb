#!/usr/bin/env bash
# ONNX Runtime 1.32.0: a long float32 Range drifts, and its last values lie beyond the limit.
#
# Guess: element i is start + i * delta, rounded once, and every element is below the limit: ONNX's
# page "Range" gives this formula for output[i]. NumPy's arange keeps to it within one rounding.
# Done: Range(0, limit, delta) with 1,000, 100,000 and 1,000,000 elements, in the runtime and in the
# reference of the standard.
# Seen: the runtime adds delta again and again. The last value is 1e-5, 1e-3 and 1e-2 off; for a limit
# of 100,000 it is 100,958. Positions and time steps made inside of a model shift by that much.
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

inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ()) for name in ("start", "limit", "delta")]
output = helper.make_tensor_value_info("out", TensorProto.FLOAT, ("n",))
node = helper.make_node("Range", ["start", "limit", "delta"], ["out"])
graph = helper.make_graph([node], "range", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
session, reference = onnxruntime.InferenceSession(model.SerializeToString()), ReferenceEvaluator(model)

for limit, delta, drift in ((1.0, 1e-3, 5e-6), (1.0, 1e-5, 5e-4), (1e5, 0.1, 5e-3)):
    feed = {name: np.array(value, np.float32) for name, value in (("start", 0), ("limit", limit), ("delta", delta))}
    got, expected = session.run(None, feed)[0], reference.run(None, feed)[0]
    right = np.arange(len(got)) * np.float64(feed["delta"])
    off = np.abs(got - right).max() / limit
    print(f"limit {limit:g}, delta {delta:g}: last {got[-1]:.6g}, reference {expected[-1]:.6g}, off by {off:.1g}")
    assert off > drift, off
    assert np.abs(expected - right[: len(expected)]).max() / limit < 1e-6
assert got[-1] > feed["limit"], got[-1]
PYTHON
