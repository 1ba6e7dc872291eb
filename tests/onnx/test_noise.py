"""What does nothing has no place in source."""

from __future__ import annotations

import onnx
import pytest

import phlox as px


@pytest.mark.parametrize(("to", "casts"), [(1, 0), (11, 1)])
def test_a_cast_to_the_type_that_a_value_has_is_none(to: int, casts: int) -> None:
    kind = {1: "float", 11: "double"}[to]
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[n] x) => ({kind}[n] y) {{ a = Sin(x) b = Cast<to = {to}>(a) y = Neg(b) }}"""
    file = onnx.parser.parse_model(text).SerializeToString()
    assert px.onnx.source(file).count(".astype(") == casts
