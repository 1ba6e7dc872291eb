"""Recurrent nodes with constant weights: layers where nn has one, ops with the reason elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import phlox as px
from phlox import Autodiff, Cpu
from phlox_onnx.source._verify import imported
from phlox_onnx.table import microsoft_recurrent
from phlox_tensor import Meta
from tests.onnx.test_source import body, f, file

SIZES = {"GRU": 3, "LSTM": 4, "RNN": 1}
X, H, C = f(5, 2, 4), f(1, 2, 6), f(1, 2, 6) * 2
LENGTHS = np.array([3, 5], np.int32)
# Attributes, directions, and which of lengths, hidden, cell and biases are there.
WAYS: dict[str, tuple[str, int, str]] = {
    "forward": ("", 1, "b"),
    "without biases": ("", 1, ""),
    "lengths": ("", 1, "bl"),
    "states": ("", 1, "bhc"),
    "half a state": ("", 1, "bh"),
    "backwards": ('direction = "reverse"', 1, "bh"),
    "both": ('direction = "bidirectional"', 2, "blhc"),
    "batch first": ("layout = 1", 1, "bhc"),
    "both, batch first": ('direction = "bidirectional", layout = 1', 2, "lhc"),
}


def made(op: str, way: str, more: str = "") -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A graph of one node, its weights, and what it is given."""
    words, count, has = WAYS[way]
    reset = "linear_before_reset = 1" if op == "GRU" and "linear" not in more else ""
    gates = SIZES[op]
    weights = {"w": f(count, 6 * gates, 4), "r": f(count, 6 * gates, 6)}
    weights |= {"b": f(count, 12 * gates)} if "b" in has else {}
    feeds: dict[str, Any] = {"x": X} | ({"l": LENGTHS} if "l" in has else {})
    feeds |= {"h": np.repeat(H, count, 0)} if "h" in has else {}
    feeds |= {"c": np.repeat(C, count, 0)} if "c" in has and op == "LSTM" else {}
    if "layout" in words:
        feeds = {k: v if v.ndim < 3 else np.swapaxes(v, 0, 1) for k, v in feeds.items()}
    names = ["x", "w", "r", "b" if "b" in has else "", *(n if n in feeds else "" for n in "lhc")]
    names = names if op == "LSTM" else names[:6]
    call = ", ".join(name or '""' for name in names)
    outputs = "y, e" if op != "LSTM" else "y, e, k"
    attributes = ", ".join(v for v in ("hidden_size = 6", words, reset, more) if v)
    node = f"{op}<{attributes}>({call})"
    given = ", ".join(
        f"{'int32' if k == 'l' else 'float'}{list(v.shape)} {k}" for k, v in feeds.items()
    )
    gives = ", ".join(
        f"float[a, b, {'d, g' if n == 'y' else 'g'}] {n}" for n in outputs.split(", ")
    )
    return f"({given}) => ({gives}) {{ {outputs} = {node} }}", weights, feeds


def outputs(model: Any, *given: Any) -> list[Any]:
    found = model(*(px.asarray(v) for v in given))
    return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]


def as_inputs(text: str, weights: dict[str, Any], feeds: dict[str, Any]) -> list[Any]:
    """What the file gives where its weights come from outside: by the row of the op."""
    names = "".join(f", float{list(v.shape)} {k}" for k, v in weights.items())
    open_ = file(text.replace(") =>", f"{names}) =>", 1), {})
    return outputs(px.onnx.load(open_, device=Cpu()), *feeds.values(), *weights.values())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("op", SIZES)
def test_nodes_of_constant_weights_are_layers(op: str, way: str, tmp_path: Path) -> None:
    text, weights, feeds = made(op, way)
    wanted, data = as_inputs(text, weights, feeds), file(text, weights)
    package = px.onnx.write(data, tmp_path, verify=feeds)
    assert package.report["layers"] == {op.capitalize(): 1}
    assert "_ops" not in body(package)
    loaded, source = px.onnx.load(data, device=Cpu()), imported(tmp_path).load(Cpu())
    assert set(loaded.params()) == set(package.params)
    assert ("bias_input" in str(package.params)) == ("b" in WAYS[way][2])
    for model in (loaded, source):
        for found, value in zip(outputs(model, *feeds.values()), wanted, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


ODD = {
    "activations": ("LSTM", 'activations = ["Sigmoid", "Tanh", "Relu"]', "sigmoid, tanh, relu"),
    "clip": ("GRU", "clip = 0.5", "clips"),
    "forgetting": ("LSTM", "input_forget = 1", "forgets what it takes in"),
    "linear": ("GRU", "linear_before_reset = 0", "resets the state before"),
    "slopes": ("RNN", 'activations = ["LeakyRelu"]', "leakyrelu"),
}


@pytest.mark.parametrize("name", ODD)
def test_the_report_says_why_a_node_is_no_layer(name: str, tmp_path: Path) -> None:
    op, more, why = ODD[name]
    text, weights, feeds = made(op, "forward", more)
    package = px.onnx.write(file(text, weights), tmp_path, verify=feeds)
    assert set(package.report["layers"]) == {"Param"}
    report = (tmp_path / "report.md").read_text()
    assert "- no layer, since it " in report
    assert why in report
    wanted = as_inputs(text, weights, feeds)
    for found, value in zip(
        outputs(imported(tmp_path).load(), *feeds.values()), wanted, strict=True
    ):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_an_activation_that_rnn_has_is_its_setting(tmp_path: Path) -> None:
    text, weights, feeds = made("RNN", "forward", 'activations = ["Relu"]')
    package = px.onnx.write(file(text, weights), tmp_path, verify=feeds)
    assert 'nn.Rnn(4, 6, activation="relu", device=device)' in body(package)


CELL = """(bool big, float[n, 4] x, float[n, 6] h, float[n, 6] c) => (float[n, 6] y) {
    last = Constant<value_ints = [0]>() x3 = Unsqueeze(x, last) h3 = Unsqueeze(h, last)
    c3 = Unsqueeze(c, last)
    y = If (big) <then_branch = one () => (float[n, 6] y1) { PARTS1
            s1, y1, k1 = LSTM<hidden_size = 6>(x3, w1, r1, b1, "", h3, c3) },
        else_branch = two () => (float[n, 6] y2) { PARTS2
            s2, y2, k2 = LSTM<hidden_size = 6>(x3, w2, r2, b2, "", h3, c3) }> }"""


def gates(k: int) -> str:
    """The weights of a cell of PyTorch, put in another order when the file runs."""
    ends = " ".join(f"e{n}_{k} = Constant<value_ints = [{n}]>()" for n in (0, 6, 12, 18, 24))
    lines = [ends]
    for name in ("wi", "wh", "bi", "bh"):
        for gate, start in zip("ifgo", (0, 6, 12, 18), strict=True):
            lines.append(f"{name}_{gate}{k} = Slice({name}, e{start}_{k}, e{start + 6}_{k})")
        parts = ", ".join(f"{name}_{gate}{k}" for gate in "iofg")
        lines.append(f"{name}_{k} = Concat<axis = 0>({parts})")
    lines.append(f"b_{k} = Concat<axis = 0>(bi_{k}, bh_{k})")
    pairs = (("w", "wi"), ("r", "wh"), ("b", "b"))
    lines += [f"{one}{k} = Unsqueeze({two}_{k}, e0_{k})" for one, two in pairs]
    return " ".join(lines)


def cell(more: str = "") -> bytes:
    """One cell in two branches."""
    text = CELL.replace("PARTS1", gates(1)).replace("PARTS2", gates(2) + more)
    constants = {"wi": f(24, 4), "wh": f(24, 6), "bi": f(24), "bh": f(24) * 2}
    words = {"wi": "weight_ih", "wh": "weight_hh", "bi": "bias_ih", "bh": "bias_hh"}
    proto = onnx.load_from_string(file(text, constants))
    for node in proto.graph.node[-1].attribute:
        for inner in node.g.node:
            inner.input[:] = [f"rnn.cell.{words[n]}" if n in words else n for n in inner.input]
    for each in proto.graph.initializer:
        each.name = f"rnn.cell.{words[each.name]}"
    return bytes(proto.SerializeToString())


def test_weights_that_are_only_moved_are_those_of_one_layer(tmp_path: Path) -> None:
    feeds = {"big": np.array(True), "x": f(2, 4), "h": f(2, 6), "c": f(2, 6) * 2}
    package = px.onnx.write(cell(), tmp_path, verify=feeds)
    assert package.report["layers"] == {"Lstm": 1}
    assert {path.rpartition(".")[0] for path in package.params} == {"rnn.cell.layers.0"}
    loaded, source = px.onnx.load(cell(), device=Cpu()), imported(tmp_path).load(Cpu())
    assert set(loaded.params()) == set(package.params)
    params = loaded.params()
    np.testing.assert_array_equal(
        params["rnn.cell.layers.0.weight_input"].value.numpy(), f(24, 4).T
    )
    np.testing.assert_array_equal(params["rnn.cell.layers.0.bias_hidden"].value.numpy(), f(24) * 2)
    half = loaded.map(lambda path, param: param.with_value(param.value * 0.5))
    half.save_file(tmp_path / "half")
    source = source.load_file(tmp_path / "half")
    for big in (True, False):
        given = [np.array(big), *list(feeds.values())[1:]]
        (found,), (wanted,) = outputs(source, *given), outputs(half, *given)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_weight_that_something_else_reads_stays_as_it_is(tmp_path: Path) -> None:
    text, weights, feeds = made("GRU", "forward")
    text = text.replace("{ y, e =", "{ z = Neg(r) y, e =").replace(" }", " }")
    text = text.replace(") => (", ") => (float[a, b, g] z, ")
    package = px.onnx.write(file(text, weights), tmp_path, verify=feeds)
    assert list(package.report["kept"]) == ["has weights that something else reads, too"]
    loaded = px.onnx.load(file(text, weights), device=Cpu())
    assert set(loaded.params()) == {"w", "r", "b"}
    wanted = as_inputs(text, weights, feeds)
    for found, value in zip(outputs(loaded, *feeds.values()), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5, atol=1e-6)


def test_layers_train() -> None:
    text, weights, feeds = made("GRU", "both")
    model = px.onnx.load(file(text, weights), device=Autodiff(Cpu()))
    y, _ = model(*(px.asarray(v, device=Autodiff(Cpu())) for v in feeds.values()))
    gradients = y.square().sum().backward()
    for path, param in model.params(trainable=True).items():
        gradient = param.value.grad(gradients)
        assert gradient is not None, path
        assert np.abs(gradient.numpy()).max() > 0, path


def test_gradients_pass_what_is_rounded_at_each_step() -> None:
    golden = Path(__file__).parents[2] / "packages" / "onnx" / "golden" / "microsoft.npz"
    train = Autodiff(Cpu())
    with np.load(golden) as known:
        case = next(k.split("/")[0] for k in known if "DynamicQuantizeLSTM" in k)
        model = px.onnx.load(known[f"{case}/model"].tobytes(), device=train)
        given = {n: px.asarray(known[f"{case}/in/{n}"], device=train) for n in model.inputs}
    given["x0"] = given["x0"].require_grad()
    grad = given["x0"].grad(model(**given)[0].sum().backward())
    assert grad is not None
    assert (grad.numpy() != 0).mean() > 0.9


def test_steps_of_any_number_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that nobody gave are tried up to thousands; without data one step tells all."""
    value = helper.make_tensor_value_info
    constants: dict[str, Any] = {
        "W": np.ones((1, 3, 8), np.int8), "R": np.ones((1, 2, 8), np.int8),
        "w": np.full(1, 0.1, np.float32), "z": np.zeros(1, np.int8),
    }  # fmt: skip
    names = ["x", "W", "R", "", "", "", "", "", "w", "z", "w", "z"]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=2
    )
    tensors = [onnx.numpy_helper.from_array(v, k) for k, v in constants.items()]
    graph = helper.make_graph(
        [node], "g", [value("x", 1, ["t", "b", 3])], [value("y", 1, None)], tensors
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    steps = 0
    real = microsoft_recurrent._row

    def counted(x: Any) -> Any:
        nonlocal steps
        steps += 1
        return real(x)

    monkeypatch.setattr(microsoft_recurrent, "_row", counted)
    file = px.onnx.load(data, device=Meta())
    assert file(px.zeros((5120, 2, 3), device=Meta())).shape == (5120, 1, 2, 2)
    assert steps == 1
