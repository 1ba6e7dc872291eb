"""Attention as PyTorch's exporter writes it for sizes that are numbers: one call in source."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import phlox as px
from tests.onnx.exported import drawn

_ROOT: Final = """
    sizes = Shape (q)
    size = Slice (sizes, last, far)
    wide = Cast <to = 1> (size)
    by = Sqrt (wide)
    share = Div (one, by)
    scale = Cast <to = 1> (share)
    root = Sqrt (scale)
    a = Mul (q, root)
    again = Sqrt (scale)
    turned = Transpose <perm = [0, 1, 3, 2]> (k)"""


def _by_roots(head: str, ends: str) -> str:
    """What PyTorch's older exporter writes, which reads the scale from the shape of the query."""
    mask = ", float[t, t] m" if "seen" in ends else ""
    return f"""<ir_version: 8, opset_import: ["" : 14]>
g (float[{head}, 3] q, float[{head}, 3] k, float[{head}, 3] v{mask})
=> (float[{head}, 3] y)
<int64[1] last = {{-1}}, int64[1] far = {{9223372036854775807}}, float[1] one = {{1}}> {{
{_ROOT}
    {ends}
}}"""


_PLAIN: Final = """b = Mul (turned, again)
    scores = MatMul (a, b)
    shares = Softmax <axis = -1> (scores)
    y = MatMul (shares, v)"""
_MASKED: Final = _PLAIN.replace(
    "Softmax <axis = -1> (scores)", "Softmax <axis = -1> (seen)"
).replace("shares =", "seen = Add (scores, m) shares =")


MADE: Final[dict[str, str]] = {
    "the root of a scale from the shape": _by_roots("2, 4, 5", _PLAIN),
    "the same for any sizes": _by_roots("n, 4, t", _PLAIN),
    "the same with a mask": _by_roots("n, 4, t", _MASKED),
    "a stack of all heads": """<ir_version: 9, opset_import: ["" : 18]>
g (float[2, 4, 5, 3] q, float[2, 5, 4, 3] k, float[2, 4, 5, 3] v) => (float[2, 4, 5, 3] y)
<int64[4] own = {2, 5, 4, 3}, int64[3] flat = {-1, 5, 3}, int64[4] back = {2, 4, 3, 5},
 float[1] root = {0.75}> {
    heads = Reshape (k, own)
    rows = Transpose <perm = [0, 2, 1, 3]> (heads)
    stack = Reshape (rows, flat)
    turned = Transpose <perm = [0, 2, 1]> (stack)
    key = Reshape (turned, back)
    a = Mul (q, root)
    b = Mul (key, root)
    scores = MatMul (a, b)
    share = Softmax <axis = -1> (scores)
    y = MatMul (share, v)
}""",
    "heads that are cut later": """<ir_version: 9, opset_import: ["" : 18]>
g (float[5, 8, 3] q, float[5, 8, 3] k, float[2, 4, 5, 3] v) => (float[2, 4, 5, 3] y)
<int64[3] own = {5, 8, 3}, int64[4] heads = {2, 4, 5, 3}, int64[4] back = {2, 4, 3, 5},
 float[1] root = {0.75}> {
    q2 = Transpose <perm = [1, 0, 2]> (q)
    query = Reshape (q2, heads)
    k2 = Reshape (k, own)
    rows = Transpose <perm = [1, 0, 2]> (k2)
    turned = Transpose <perm = [0, 2, 1]> (rows)
    key = Reshape (turned, back)
    a = Mul (query, root)
    b = Mul (key, root)
    scores = MatMul (a, b)
    share = Softmax <axis = -1> (scores)
    y = MatMul (share, v)
}""",
    "a mask that is a constant": """<ir_version: 9, opset_import: ["" : 18]>
g (float[1, 2, 2, 3] q, float[1, 2, 2, 3] k, float[1, 2, 2, 3] v) => (float[1, 2, 2, 3] y)
<float[2, 2] mask = {0, -100, 0, 0}> {
    key = Transpose <perm = [0, 1, 3, 2]> (k)
    scores = MatMul (q, key)
    seen = Add (scores, mask)
    share = Softmax <axis = -1> (seen)
    y = MatMul (share, v)
}""",
    "three axes": """<ir_version: 9, opset_import: ["" : 18]>
g (float[8, 5, 3] q, float[5, 8, 3] k, float[8, 5, 3] v) => (float[8, 5, 3] y)
<float half = {0.5}> {
    a = Mul (q, half)
    key = Transpose <perm = [1, 2, 0]> (k)
    scores = MatMul (a, key)
    share = Softmax <axis = -1> (scores)
    y = MatMul (share, v)
}""",
    "the op": """<ir_version: 10, opset_import: ["" : 23]>
g (float[n, 4, t, 3] q, float[n, 4, t, 3] k, float[n, 4, t, 3] v) => (float[n, 4, t, 3] y) {
    y = Attention <is_causal = 1> (q, k, v)
}""",
    "the op with a mask": """<ir_version: 10, opset_import: ["" : 23]>
g (float[2, 4, 5, 3] q, float[2, 2, 5, 3] k, float[2, 2, 5, 3] v, bool[5, 5] m)
=> (float[2, 4, 5, 3] y) {
    y = Attention <scale = 0.3, softcap = 2.0> (q, k, v, m)
}""",
}


@pytest.mark.parametrize("name", MADE)
def test_a_formula_of_attention_is_one_call(name: str, tmp_path: Path) -> None:
    file = onnx.parser.parse_model(MADE[name])
    feeds: dict[str, Any] = {}
    for value in file.graph.input:
        sizes = value.type.tensor_type.shape.dim
        dims = [d.dim_value or {"n": 2, "t": 5}[d.dim_param] for d in sizes]
        kind = bool if "bool[5, 5] m" in MADE[name] else np.float32
        feeds[value.name] = np.tri(5, dtype=kind) if value.name == "m" else drawn(*dims)
    made = px.onnx.write(file.SerializeToString(), tmp_path / "made", verify=feeds)
    assert made.model.count("px.attention(") == 1
    assert made.ops is None
    wanted: Any = ReferenceEvaluator(file).run(None, feeds)
    found = px.onnx.load(file.SerializeToString())(**feeds)
    np.testing.assert_allclose(found.numpy(), wanted[0], rtol=1e-4, atol=1e-5)
    far = px.onnx.verify(file.SerializeToString(), tmp_path / "made", feeds)
    assert max(far.values()) < 1e-5


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Slice (sizes, last, far)", "Slice (sizes, one_more, last)"),
        ("root = Sqrt (scale)", "root = Exp (scale)"),
        ("Mul (turned, again)", "Mul (turned, share)"),
        ("Div (one, by)", "Div (by, one)"),
        ("sizes = Shape (q)", "sizes = Shape (v)"),
    ],
)
def test_another_scale_is_no_attention_of_the_usual_one(
    before: str, after: str, tmp_path: Path
) -> None:
    text = MADE["the root of a scale from the shape"].replace(before, after)
    text = text.replace("float[1] one =", "int64[1] one_more = {-2}, float[1] one =")
    assert text.count(after) == 1
    file = onnx.parser.parse_model(text)
    feeds = {n: drawn(2, 4, 5, 3) + i for i, n in enumerate("qkv")}
    made = px.onnx.write(file.SerializeToString(), tmp_path / "made", verify=feeds)
    assert "px.attention(" not in made.model
    wanted: Any = ReferenceEvaluator(file).run(None, feeds)
    found = px.onnx.load(file.SerializeToString())(**feeds)
    np.testing.assert_allclose(found.numpy(), wanted[0], rtol=1e-4, atol=1e-5)
