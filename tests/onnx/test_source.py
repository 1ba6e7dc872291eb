"""Files as source: it reads well, checks clean, and gives what the file gives."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper, parser

import phlox as px
from phlox import Autodiff, Cpu, optim
from phlox_onnx.source._verify import imported

HEAD = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]> g '


def f(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32) / 3


def file(text: str, constants: dict[str, Any], rename: dict[str, str] | None = None) -> bytes:
    """A file of ONNX's own notation; names that are no words of it come with ``rename``."""
    proto = parser.parse_model(HEAD + text)
    for name, value in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    names = rename or {}
    for node in proto.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
    for each in proto.graph.initializer:
        each.name = names.get(each.name, each.name)
    return bytes(proto.SerializeToString())


def body(made: Any) -> str:
    return str(made.model)


CONV = """(float[n, 3, h, w] x) => (float[n, 5] y) {
    a = Conv<pads = [1, 1, 1, 1]>(x, w0)
    b = BatchNormalization(a, scale, shift, mean, var)
    c = Relu(b)
    d = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(c, w1, b1)
    e = GlobalAveragePool(d)
    k = Flatten(e)
    y = Gemm<transB = 1>(k, head, bias)
}"""


def conv() -> bytes:
    constants = {"w0": f(4, 3, 3, 3), "scale": f(4) + 1, "shift": f(4), "mean": f(4)}
    constants |= {"var": np.abs(f(4)) + 1, "w1": f(6, 4, 3, 3), "b1": f(6)}
    constants |= {"head": f(5, 6), "bias": f(5)}
    rename = {"w0": "stem.conv.weight", "w1": "down.conv.weight", "head": "head.weight"}
    return file(CONV, constants, rename)


GELU = """s = Constant<value_float = 1.41421354>() one = Constant<value_float = 1.0>()
    half = Constant<value_float = 0.5>()
    ga = Div({x}, s) gb = Erf(ga) gc = Add(gb, one) gd = Mul({x}, gc) {y} = Mul(gd, half)"""
NORM = """last = Constant<value_ints = [-1]>() two = Constant<value_float = 2.0>()
    tiny = Constant<value_float = 1e-6>()
    m = ReduceMean(x, last) o = Sub(x, m) q = Pow(o, two) v = ReduceMean(q, last)
    ve = Add(v, tiny) r = Sqrt(ve) nn = Div(o, r) ns = Mul(nn, gamma) t = Add(ns, beta)"""
ATTENTION = """
    sizes = Constant<value_ints = [0, 0, 2, 4]>() whole = Constant<value_ints = [0, 0, 8]>()
    half4 = Constant<value_float = 0.5>()
    q1 = MatMul(t, wq) q2 = Add(q1, bq) q3 = Reshape(q2, sizes)
    q4 = Transpose<perm = [0, 2, 1, 3]>(q3)
    k1 = MatMul(t, wk) k3 = Reshape(k1, sizes) k4 = Transpose<perm = [0, 2, 3, 1]>(k3)
    v1 = MatMul(t, wv) v3 = Reshape(v1, sizes) v4 = Transpose<perm = [0, 2, 1, 3]>(v3)
    sc = MatMul(q4, k4) ss = Mul(sc, half4) p = Softmax<axis = -1>(ss) c1 = MatMul(p, v4)
    c2 = Transpose<perm = [0, 2, 1, 3]>(c1) c3 = Reshape(c2, whole) h = Add(c3, x)"""


def transformer() -> bytes:
    text = "(float[n, length, 8] x) => (float[n, length, 8] y) {" + NORM + ATTENTION
    constants = {"gamma": f(8) + 1, "beta": f(8), "bq": f(8)}
    constants |= {w: f(8, 8 + i)[:, :8] for i, w in enumerate(("wq", "wk", "wv"))}
    return file(text + GELU.format(x="h", y="y") + "}", constants)


REPEATED = "(float[n, 8] x0) => (float[n, 8] y) {"


def repeated() -> bytes:
    """Six equal blocks."""
    text = REPEATED
    constants: dict[str, Any] = {}
    for i in range(6):
        text += f"""a{i} = MatMul(x{i}, w{i}) b{i} = Add(a{i}, c{i}) d{i} = Sigmoid(b{i})
            e{i} = Mul(b{i}, d{i}) g{i} = MatMul(e{i}, v{i}) k{i} = Tanh(g{i})
            x{i + 1} = Add(k{i}, x{i})"""
        constants |= {
            f"w{i}": f(8, 9 + i)[:, :8],
            f"c{i}": f(8) * (i + 1),
            f"v{i}": f(8, 8) / (i + 1),
        }
    return file(text + " y = Identity(x6) }", constants)


BRANCH = """(bool c, float[n, 4] x) => (float[n, 4] y) {
    k = MatMul(x, w)
    y = If (c) <then_branch = t () => (float[n, 4] a) { a = Neg(k) },
                else_branch = e () => (float[n, 4] b) { r = Relu(k) b = Add(r, x) }> }"""
LOOP = """(float[n, 4] x) => (float[n, 4] y, float[k, n, 4] all) {
    three = Constant<value = int64 {3}>() go = Constant<value = bool {1}>()
    y, all = Loop(three, go, x) <body = b (int64 i, bool c, float[n, 4] h)
        => (bool d, float[n, 4] g, float[n, 4] s)
        { d = Identity(c) m = MatMul(h, w) g = Tanh(m) s = Identity(g) }> }"""


def branch() -> bytes:
    return file(BRANCH, {"w": f(4, 4)})


def loop() -> bytes:
    return file(LOOP, {"w": f(4, 4)})


LSTM = """(float[t, n, 4] x) => (float[t, d, n, 6] y, float[d, n, 6] h) {
    y, h, c = LSTM<hidden_size = 6, direction = "bidirectional">(x, w, r, b) }"""
GRU = """(float[t, n, 4] x) => (float[t, d, n, 6] y, float[d, n, 6] h) {
    y, h = GRU<hidden_size = 6, linear_before_reset = 1>(x, w, r, b) }"""


def lstm() -> bytes:
    return file(LSTM, {"w": f(2, 24, 4), "r": f(2, 24, 6), "b": f(2, 48)})


def gru() -> bytes:
    return file(GRU, {"w": f(1, 18, 4), "r": f(1, 18, 6), "b": f(1, 36)})


SIZES: dict[Callable[[], bytes], list[dict[str, Any]]] = {
    conv: [{"x": f(2, 3, 8, 8)}, {"x": f(1, 3, 12, 10)}, {"x": f(3, 3, 6, 6)}],
    transformer: [{"x": f(2, 5, 8)}, {"x": f(1, 3, 8)}, {"x": f(3, 1, 8)}],
    repeated: [{"x0": f(2, 8)}, {"x0": f(1, 8)}],
    branch: [{"c": np.array(v), "x": f(3, 4)} for v in (True, False)],
    loop: [{"x": f(2, 4)}, {"x": f(1, 4)}],
    lstm: [{"x": f(5, 2, 4)}, {"x": f(1, 1, 4)}],
    gru: [{"x": f(5, 2, 4)}, {"x": f(1, 1, 4)}],
}
FILES = pytest.mark.parametrize("make", SIZES, ids=lambda m: m.__name__)


@FILES
def test_source_gives_what_the_file_gives_at_all_sizes(
    make: Callable[[], bytes], tmp_path: Path
) -> None:
    px.onnx.write(make(), tmp_path)
    for feeds in SIZES[make]:
        found = px.onnx.verify(make(), tmp_path, feeds, device=Cpu())
        assert max(found.values()) < 2e-6, found


@FILES
def test_the_same_file_gives_the_same_bytes(make: Callable[[], bytes], tmp_path: Path) -> None:
    for name in "ab":
        px.onnx.write(make(), tmp_path / name)
    names = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert {"__init__.py", "model.py", "report.md", "weights.mpk"} <= set(names)
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def written_checked(tmp_path: Path, *command: str) -> None:
    for make in SIZES:
        px.onnx.write(make(), tmp_path / f"model_{make.__name__}")
    run = [sys.executable, "-m", *command]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_source_passes_ruff(tmp_path: Path) -> None:
    select = "--select=E,F,I,B,UP"
    written_checked(tmp_path, "ruff", "check", "--isolated", "--line-length=100", select, ".")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_source_passes_mypy(tmp_path: Path) -> None:
    packages = [f"-pmodel_{make.__name__}" for make in SIZES]
    written_checked(tmp_path, "mypy", "--strict", "--cache-dir=cache", *packages)


def test_weights_become_layers_under_the_names_of_the_file(tmp_path: Path) -> None:
    made = px.onnx.write(conv(), tmp_path)
    text = body(made)
    for line in ("conv: nn.Conv2d", "stem: Stem", "down: Stem", "head: nn.Linear"):
        assert f"    {line}\n" in text
    assert "self.stem.conv(x)" in text
    weights = {path for path, (_, role) in made.params.items() if role == "weight"}
    assert weights == {
        *("stem.conv.weight", "down.conv.weight", "down.conv.bias", "head.weight", "head.bias"),
        *("norm.weight", "norm.bias"),
    }
    assert "_ops" not in text
    assert made.report["layers"] == {"BatchNorm": 1, "Conv2d": 2, "Linear": 1}
    report = (tmp_path / "report.md").read_text()
    assert "layers and parameters: BatchNorm 1, Conv2d 2, Linear 1" in report
    model = imported(tmp_path).load(Cpu())
    roles = {p.role for p in model.params().values()}
    assert roles == {"weight", "state"}
    assert set(model.params()) == set(made.params)


def scoped(prefix: str, last: str) -> bytes:
    """Three blocks whose weights have paths."""
    text, before = "", "x0"
    constants: dict[str, Any] = {}
    rename: dict[str, str] = {}
    for i in range(3):
        for j, word in enumerate(("query", "key", "value")):
            text += f"m{i}{j} = MatMul({before}, w{i}{j}) l{i}{j} = Add(m{i}{j}, b{i}{j})\n"
            constants |= {f"w{i}{j}": f(8, 8) * (i + j + 1), f"b{i}{j}": f(8) * (i + j + 1)}
            path = f"{prefix}.{i}.attention.self.{word}"
            rename |= {f"w{i}{j}": f"{path}.weight", f"b{i}{j}": f"{path}.bias"}
        text += f"p{i} = Mul(l{i}0, l{i}1) s{i} = Sigmoid(p{i}) x{i + 1} = Mul(s{i}, l{i}2)\n"
        before = f"x{i + 1}"
    constants["w"], rename["w"] = f(8, 8), f"{last}.weight"
    return file(f"{REPEATED} {text} y = MatMul(x3, w) }}", constants, rename)


def test_modules_of_the_file_are_modules_of_the_source(tmp_path: Path) -> None:
    made = px.onnx.write(scoped("encoder.layer", "pooler.dense"), tmp_path)
    assert "\n    encoder: Encoder\n    pooler: Pooler\n" in made.model
    assert "\n    layer: tuple[Layer, ...]\n" in made.model
    assert "class Layer(nn.Module)" in made.model
    assert "    query: nn.Linear\n    key: nn.Linear\n    value: nn.Linear\n" in made.model
    assert "self.encoder.layer[2](self.encoder.layer[1](self.encoder.layer[0](x)))" in made.model
    feeds = {"x0": f(2, 8)}
    assert max(px.onnx.verify(scoped("encoder.layer", "a"), tmp_path, feeds).values()) < 1e-6


def test_paths_of_the_source_are_those_of_the_file(tmp_path: Path) -> None:
    data = scoped("encoder.layer", "pooler.dense")
    made = px.onnx.write(data, tmp_path)
    words = [f"{i}.attention.self.{word}" for i in range(3) for word in ("query", "key", "value")]
    paths = [f"encoder.layer.{word}.{name}" for word in words for name in ("weight", "bias")]
    assert list(made.params) == [*paths, "pooler.dense.weight"]
    loaded = px.onnx.load(data, device=Cpu())
    assert set(loaded.params()) == set(made.params)
    changed = loaded.map(lambda path, param: param.with_value(param.value * 0.5))
    changed.save_file(tmp_path / "half")
    model = imported(tmp_path).load(Cpu()).load_file(tmp_path / "half")
    x = px.asarray(f(2, 8))
    np.testing.assert_allclose(model(x).numpy(), changed(x).numpy(), rtol=1e-6, atol=1e-7)
    model.save_file(tmp_path / "other")
    again = loaded.load_file(tmp_path / "other")
    np.testing.assert_allclose(again(x).numpy(), changed(x).numpy(), rtol=1e-6, atol=1e-7)


TAKEN = ("forward", "self", "px", "nn", "np", "device", "Model", "Tensor", "init", "class", "print")


@pytest.mark.parametrize("word", [*TAKEN, *("freeze", "params", "load", "ModelConfig", "Path")])
def test_names_that_are_taken_get_others(word: str, tmp_path: Path) -> None:
    data = scoped(f"a.{word}", f"b.{word}")
    px.onnx.write(data, tmp_path)
    assert max(px.onnx.verify(data, tmp_path, {"x0": f(2, 8)}).values()) < 1e-6


def test_what_may_be_no_tensor_is_not_called_one() -> None:
    text = """(float[n] x) => (seq(float[n]) y, float[n] z) {
        y = SequenceConstruct(x, x) z = Relu(x) }"""
    assert "-> tuple[Any, Tensor[Any]]:" in px.onnx.source(file(text, {}))


@pytest.mark.long
@pytest.mark.parametrize("every", [1, 2])
def test_thousands_of_nodes_are_written_in_seconds(every: int) -> None:
    rng = np.random.default_rng(0)
    lines, constants, before = [], {}, "x"
    for i in range(5000):
        if i % every == 0:
            lines.append(f"h{i} = MatMul({before}, w{i})")
            constants[f"w{i}"] = f(2, 2)
        else:
            lines.append(f"h{i} = {rng.choice(['Relu', 'Tanh', 'Sigmoid', 'Neg'])}({before})")
        before = f"h{i}"
    data = file(f"(float[n, 2] x) => (float[n, 2] {before}) {{ {' '.join(lines)} }}", constants)
    start = time.process_time()
    assert px.onnx.source(data)
    assert time.process_time() - start < 40


def test_formulas_become_what_they_are() -> None:
    made = px.onnx.write(transformer(), tempfile.mkdtemp())
    text = body(made)
    assert "nn.LayerNorm(8, epsilon=1e-06" in text
    assert "px.attention(" in text
    assert "px.gelu(" in text
    assert made.report["recognised"] == {
        "gelu": 1, "layer norm": 1, "attention": 1, "linear": 1, "linear without bias": 2
    }  # fmt: skip


def test_repeated_blocks_are_one_class() -> None:
    made = px.onnx.write(repeated(), tempfile.mkdtemp())
    text = body(made)
    assert text.count("class Block1(nn.Module)") == 1
    assert "block1s: tuple[Block1, ...]" in text
    assert '"""One of 6 equal parts."""' in text
    assert text.count("nn.Linear(8, 8, device=device)") == 1
    assert "px.silu(" in text or ".silu()" in text


def test_what_is_bound_becomes_a_number() -> None:
    text = """(float[n, 2, 3] x) => (float[n, 6] y) {
        s = Shape(x) zero = Constant<value_ints = [0]>() n1 = Gather(s, zero)
        six = Constant<value_ints = [6]>() to = Concat<axis = 0>(n1, six) y = Reshape(x, to) }"""
    assert "x.reshape((x.shape[0], 6))" in px.onnx.source(file(text, {}))
    assert "x.reshape((4, 6))" in px.onnx.source(file(text, {}), bind={"n": 4})


@pytest.mark.parametrize("make", [conv, transformer, repeated, lstm], ids=lambda m: m.__name__)
def test_every_weight_of_the_source_has_a_gradient_and_the_loss_falls(
    make: Callable[[], bytes], tmp_path: Path
) -> None:
    px.onnx.write(make(), tmp_path)
    train = Autodiff(Cpu())
    model = imported(tmp_path).load(train).with_training(False)
    x = px.asarray(next(iter(SIZES[make][0].values())), device=train)

    def output(net: Any) -> Any:
        found = net(x)
        return found[0] if isinstance(found, tuple) else found

    target = output(model).detach() * 0.5
    rule = optim.AdamConfig().init()
    losses: list[float] = []
    for _ in range(20):
        loss = (output(model) - target).square().mean()
        gradients = loss.backward()
        if not losses:
            for path, param in model.params(trainable=True).items():
                gradient = param.value.grad(gradients)
                assert gradient is not None, path
                assert np.isfinite(gradient.numpy()).all(), path
        model = rule.step(0.01, model, gradients)
        losses.append(float(loss))
    assert losses[-1] < 0.7 * losses[0]


ALLOWED = {
    *("AnnAssign", "Assign", "Attribute", "BinOp", "BoolOp", "Call", "ClassDef", "Compare"),
    *(
        "Constant",
        "Dict",
        "Expr",
        "For",
        "FunctionDef",
        "GeneratorExp",
        "If",
        "IfExp",
        "Import",
        "ImportFrom",
    ),
    *("List", "Name", "Return", "Slice", "Subscript", "Tuple", "UnaryOp"),
}


def test_names_of_a_file_never_leave_a_word_or_a_string() -> None:
    bad = [
        'x"); import os; os.system("',
        "class",
        "\n\nboom()\n",
        "é.weight",
        "__import__('os')",
        "a" * 90,
    ]
    nodes = []
    before = bad[0]
    for i, name in enumerate(bad[1:]):
        node = helper.make_node("MatMul", [before, f"{name}.weight"], [name], name=f"{name}/{i}")
        nodes.append(node)
        before = name
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g\n", [value(bad[0], 1, [2, 2])], [value(before, 1, [2, 2])],
        [numpy_helper.from_array(f(2, 2), f"{name}.weight") for name in bad[1:]],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    text = px.onnx.source(model.SerializeToString())
    assert text.isascii()
    assert "boom" not in {n.func.id for n in ast.walk(ast.parse(text))
                          if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}  # fmt: skip
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.stmt | ast.expr):
            assert type(each).__name__ in ALLOWED, ast.dump(each)
        if isinstance(each, ast.Import):
            assert {a.name for a in each.names} <= {"phlox", "numpy", "math"}


def test_a_node_that_cannot_run_is_left_to_the_call() -> None:
    text = "(float[2, 4, 2, 2] x) => (float[n] y) { y = DepthToSpace<blocksize = 0>(x) }"
    assert "_ops.depth_to_space(x" in px.onnx.source(file(text, {}))


def test_a_result_that_no_node_gives_is_an_error() -> None:
    text = "(float[2] x) => (float[2] y, float[2] z) { y, z = Relu(x) }"
    with pytest.raises(px.onnx.OnnxError, match="too many results"):
        px.onnx.source(file(text, {}))


def test_a_large_constant_is_written_as_what_makes_it() -> None:
    text = """(float[1] x) => (float[n] y) {
        s = Constant<value_ints = [18029, 18029, 18029]>() y = ConstantOfShape(s) }"""
    assert "(18029, 18029, 18029)" in px.onnx.source(file(text, {}))


def test_a_size_that_is_one_for_all_short_signals_is_no_constant(tmp_path: Path) -> None:
    text = """(float[1, 1, n] x) => (float y, int64 r) {
        y = Conv<strides = [160]>(x, k) s = Shape<start = 2, end = 3>(y) t = Squeeze(s)
        zero = Constant<value_int = 0>() one = Constant<value_int = 1>()
        r = Range(zero, t, one) }"""
    data = file(text, {"k": np.ones((2, 1, 100), np.float32)})
    px.onnx.write(data, tmp_path, verify=False)
    x = np.ones((1, 1, 1000), np.float32)
    model = imported(tmp_path).load(Cpu())
    assert model(px.asarray(x, device=Cpu()))[1].tolist() == list(range(6))


def test_looking_for_constants_runs_no_loop() -> None:
    text = """(float[2] x) => (float y) {
        m = Constant<value_int = 4000000000>() y = Loop(m, , x)
        <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
            d = Identity(c) w = Relu(v) }> z = Relu(y) }"""
    assert "_ops.loop" in px.onnx.source(file(text, {}))


def test_the_float_of_a_device_is_named_and_no_copy_is_needed() -> None:
    text = px.onnx.source(file("(int32[2, n] x) => (int32[2] y) { y = ReduceLogSum(x) }", {}))
    assert ".default_float" in text
    assert "_ops" not in text
