#!/usr/bin/env bash
# ONNX Runtime 1.32.0 (CPU): Unique merges NaN with ordinary numbers.
#
# Guess: [1, nan, 2] has three unique values; ONNX's page "Unique" points to numpy.unique, and
# the standard's reference evaluator gives 1, 2, nan. At worst several NaNs stay apart.
# Done: Unique with all four outputs of [1, nan, 2] and of [nan, 1, nan, 1].
# Seen: [1, 2] with counts 2, 1: the NaN is counted as a 1, and the inverse indices would rebuild
# it as 1. Of the second input one value, nan, is left with count 4: both ones are gone.
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


def unique(values):
    names = ["y", "first", "inverse", "counts"]
    kinds = [TensorProto.FLOAT] + [TensorProto.INT64] * 3
    graph = helper.make_graph(
        [helper.make_node("Unique", ["x"], names)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [len(values)])],
        [helper.make_tensor_value_info(n, k, [None]) for n, k in zip(names, kinds)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"x": np.array(values, np.float32)}
    reference = ReferenceEvaluator(model).run(None, feed)
    return [[np.asarray(o).tolist() for o in run] for run in (session.run(None, feed), reference)]


for values in ([1, np.nan, 2], [np.nan, 1, np.nan, 1]):
    seen, expected = unique(values)
    print(values, "ONNX Runtime", seen)
    print(values, "reference   ", expected)
    assert len(expected[0]) == len({str(v) for v in values})
    assert len(seen[0]) == len(expected[0]) - 1
PYTHON
