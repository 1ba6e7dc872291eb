"""Files that lie: each is refused, before memory is asked for, with words that say why."""

from __future__ import annotations

import ast
import os
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from phlox_onnx import Limits, OnnxError, _external, load, source
from phlox_tensor import PhloxError


def honest() -> onnx.ModelProto:
    """y = x + w, with w in the file."""
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    w = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    graph = helper.make_graph([node], "g", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _huge(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [1 << 40, 1 << 16]


def _huge_and_none(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [0, 1 << 62, 1 << 62]
    m.graph.initializer[0].raw_data = b""


def _negative(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [-4]


def _short(m: Any) -> None:
    m.graph.initializer[0].raw_data = b"\0" * 15


def _deep_rank(m: Any) -> None:
    m.graph.initializer[0].dims[:] = [1] * 33 + [4]


def _long_name(m: Any) -> None:
    m.graph.node[0].name = "x" * 1001


def _circle(m: Any) -> None:
    m.graph.node.append(helper.make_node("Add", ["y", "b"], ["a"]))
    m.graph.node.append(helper.make_node("Add", ["a", "y"], ["b"]))


def _twice(m: Any) -> None:
    m.graph.node.append(helper.make_node("Neg", ["x"], ["y"]))


def _nothing(m: Any) -> None:
    m.graph.node[0].input[0] = "nowhere"


def _recursion(m: Any) -> None:
    body = [helper.make_node("f", ["a"], ["b"], domain="mine")]
    opsets = [helper.make_opsetid("mine", 1)]
    m.functions.append(helper.make_function("mine", "f", ["a"], ["b"], body, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f", ["x"], ["z"], domain="mine"))


def _bomb(m: Any) -> None:
    """Forty functions, each of which calls the next twice."""
    opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 18)]
    for i in range(40):
        body = [
            helper.make_node(f"f{i + 1}", ["a"], ["c"], domain="mine"),
            helper.make_node(f"f{i + 1}", ["c"], ["b"], domain="mine"),
        ]
        m.functions.append(helper.make_function("mine", f"f{i}", ["a"], ["b"], body, opsets))
    last = [helper.make_node("Neg", ["a"], ["b"])]
    m.functions.append(helper.make_function("mine", "f40", ["a"], ["b"], last, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f0", ["x"], ["z"], domain="mine"))


def _sparse(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [0])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [1 << 40]))


def _sparse_outside(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [9])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))


def _sparse_of_another_rank(m: Any) -> None:
    values = helper.make_tensor("s", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1, 3], [0, 0, 0])
    m.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 4]))


def _tower(m: Any) -> None:
    """Sixty functions, each of which calls the next inside of ten branches in each other."""
    opsets = [helper.make_opsetid("mine", 1), helper.make_opsetid("", 18)]
    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, [4])
    for i in range(60):
        node = helper.make_node(f"f{i + 1}", ["a"], ["b"], domain="mine")
        for _ in range(10):
            graph = helper.make_graph([node], "g", [], [out])
            node = helper.make_node("If", ["c"], ["b"], then_branch=graph, else_branch=graph)
            node.attribute[1].g.CopyFrom(helper.make_graph([], "e", [], [out]))
        body = [helper.make_node("Cast", ["a"], ["c"], to=TensorProto.BOOL), node]
        m.functions.append(helper.make_function("mine", f"f{i}", ["a"], ["b"], body, opsets))
    last = [helper.make_node("Neg", ["a"], ["b"])]
    m.functions.append(helper.make_function("mine", "f60", ["a"], ["b"], last, opsets))
    m.opset_import.append(helper.make_opsetid("mine", 1))
    m.graph.node.append(helper.make_node("f0", ["x"], ["z"], domain="mine"))


def _newer(m: Any) -> None:
    m.opset_import[0].version = 29


def _attribute_twice(m: Any) -> None:
    m.graph.node[0].op_type = "Softmax"
    m.graph.node[0].attribute.extend(helper.make_attribute("axis", i) for i in (0, 1))


def _not_text(m: Any) -> None:
    m.graph.node[0].attribute.append(helper.make_attribute("auto_pad", b"\xff\xfe"))


def _too_many_inputs(m: Any) -> None:
    m.graph.node[0].input.append("x")


def _too_few_inputs(m: Any) -> None:
    del m.graph.node[0].input[1]


def went_through(file: bytes | Path) -> bool:
    """Load a file, run it and write its source, and return whether all of it went well.

    Any error that is none of phlox passes through.
    """
    well = False
    with suppress(PhloxError):
        load(file)(np.ones(4, np.float32))
        well = True
    with suppress(PhloxError):
        ast.parse(source(file))
        return well
    return False


ATTACKS: dict[str, tuple[Callable[[Any], None], str]] = {
    "attribute_twice": (_attribute_twice, "an attribute is given twice"),
    "bomb": (_bomb, "too many nodes"),
    "circle": (_circle, "nodes wait for each other"),
    "deep_rank": (_deep_rank, "impossible shape"),
    "huge": (_huge, "other bytes than its shape"),
    "huge_and_none": (_huge_and_none, "impossible shape"),
    "long_name": (_long_name, "a name is too long"),
    "negative": (_negative, "impossible shape"),
    "newer": (_newer, "an opset that is not known: got 29, expected 1 to 28"),
    "not_text": (_not_text, "text is not UTF-8"),
    "nothing": (_nothing, "read that nothing makes"),
    "recursion": (_recursion, "call each other in a circle"),
    "short": (_short, "other bytes than its shape"),
    "sparse": (_sparse, "a sparse tensor is too large"),
    "sparse_outside": (_sparse_outside, "points outside"),
    "sparse_of_another_rank": (_sparse_of_another_rank, "points outside"),
    "too_few_inputs": (_too_few_inputs, "an input is missing"),
    "too_many_inputs": (_too_many_inputs, "too many inputs"),
    "tower": (_tower, "functions nest too deep"),
    "twice": (_twice, "a value is made twice"),
}


@pytest.mark.parametrize("read", [load, source])
@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_a_lie_is_told_before_memory_is_asked_for(name: str, read: Callable[..., Any]) -> None:
    change, words = ATTACKS[name]
    proto = honest()
    change(proto)
    data = proto.SerializeToString()
    limits = Limits(nodes=20_000)
    tracemalloc.start()
    try:
        with pytest.raises(OnnxError, match=words):
            read(data, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_a_name_that_is_no_text_is_refused() -> None:
    data = honest().SerializeToString()
    op = honest().graph.node[0].op_type.encode()
    assert op in data
    with pytest.raises(OnnxError, match="a name is no text"):
        load(data.replace(op, b"\xf4" * len(op)))


def test_the_honest_file_loads() -> None:
    assert load(honest().SerializeToString())([1.0] * 4).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_every_truncation_is_an_error_or_another_model() -> None:
    data = honest().SerializeToString()
    assert went_through(data)
    went = sum(went_through(data[:end]) for end in range(len(data)))
    assert went < len(data) // 2


def test_flipped_bits_raise_errors_of_phlox_alone() -> None:
    data = bytearray(honest().SerializeToString())
    rng = np.random.default_rng(0)
    went = 0
    for _ in range(300):
        i, bit = int(rng.integers(len(data))), 1 << int(rng.integers(8))
        data[i] ^= bit
        went += went_through(bytes(data))
        data[i] ^= bit
    assert 0 < went < 300


def test_graphs_that_nest_too_deep_are_refused() -> None:
    def nested(depth: int) -> onnx.GraphProto:
        y = helper.make_tensor_value_info(f"y{depth}", TensorProto.FLOAT, [4])
        if not depth:
            return helper.make_graph([helper.make_node("Neg", ["x"], ["y0"])], "g", [], [y])
        inner = nested(depth - 1)
        node = helper.make_node("If", ["c"], [y.name], then_branch=inner, else_branch=inner)
        return helper.make_graph([node], "g", [], [y])

    proto = honest()
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    proto.graph.input.append(c)
    proto.graph.node.extend(nested(6).node)
    assert load(proto.SerializeToString(), limits=Limits(depth=6)) is not None
    with pytest.raises(OnnxError, match="graphs nest too deep"):
        load(proto.SerializeToString(), limits=Limits(depth=5))


def beside(folder: Path, location: str, **entries: str) -> Path:
    """The honest model with its data in another file."""
    proto = honest()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_data_beside_the_file_is_read(tmp_path: Path) -> None:
    values = np.arange(4, 9, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(values.tobytes())
    path = beside(tmp_path, "w.bin", offset="4", length="16", unknown="ignored")
    assert load(path)([0.0] * 4).tolist() == [5.0, 6.0, 7.0, 8.0]
    assert went_through(path)
    with pytest.raises(OnnxError, match="in another file"):
        load(path.read_bytes())


def test_a_file_of_many_tensors_is_mapped_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    path = beside(tmp_path, "w.bin", length="16")
    proto = onnx.load(str(path), load_external_data=False)
    other = proto.graph.initializer.add()
    other.CopyFrom(proto.graph.initializer[0])
    other.name = "v"
    other.external_data.add(key="offset", value="16")
    proto.graph.node.append(helper.make_node("Add", ["y", "v"], ["z"]))
    proto.graph.output[0].name = "z"
    path.write_bytes(proto.SerializeToString())
    opened: list[object] = []
    real = _external._opened

    def noted(file: Path, location: str) -> Any:
        opened.append(file)
        return real(file, location)

    monkeypatch.setattr(_external, "_opened", noted)
    assert load(path)([0.0] * 4).tolist() == [4.0, 6.0, 8.0, 10.0]
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("location", "entries", "words"),
    [
        ("../w.bin", {}, "outside of the model's folder"),
        ("/etc/passwd", {}, "outside of the model's folder"),
        ("a/../../w.bin", {}, "outside of the model's folder"),
        ("w\0.bin", {}, "outside of the model's folder"),
        ("..\\w.bin", {}, "outside of the model's folder"),
        ("", {}, "outside of the model's folder"),
        ("none.bin", {}, "cannot be opened"),
        ("folder", {}, "no plain file|cannot be opened"),
        ("link.bin", {}, "is a link"),
        ("linked/w.bin", {}, "is a link"),
        ("pipe", {}, "no plain file"),
        ("second.bin", {}, "no plain file"),
        ("w.bin", {"offset": "8"}, "ends too early"),
        ("w.bin", {"offset": "-1"}, "malformed"),
        ("w.bin", {"offset": "9" * 30}, "malformed"),
        ("w.bin", {"length": "15"}, "another size"),
    ],
)
def test_data_from_elsewhere_is_refused(
    tmp_path: Path, location: str, entries: dict[str, str], words: str
) -> None:
    folder = tmp_path / "model"
    (folder / "folder").mkdir(parents=True)
    for path in (tmp_path / "w.bin", folder / "w.bin", folder / "first.bin"):
        path.write_bytes(b"\0" * 16)
    os.symlink(folder / "w.bin", folder / "link.bin")
    os.symlink(tmp_path, folder / "linked")
    os.mkfifo(folder / "pipe")
    os.link(folder / "first.bin", folder / "second.bin")
    for read in (load, source):
        with pytest.raises(OnnxError, match=words):
            read(beside(folder, location, **entries))


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(honest().SerializeToString())
    with pytest.raises(OnnxError, match="the file is too large"):
        load(path, limits=Limits(file_bytes=10))


@pytest.mark.parametrize(
    "body",
    [
        "y = Range()",
        "y = Range(x)",
        "y = Identity()",
        "y = If()",
        "y = Gemm(x, two)",
        "y = If (both) <then_branch = t () => (float[2] a) { a = Neg(x) }, "
        "else_branch = e () => (float[2] b) { b = Abs(x) }>",
        "z = Range(two, two, none) y = Add(x, z)",
    ],
)
def test_a_node_that_does_not_fit_raises_errors_of_phlox_alone(body: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) {{ {body} }}'
    proto = onnx.parser.parse_model(text)
    for name, value in (("two", np.ones(2)), ("both", np.ones(2, bool)), ("none", np.ones(0))):
        proto.graph.initializer.append(numpy_helper.from_array(value, name))
    data = proto.SerializeToString()
    with suppress(PhloxError):
        load(data)(np.ones(2, np.float32))
    with suppress(PhloxError):
        source(data)


def test_a_window_beyond_the_channels_costs_no_more_than_they_do() -> None:
    head = '<ir_version: 8, opset_import: ["" : 18]> g (float[1, 3, 2] x) => (float[1, 3, 2] y)'
    proto = onnx.parser.parse_model(f"{head} {{ y = LRN<size = 3, alpha = 2.0>(x) }}")
    size = proto.graph.node[0].attribute[0]
    assert size.name == "size"
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    for n in (6, 7, 1 << 40):
        size.i = n
        total = np.square(x).sum(axis=1, keepdims=True)
        wanted = x / (total * (2.0 / n) + 1.0) ** 0.75
        found = load(proto.SerializeToString())(x).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)
    size.i = 0
    with pytest.raises(OnnxError, match="a window of nothing"):
        load(proto.SerializeToString())(x)


def test_constants_that_would_grow_are_not_folded() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[1] x) => (float[n, m] y) '
    proto = onnx.parser.parse_model(text + "{ p = Mul(a, b) y = Add(p, x) }")
    for name, shape in (("a", (8192, 1)), ("b", (1, 8192))):
        array = np.ones(shape, np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    data = proto.SerializeToString()
    tracemalloc.start()
    try:
        source(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20


def _branches(count: int) -> onnx.ModelProto:
    """Nodes whose branches all call their value y."""
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    proto = honest()
    proto.graph.initializer.append(numpy_helper.from_array(np.asarray(True), "c"))
    for i in range(count):
        body = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "b", [], [y])
        node = helper.make_node("If", ["c"], [f"z{i}"], then_branch=body, else_branch=body)
        proto.graph.node.append(node)
    return proto


def _alike(count: int) -> onnx.ModelProto:
    """Weights whose names differ in their punctuation alone."""
    proto = honest()
    for i in range(count):
        name = "w" + f"{i:013b}".replace("0", "-").replace("1", "+") + "w"
        proto.graph.initializer.append(numpy_helper.from_array(np.zeros(4, np.float32), name))
        proto.graph.node.append(helper.make_node("Add", ["x", name], [f"z{i}"]))
    return proto


def _recurrent(count: int) -> onnx.ModelProto:
    """Layers of one unit, each with weights of its own."""
    proto = honest()
    rng = np.random.default_rng(0)
    for i in range(count):
        for name, shape in (("w", (1, 3, 1)), ("r", (1, 3, 1)), ("b", (1, 6))):
            array = rng.normal(size=shape).astype(np.float32)
            proto.graph.initializer.append(numpy_helper.from_array(array, f"{name}{i}"))
        given = [f"y{i - 1}" if i else "t", f"w{i}", f"r{i}", f"b{i}"]
        node = helper.make_node("GRU", given, ["", f"y{i}"], hidden_size=1, linear_before_reset=1)
        proto.graph.node.append(node)
    t = helper.make_tensor_value_info("t", TensorProto.FLOAT, [1, 1, 1])
    proto.graph.input.append(t)
    return proto


def lines_of(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs."""
    count = 0

    def note(frame: Any, event: str, _: object) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("make", [_alike, _branches, _recurrent])
def test_work_to_load_grows_with_the_file(make: Callable[[int], onnx.ModelProto]) -> None:
    small, large = (make(n).SerializeToString() for n in (100, 200))
    load(small)  # what is only computed once
    assert lines_of(lambda: load(large)) < 2.1 * lines_of(lambda: load(small))


def test_names_of_many_layers_are_short() -> None:
    params = load(_recurrent(60).SerializeToString()).params()
    assert len(params) == 241
    assert max(map(len, params)) < 40
