"""What does nothing has no place in source."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import phlox as px
from phlox_onnx.testing import _written


@pytest.mark.parametrize(("to", "casts"), [(1, 0), (11, 1)])
def test_a_cast_to_the_type_that_a_value_has_is_none(to: int, casts: int) -> None:
    kind = {1: "float", 11: "double"}[to]
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[n] x) => ({kind}[n] y) {{ a = Sin(x) b = Cast<to = {to}>(a) y = Neg(b) }}"""
    file = onnx.parser.parse_model(text).SerializeToString()
    assert px.onnx.source(file).count(".astype(") == casts


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("b = Equal(m, yes)", False),
        ("b = And(m, all)", False),
        ("b = And(all, m)", False),
        ("b = And(m, some)", True),
        ("b = And(m, wide)", True),
    ],
)
def test_a_truth_beside_what_is_true_is_itself(formula: str, told: bool) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (bool[2, 3] m) => (bool[k, l] y)
    <bool yes = {{1}}, bool[1, 3] all = {{1, 1, 1}}, bool[3] some = {{1, 0, 1}},
     bool[4, 1, 1] wide = {{1, 1, 1, 1}}> {{ {formula} y = Not(b) }}"""
    file = onnx.parser.parse_model(text)
    source = px.onnx.source(file.SerializeToString())
    assert ("return ~" not in source or "asarray" in source) is told
    m = np.array([[True, False, True], [False, True, True]])
    (wanted,) = ReferenceEvaluator(file).run(None, {"m": m})
    found = _written(file.SerializeToString(), device=px.Cpu())(px.asarray(m))
    np.testing.assert_array_equal(found.numpy(), wanted)
