"""What a file becomes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import phlox_tensor as px
from phlox_onnx import Limits, OnnxError, load, register
from phlox_onnx._graph import Graph, Node, Value
from phlox_onnx.run import _table
from phlox_onnx.run._model import prepared
from phlox_onnx.source.graph._simplify import Forms, simplified
from phlox_tensor import tree


def model(text: str, opset: int = 18, **constants: Any) -> bytes:
    """A file from ONNX's own notation, with further constants."""
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1, "mine" : 1]>'
    proto = parser.parse_model(f"{head} g {text}")
    for name, value in constants.items():
        tensor = numpy_helper.from_array(np.asarray(value), name.replace("__", "."))
        proto.graph.initializer.append(tensor)
    return bytes(proto.SerializeToString())


LINEAR = "(float[n, 3] x) => (float[n, 2] y) { h = MatMul(x, a)  y = Add(h, b) }"


def linear() -> bytes:
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(3, 2)), rng.normal(size=2)
    file = onnx.load_model_from_string(model(LINEAR))
    for node in file.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = {"a": "encoder.0.weight", "b": "encoder.0.bias"}.get(name, name)
    for name, value in (("encoder.0.weight", weight), ("encoder.0.bias", bias)):
        file.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    return bytes(file.SerializeToString())


def test_weights_stand_under_their_names_in_the_file() -> None:
    net = load(linear())
    assert set(net.params()) == {"encoder.0.weight", "encoder.0.bias"}
    assert all(p.trainable for p in net.params().values())
    x = px.ones((4, 3))
    params = {k: p.value.numpy() for k, p in net.params().items()}
    wanted = np.ones((4, 3)) @ params["encoder.0.weight"] + params["encoder.0.bias"]
    np.testing.assert_allclose(net(x).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(net(x=x).numpy(), wanted, rtol=1e-6)


def test_a_record_holds_the_weights_and_a_pickle_the_graph() -> None:
    net = load(linear())
    x = px.ones((2, 3))
    other = load(linear()).map(lambda _, p: p.with_value(p.value * 0.0))
    assert float(other(x).abs().sum()) == 0
    again = other.load_record(net.into_record())
    assert again(x).tolist() == net(x).tolist()
    assert pickle.loads(pickle.dumps(net))(x).tolist() == net(x).tolist()


def test_names_that_clash_or_are_no_words_are_told_apart() -> None:
    text = "(float[2] x) => (float[2] y) { a = Add(x, w)  b = Add(a, v)  y = Add(b, u) }"
    file = onnx.load_model_from_string(model(text))
    names = {"w": "forward", "v": "forward.weight", "u": "/1/onnx::Add_7"}
    for node in file.graph.node:
        node.input[1] = names[node.input[1]]
    for name in names.values():
        file.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), name))
    net = load(bytes(file.SerializeToString()))
    assert sorted(net.params()) == ["n_1.onnx_Add_7", "n_forward", "n_forward_weight_1"]
    assert net([1.0, 1.0]).tolist() == [4.0, 4.0]


def test_statistics_are_state_and_scales_are_trained() -> None:
    text = "(float[1, 2, 4] x) => (float[1, 2, 4] y) { y = BatchNormalization(x, s, b, m, v) }"
    values = np.linspace(1, 2, 20, dtype=np.float32)
    constants: dict[str, Any] = dict.fromkeys("sbmv", values)
    net = load(model(text.replace("1, 2, 4", "1, 20, 4"), **constants))
    assert {k: p.role for k, p in net.params().items()} == {
        "s": "weight", "b": "weight", "m": "state", "v": "state"
    }  # fmt: skip


def test_shape_arithmetic_stays_on_the_host() -> None:
    text = """(float[n, 2, 3] x) => (float[n, 6] y) {
        s = Shape(x)  zero = Constant<value = int64[1] {0}>()  n = Gather(s, zero)
        six = Constant<value = int64[1] {6}>()  t = Concat<axis = 0>(n, six)  y = Reshape(x, t) }"""
    net = load(model(text))
    device = px.Meta()  # a device that cannot be read
    found = net(px.ones((5, 2, 3), device=device))
    assert found.shape == (5, 6)


def test_the_padding_that_pytorch_writes_stays_on_the_host() -> None:
    text = """(float[n, 3] x) => (float[n, 6] y) {
        p = Constant<value = int64[4] {1, 2, 0, 0}>()  two = Constant<value = int64[2] {-1, 2}>()
        m = Constant<value = int64[1] {-1}>()  z = Constant<value = int64[1] {0}>()
        r = Reshape(p, two)
        least = Constant<value = int64[1] {-9223372036854775807}>()
        s = Slice(r, m, least, z, m)  t = Transpose<perm = [1, 0]>(s)  flat = Reshape(t, m)
        c = Cast<to = 7>(flat)  y = Pad(x, c) }"""
    found = load(model(text))(px.ones((2, 3), device=px.Meta()))
    assert found.shape == (2, 6)


def test_only_the_branch_that_is_taken_runs() -> None:
    text = """(bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                    else_branch = e () => (float[2] b) { b = mine.Boom(x) }> }"""
    calls = []

    def boom(x: Any) -> Any:
        calls.append(1)
        return x * 2.0

    register("mine", "Boom", boom)
    net = load(model(text))
    assert net(True, [1.0, 2.0]).tolist() == [-1.0, -2.0]
    assert not calls
    assert net(False, [1.0, 2.0]).tolist() == [2.0, 4.0]
    assert calls == [1]


def test_a_registered_op_takes_inputs_by_position_and_attributes_by_name() -> None:
    register("mine", "Scaled", lambda x, w=None, *, by=2.0: x * by if w is None else x * w)
    net = load(model("(float[1] x) => (float[1] y) { y = mine.Scaled<by = 3.0>(x) }"))
    assert net([2.0]).tolist() == [6.0]
    with pytest.raises(OnnxError, match="an attribute that has no use here: got of of Scaled"):
        load(model("(float[1] x) => (float[1] y) { y = mine.Scaled<of = 3.0>(x) }"))


def test_all_missing_ops_are_named_at_once() -> None:
    text = "(float[1] x) => (float[1] y) { a = Nix(x)  b = Nix(a)  y = mine.Nought(b) }"
    with pytest.raises(OnnxError, match=r"Nix \(2, first Nix 'a'\); mine.Nought \(1,"):
        load(model(text))


def test_functions_of_the_file_are_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "mine" : 1]>
    g (float[2] x) => (float[2] y) { a = mine.twice<by = 2.0>(x)  y = mine.twice(a) }
    <domain: "mine", opset_import: ["" : 18]>
    twice <by: float = 5.0> (v) => (w) {
        c = Constant<value_float: float = @by>()  d = Mul(v, c)  w = Identity(d) }"""
    net = load(bytes(parser.parse_model(text).SerializeToString()))
    assert net([1.0, 2.0]).tolist() == [10.0, 20.0]


def test_inputs_that_do_not_fit_are_told() -> None:
    net = load(linear())
    for args, named in (((), {}), ((1.0, 2.0), {}), ((), {"z": 1.0}), ((1.0,), {"x": 1.0})):
        with pytest.raises(px.ArgumentError, match="do not fit the model"):
            net(*args, **named)


def test_an_error_says_in_which_node_it_rose() -> None:
    net = load(linear())
    with pytest.raises(px.ShapeError) as caught:
        net(px.ones((1, 4)))
    assert any("MatMul 'h'" in note for note in caught.value.__notes__)


def old(op: str, opset: int, inputs: list[Any], **attributes: Any) -> Any:
    """What a node of an old version gives."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attributes)
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, np.shape(v))
        for n, v in zip(names, inputs, strict=True)
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", values, [result])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return load(made.SerializeToString())(*(np.asarray(v, np.float32) for v in inputs)).numpy()


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("op", "opset", "attributes", "wanted"),
    [
        ("Clip", 6, {"min": 3.0, "max": 5.0}, np.clip(X, 3, 5)),
        ("Pad", 2, {"pads": [0, 0, 1, 0, 0, 0], "value": 7.0},
         np.pad(X, ((0, 0), (0, 0), (1, 0)), constant_values=7)),
        ("ReduceSum", 1, {"axes": [1], "keepdims": 0}, X.sum(1)),
        ("Reshape", 1, {"shape": [0, -1]}, X.reshape(2, 12)),
        ("Slice", 1, {"axes": [2], "starts": [1], "ends": [3]}, X[:, :, 1:3]),
        ("Softmax", 11, {"axis": 1},
         (np.exp(X - 23).reshape(2, 12) / np.exp(X - 23).reshape(2, 12).sum(1)[:, None])
         .reshape(X.shape)),
        ("Squeeze", 1, {}, X),
        ("Unsqueeze", 1, {"axes": [0]}, X[None]),
        ("Relu", 1, {"consumed_inputs": [0]}, X),
        ("Dropout", 1, {"is_test": 1, "ratio": 0.5}, X),
    ],
)  # fmt: skip
def test_old_forms_mean_what_they_meant(
    op: str, opset: int, attributes: dict[str, Any], wanted: Any
) -> None:
    np.testing.assert_allclose(old(op, opset, [X], **attributes), wanted, rtol=1e-6)


def test_broadcasting_along_an_axis_is_that_of_old_files() -> None:
    found = old("Add", 6, [X, np.arange(3)], axis=1, broadcast=1)
    np.testing.assert_allclose(found, X + np.arange(3)[:, None])
    found = old("Upsample", 7, [X[None]], scales=[1.0, 1.0, 2.0, 1.0], mode="nearest")
    np.testing.assert_allclose(found, np.repeat(X[None], 2, axis=2))


def test_nodes_may_stand_in_any_order() -> None:
    file = onnx.load_model_from_string(linear())
    nodes = list(file.graph.node)[::-1]
    del file.graph.node[:]
    file.graph.node.extend(nodes)
    assert load(bytes(file.SerializeToString()))(px.ones((1, 3))).shape == (1, 2)


def test_an_output_without_a_name_is_refused() -> None:
    proto = onnx.load_from_string(model("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    proto.graph.output[0].name = ""
    with pytest.raises(OnnxError, match="has no name"):
        load(proto.SerializeToString())


def test_a_registered_op_trains_the_inputs_that_it_names() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18, "mine" : 1]> g (float[2] x) => (float[2] y) '
    proto = onnx.parser.parse_model(text + "{ y = mine.Shifted(x, w, k) }")
    for name in ("w", "k"):
        array = np.arange(2, dtype=np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    register("mine", "Shifted", lambda x, weight, kept: x + weight + kept, trained=["weight"])
    model = load(proto.SerializeToString())
    assert list(model.params(trainable=True)) == ["w"]
    assert model(np.ones(2, np.float32)).tolist() == [1.0, 3.0]
    with pytest.raises(px.ArgumentError, match="no such input"):
        register("mine", "Shifted", lambda x: x, trained=["weight"])
    with pytest.raises(px.ArgumentError, match="this is no function"):
        register("mine", "Shifted", 3)  # type: ignore[arg-type]


ADDED = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) { y = Add(x, x) }'


def test_a_model_in_memory_is_taken_as_it_comes() -> None:
    proto = onnx.parser.parse_model(ADDED)
    data = proto.SerializeToString()
    for each in (proto, data, bytearray(data), memoryview(data)):
        assert load(each)([1.0, 2.0]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("given", [None, 3, ["a"]])
def test_what_is_no_file_is_told(given: Any) -> None:
    with pytest.raises(px.ArgumentError, match="this is no file"):
        load(given)


def test_what_are_no_limits_is_told() -> None:
    with pytest.raises(px.ArgumentError, match="these are no limits"):
        load(onnx.parser.parse_model(ADDED), limits={"nodes": 3})  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["a", [[1.0, 2.0], [3.0]], object(), {"x": 1.0}])
def test_an_input_that_is_no_tensor_is_named(given: Any) -> None:
    with pytest.raises(px.ArgumentError, match=r"an input is no tensor: got .* for 'x'"):
        load(onnx.parser.parse_model(ADDED))(given)


def test_arrays_may_go_into_sequences() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x, float[2] z) => (float[6] y) '
    body = "{ s = SequenceConstruct(x, x) t = SequenceInsert(s, z) "
    body += "y = ConcatFromSequence<axis = 0>(t) }"
    one, two = np.ones(2, np.float32), np.zeros(2, np.float32)
    found = load(onnx.parser.parse_model(text + body))(one, two)
    assert found.tolist() == [1, 1, 1, 1, 0, 0]


def recurrent(op: str, gates: int, lengths: bool, words: str) -> tuple[bytes, list[Any]]:
    """A layer over six steps of three sequences, both directions, and its inputs."""
    rng = np.random.default_rng(0)
    x, h = rng.normal(size=(6, 3, 4)), rng.normal(size=(2, 3, 5))
    shapes = {"w": (2, gates * 5, 4), "r": (2, gates * 5, 5), "b": (2, 2 * gates * 5)}
    weights = {k: rng.normal(size=v).astype(np.float32) / 2 for k, v in shapes.items()}
    weights |= {"n": np.array([6, 2, 4], np.int32)} if lengths else {}
    inputs = "float[t, k, 4] x, float[d, k, 5] h"
    text = f"""({inputs}) => (float[t, d, k, 5] y, float[d, k, 5] last) {{
        y, last = {op}<{words}>(x, w, r, b, {"n" if lengths else ""}, h) }}"""
    return model(text, 22, **weights), [v.astype(np.float32) for v in (x, h)]


def _noted(function: Any, calls: list[Any]) -> Any:
    def run(*args: Any) -> Any:
        calls.append(args)
        return function(*args)

    return run


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize(
    ("op", "gates", "more"),
    [("GRU", 3, ", linear_before_reset = 1"), ("LSTM", 4, ""), ("RNN", 1, "")],
)
def test_usual_recurrent_layers_are_one_op_with_the_values_of_the_steps(
    op: str, gates: int, more: str, lengths: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = f'direction = "bidirectional", hidden_size = 5{more}'
    data, inputs = recurrent(op, gates, lengths, words)
    # A clip that no value meets keeps the steps.
    stepwise, _ = recurrent(op, gates, lengths, f"{words}, clip = 1e6")
    net = load(data)
    calls: list[str] = []
    monkeypatch.setattr(px.ops, op.lower(), _noted(getattr(px.ops, op.lower()), calls))
    found_all = net(*inputs)
    assert len(calls) == 2
    for found, expected in zip(found_all, load(stepwise)(*inputs), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("words", ['direction = "sideways"', "hidden_size = 3"])
@pytest.mark.parametrize(("op", "gates"), [("GRU", 3), ("LSTM", 4), ("RNN", 1)])
def test_recurrent_layers_that_contradict_their_weights_are_refused(
    op: str, gates: int, words: str
) -> None:
    more = "" if "direction" in words else ', direction = "bidirectional"'
    data, inputs = recurrent(op, gates, False, words + more)
    with pytest.raises(OnnxError, match=words.split(maxsplit=1)[0]):
        load(data)(*inputs)


def _own(op: str, outputs: str = "y") -> bytes:
    results = ", ".join(f"float[2] {name}" for name in outputs.split(", "))
    head = '<ir_version: 8, opset_import: ["" : 18, "mine" : 1]> g '
    text = f"{head}(float[2] x) => ({results}) {{ {outputs} = mine.{op}(x) }}"
    return bytes(onnx.parser.parse_model(text).SerializeToString())


def _failing(x: Any) -> Any:
    return {}[x.shape]


@pytest.mark.parametrize(
    ("function", "outputs", "said"),
    [
        (lambda x: None, "y", "gives no tensor: got NoneType of Own 'y'"),
        (lambda x: "text", "y", "gives no tensor: got str"),
        (lambda x: (x, x), "y, z, w", "fewer results than it has names for: got 2"),
        (_failing, "y", "a registered function fails: got KeyError"),
    ],
)
def test_what_a_registered_function_does_wrong_is_told(
    function: Any, outputs: str, said: str
) -> None:
    register("mine", "Own", function)
    with pytest.raises(OnnxError, match=said):
        load(_own("Own", outputs))([1.0, 2.0])


@pytest.mark.parametrize(
    ("domain", "op", "function"),
    [
        ("mine", "Words", lambda x, **words: x),
        ("mine", "Kind", dict),
        ("mine", 3, lambda x: x),
        (None, "Op", lambda x: x),
        ("", "", lambda x: x),
    ],
)
def test_what_cannot_be_registered_is_refused(domain: Any, op: Any, function: Any) -> None:
    with pytest.raises(px.ArgumentError):
        register(domain, op, function)


def test_a_misspelt_op_names_the_nearest() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) '
    with pytest.raises(OnnxError, match="hint: 'Softmax' has a row"):
        load(onnx.parser.parse_model(f"{text} {{ y = Softmaxx(x) }}").SerializeToString())


def test_modules_do_not_look_through_what_a_file_holds() -> None:
    assert all(map(tree.is_closed, (Graph, Node, Value)))


def test_whole_numbers_of_gemm_keep_their_digits() -> None:
    text = "(int64[1, 1] a, int64[1, 1] b, int64[1] c) => (int64[1, 1] y) { y = Gemm(a, b, c) }"
    large = 2**53 + 1
    assert load(model(text))([[large]], [[1]], [1]).tolist() == [[large + 1]]
    halved = load(model(text.replace("Gemm", "Gemm<alpha = 0.5>")))
    assert halved([[5]], [[1]], [1]).tolist() == [[3]]


def test_a_registered_op_may_draw() -> None:
    register("mine", "Noise", lambda x: x + px.random.normal(x.shape, device=x.device))
    text = "(float[3] x) => (float[3] y) { a = mine.Noise(c) b = mine.Noise(c) y = Sub(a, b) }"
    graph = prepared(model(text, c=np.ones(3, np.float32)), Limits())
    simplified(graph, Forms())
    assert [node.op for node in graph.nodes] == ["Noise", "Noise", "Sub"]


def test_a_registered_meaning_holds_in_source_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_table, "_REGISTERED", {})
    register("", "Identity", lambda input: input + 1)
    graph = prepared(model("(float[3] x) => (float[3] y) { y = Identity(x) }"), Limits())
    simplified(graph, Forms())
    assert [node.op for node in graph.nodes] == ["Identity"]
