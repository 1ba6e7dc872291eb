"""Loaded files train, quantized ones too, and compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import phlox as px
from phlox import Autodiff, Cpu, optim

CONV = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 1, 8, 8] x) => (float[n, 3] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, w)
    b = BatchNormalization(a, scale, shift, mean, var)
    c = Relu(b)
    d = GlobalAveragePool(c)
    e = Flatten(d)
    y = Gemm(e, head, bias)
}"""
QUANTIZED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 8] x) => (float[n, 3] y) {
    q = QuantizeLinear(x, s, z)
    d = DequantizeLinear(q, s, z)
    w = DequantizeLinear(wq, s)
    h = MatMul(d, w)
    hq = QuantizeLinear(h, s, z)
    r = DequantizeLinear(hq, s, z)
    y = MatMul(r, head)
}"""
RECURRENT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[5, n, 4] x) => (float[2, n, 6] h) {
    y, h, c = LSTM<hidden_size = 6, direction = "bidirectional">(x, w, r, b)
}"""


def f(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / 3


def conv() -> tuple[str, dict[str, Any], Any]:
    constants = {"w": f(4, 1, 3, 3), "scale": f(4) + 1, "shift": f(4), "mean": f(4)}
    constants |= {"var": np.abs(f(4)) + 1, "head": f(4, 3), "bias": f(3)}
    return CONV, constants, f(6, 1, 8, 8)


def quantized() -> tuple[str, dict[str, Any], Any]:
    whole = np.random.default_rng(0).integers(-20, 20, (8, 4)).astype(np.int8)
    constants = {"s": np.float32(0.02), "z": np.int8(0), "wq": whole, "head": f(4, 3)}
    return QUANTIZED, constants, f(16, 8)


def recurrent() -> tuple[str, dict[str, Any], Any]:
    return RECURRENT, {"w": f(2, 24, 4), "r": f(2, 24, 6), "b": f(2, 48)}, f(5, 3, 4)


def file(text: str, constants: dict[str, Any]) -> bytes:
    proto = parser.parse_model(text)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return bytes(proto.SerializeToString())


NETS = [conv, quantized, recurrent]


@pytest.mark.parametrize("make", NETS, ids=lambda m: m.__name__)
def test_every_weight_has_a_gradient_and_the_loss_falls(make: Callable[[], Any]) -> None:
    text, constants, values = make()
    train = Autodiff(Cpu())
    model = px.onnx.load(file(text, constants), device=train)
    x = px.asarray(values, device=train)
    target = model(x).detach() * 0.5
    rule = optim.AdamConfig().init()
    losses = []
    for step in range(20):
        loss = (model(x) - target).square().mean()
        gradients = loss.backward()
        if not step:
            for path, param in model.params(trainable=True).items():
                gradient = param.value.grad(gradients)
                assert gradient is not None, path
                assert np.isfinite(gradient.numpy()).all(), path
                assert np.abs(gradient.numpy()).max() > 0, path
        model = rule.step(0.01, model, gradients)
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("make", NETS, ids=lambda m: m.__name__)
def test_a_compiled_model_gives_what_the_model_gives(make: Callable[[], Any]) -> None:
    text, constants, values = make()
    model = px.onnx.load(file(text, constants), device=Cpu())
    run = px.compile(lambda net, x: net(x))
    for scale in (1.0, 0.5, 2.0, 3.0):
        x = px.asarray(values * np.float32(scale), device=Cpu())
        np.testing.assert_array_equal(run(model, x).numpy(), model(x).numpy())


def test_scales_of_rounding_are_learned() -> None:
    text, constants, values = quantized()
    constants |= {"s": np.float32(0.2)}  # ten times what would be good
    train = Autodiff(Cpu())
    data = file(text, constants)
    model = px.onnx.load(data, device=train, quantized="learned")
    x = px.asarray(values, device=train)
    target = px.onnx.load(data, device=train, quantized="float")(x).detach()
    before = float((model(x) - target).square().mean())
    rule = optim.AdamConfig().init()
    for _ in range(20):
        gradients = (model(x) - target).square().mean().backward()
        model = rule.step(0.01, model, gradients)
    assert float(model.params()["s"].value) < 0.19
    assert float((model(x) - target).square().mean()) < 0.7 * before
