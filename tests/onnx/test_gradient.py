"""Nodes of Gradient give what phlox's own derivatives are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import phlox as px
from phlox import Autodiff, Cpu
from phlox_onnx.source._verify import imported

DOMAIN = "ai.onnx.preview.training"
HEAD = f'<ir_version: 8, opset_import: ["" : 18, "{DOMAIN}" : 1]> g '


def file(body: str, y: str = "y") -> bytes:
    call = f'da, db = {DOMAIN}.Gradient<xs = ["a", "b"], y = "{y}">(a, b)'
    text = f"(float[2, 3] a, float[3] b) => (float[2, 3] y, float[m, n] da, float[k] db) {{ {body} "
    return bytes(parser.parse_model(f"{HEAD}{text} {call} }}").SerializeToString())


A = np.random.default_rng(0).uniform(0.5, 1.5, (2, 3)).astype(np.float32)
B = np.random.default_rng(1).uniform(0.5, 1.5, 3).astype(np.float32)
BODIES = {
    "sums": "s = Sum(a, b, a) d = Sub(b, s) y = Add(d, a)",
    "products": "p = Mul(a, b) q = Div(p, a) r = Div(b, q) y = Mul(r, r)",
    "waves": "s = Sin(a) c = Cos(b) p = Mul(s, c) n = Neg(p) y = Identity(n)",
    "roots": "r = Sqrt(a) l = Log(b) e = Exp(l) p = Mul(r, e) y = Relu(p)",
    "bends": "t = Tanh(a) s = Sigmoid(b) y = Mul(t, s)",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_gradient_is_that_of_phlox(name: str, tmp_path: Path) -> None:
    data, train = file(BODIES[name]), Autodiff(Cpu())
    a, b = (px.asarray(v, device=train).require_grad() for v in (A, B))
    y, da, db = px.onnx.load(data, device=train)(a, b)
    wanted = y.sum().backward()
    for found, of in ((da, a), (db, b)):
        np.testing.assert_allclose(found.numpy(), of.grad(wanted).numpy(), rtol=1e-5, atol=1e-6)
    px.onnx.write(data, tmp_path / "made", verify={"a": A, "b": B})
    plain = [px.asarray(v, device=Cpu()) for v in (A, B)]
    for found, expected in zip(
        imported(tmp_path / "made").load(Cpu())(*plain), (y, da, db), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_what_does_not_depend_has_a_gradient_of_zeros() -> None:
    _, da, db = px.onnx.load(file("y = Neg(a)"))(A, B)
    assert (da.tolist(), db.tolist()) == ([[-1.0] * 3] * 2, [0.0] * 3)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y = Erf(a)", "an op without a rule: got Erf"),
        ("y = Mul(a)", "does not fit"),
    ],
)
def test_what_has_no_rule_is_refused(body: str, words: str) -> None:
    with pytest.raises(px.onnx.OnnxError, match=words):
        px.onnx.load(file(body))


def test_gradients_that_become_too_many_nodes_are_refused() -> None:
    with pytest.raises(px.onnx.OnnxError, match="gradients become too many nodes"):
        px.onnx.load(file(BODIES["products"]), limits=px.onnx.Limits(nodes=10))
