"""Files that lie: each is refused, before memory is asked for, with words that say why."""

from __future__ import annotations

import ast
import json
import re
import runpy
import subprocess
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

from phlox_onnx import Limits, OnnxError, load, source
from phlox_onnx.read import _external
from phlox_tensor import PhloxError

BUILD = runpy.run_path(str(Path(__file__).parent.parent / "attacks" / "build.py"), run_name="build")
NAMES: dict[str, str] = BUILD["expectations"]()
honest: Callable[[], onnx.ModelProto] = BUILD["honest"]
beside: Callable[..., Path] = BUILD["beside"]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("attacks")
    BUILD["main"](str(folder))
    command = [sys.executable, str(Path(__file__).with_name("attack_reader.py")), str(folder)]
    done = subprocess.run(
        [*command, *NAMES], capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_cap_was_on(results: dict[str, Any]) -> None:
    assert results["capped"] == sys.platform.startswith("linux")


@pytest.mark.parametrize("read", ["load", "source"])
@pytest.mark.parametrize("name", NAMES)
def test_a_lie_is_told_in_little_memory_and_time(
    name: str, read: str, results: dict[str, Any]
) -> None:
    result = results["found"][f"{read} {name}"]
    assert result["outcome"] == "refused", result
    assert re.search(NAMES[name], result["message"]), result["message"]
    assert all(line.isprintable() for line in result["message"].split("\n"))
    assert len(result["message"]) < 1000
    assert result["seconds"] < 2


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


def test_graphs_nest_as_deep_as_the_limits_say() -> None:
    proto = honest()
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    proto.graph.input.append(c)
    proto.graph.node.extend(BUILD["nested"](6).node)
    assert load(proto.SerializeToString(), limits=Limits(depth=6)) is not None
    with pytest.raises(OnnxError, match="graphs nest too deep"):
        load(proto.SerializeToString(), limits=Limits(depth=5))


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
