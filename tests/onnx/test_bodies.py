"""Bodies of loops as source: what they give may be constants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import phlox as px
from phlox_onnx.source._verify import imported

X = np.array([1, 2, 3], np.float32)
CASES: dict[str, tuple[str, list[Any]]] = {
    "a condition from outside": (
        """(float[3] x, int64 n) => (float[3] y) {
        c = Constant<value = bool {1}>()
        y = Loop(n, c, x) <body = b (int64 i, bool go, float[3] a) => (bool d, float[3] e)
            { e = Add(a, a) d = Identity(c) }> }""",
        [(8 * X).tolist()],
    ),
    "a condition of the body": (
        """(float[3] x, int64 n) => (float[3] y) {
        y = Loop(n, , x) <body = b (int64 i, bool go, float[3] a) => (bool d, float[3] e)
            { e = Add(a, a) d = Constant<value = bool {1}>() }> }""",
        [(8 * X).tolist()],
    ),
    "what is stacked": (
        """(float[3] x, int64 n) => (float y, float[k] s, int64[k] r) {
        z = Constant<value_float = 0.0>()
        y, s, r = Loop(n, , z) <body = b (int64 i, bool go, float a)
            => (bool d, float e, float f, int64 g)
            { e = ReduceSum<keepdims = 0>(x) f = Constant<value_float = 2.5>()
              g = Identity(i) d = Identity(go) }> }""",
        [6.0, [2.5, 2.5, 2.5], [0, 1, 2]],
    ),
    "what is carried": (
        """(float[3] x, int64 n) => (float y, int64 c) {
        z = Constant<value_float = 0.0>() zero = Constant<value_int = 0>()
        y, c = Loop(n, , z, zero) <body = b (int64 i, bool go, float a, int64 p)
            => (bool d, float e, int64 q)
            { e = Constant<value_float = 2.5>() one = Constant<value_int = 1>()
              q = Add(p, one) d = Less(q, n) }> }""",
        [2.5, 3],
    ),
    "slices": (
        """(float[3] x, int64 n) => (float y, float[3] s) {
        z = Constant<value_float = 0.0>()
        y, s = Scan<num_scan_inputs = 1, body = b (float a, float v) => (float e, float f)
            { e = Add(a, v) f = Constant<value_float = 2.5>() }>(z, x) }""",
        [6.0, [2.5, 2.5, 2.5]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_constants_that_a_body_gives_are_values(name: str, tmp_path: Path) -> None:
    text, wanted = CASES[name]
    file = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    feeds = {"x": X, "n": np.array(3)}
    found = px.onnx.load(file)(**feeds)
    assert [each.tolist() for each in px.tree.leaves(found)] == wanted
    px.onnx.write(file, tmp_path / "made")
    assert max(px.onnx.verify(file, tmp_path / "made", feeds).values()) == 0


NO_TURNS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "of a loop": (
        """(float[3] x, int64 n) => (int64[k, 2] y) {
        z, s = Loop(n, , x) <body = b (int64 i, bool go, float[3] a)
            => (bool d, float[3] e, int64[2] f)
            { e = Neg(a) f = Constant<value_ints = [4, 5]>() d = Identity(go) }>
        y = Neg(s) }""",
        (0, 2),
        "int64",
    ),
    "of slices": (
        """(float[3] x, int64 n) => (bool[2, k] y) {
        e = Constant<value_floats = [1.0]>() z = Unsqueeze(n, a) m = Expand(e, z)
        t, s = Scan<num_scan_inputs = 1, scan_output_axes = [1], body = b (float[3] a, float v)
            => (float[3] b, bool[2] f)
            { b = Neg(a) g = Constant<value_ints = [4, 5]>() f = Cast<to = 9>(g) }>(x, m)
        y = Not(s) }""",
        (2, 0),
        "bool",
    ),
}


@pytest.mark.parametrize("name", NO_TURNS)
def test_what_no_turn_gave_has_the_type_of_the_file(name: str, tmp_path: Path) -> None:
    text, shape, kind = NO_TURNS[name]
    file = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    file.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "a"))
    px.onnx.write(file, tmp_path / "made", verify={"x": X, "n": np.array(3)})
    for model in (px.onnx.load(file), imported(tmp_path / "made").load()):
        found = model(px.asarray(X), px.asarray(0))
        assert (found.shape, found.dtype.name) == (shape, kind)


@pytest.mark.parametrize("op", ["SequenceAt", "SequenceErase", "SequenceInsert"])
def test_places_out_of_a_sequence_are_refused(op: str) -> None:
    given = "a, x, p" if op == "SequenceInsert" else "a, p"
    kind = "float[3]" if op == "SequenceAt" else "seq(float[3])"
    text = f"""(float[3] x, int64 p) => ({kind} y) {{
        a = SequenceConstruct(x, x) y = {op}({given}) }}"""
    file = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    model = px.onnx.load(file)
    for place in (70, -3):
        with pytest.raises(px.onnx.OnnxError, match=rf"\[{op}\] no such item: got {place}"):
            model(X, np.array(place))
    assert len(model(X, np.array(-2))) == {"SequenceInsert": 3, "SequenceErase": 1}.get(op, 3)
