"""Options of `write` and of `phlox onnx FILE --out`: each does what it says, or refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

import phlox as px
from phlox import Autodiff, Cpu
from phlox_onnx._cli import main
from phlox_onnx.source._verify import imported

TEXT = """<ir_version: 9, opset_import: ["" : 20]>
g (float[2, 8] x) => (float[2, 8] y) {
    shape = Shape<start = 0, end = 1>(x)
    eight = Constant<value_ints = [8]>()
    to = Concat<axis = 0>(shape, eight)
    a = MatMul(x, layers_0_weight)
    b = Relu(a)
    c = MatMul(b, layers_1_weight)
    d = Relu(c)
    e = MatMul(d, head)
    y = Reshape(e, to)
}"""


def f(seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(8, 8)).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    model = parser.parse_model(TEXT)
    for i, name in enumerate(("layers_0_weight", "layers_1_weight", "head")):
        model.graph.initializer.append(numpy_helper.from_array(f(i), name))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def run(folder: Path, x: Any) -> Any:
    return imported(folder).load(Cpu())(px.asarray(x, device=Cpu())).numpy()


def wanted(x: Any) -> Any:
    return np.maximum(np.maximum(x @ f(0), 0) @ f(1), 0) @ f(2)


def test_a_size_of_the_file_stays_open_where_it_is_freed(file: Path, tmp_path: Path) -> None:
    assert ".reshape((2, 8))" in px.onnx.source(file)
    made = px.onnx.write(file, tmp_path / "open", free={"x:0": "batch"})
    assert made.inputs[0].shape == ("batch", 8)
    assert "'x float32 (batch, 8)'" in (tmp_path / "open" / "report.md").read_text()
    for n in (1, 2, 5):
        x = f(9)[:n]
        np.testing.assert_allclose(run(tmp_path / "open", x), wanted(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bind": {"sequence": 3}}, "got 'sequence', expected x:0, x:1"),
        ({"free": {"x": "batch"}}, "got 'x', expected INPUT:AXIS of x"),
        ({"free": {"x:2": "batch"}}, "got 'x:2'"),
        ({"free": {"z:0": "batch"}}, r"free={'x:0': 'batch'}"),
        ({"freeze": "layer"}, "got 'layer', expected"),
        ({"precision": "double"}, "expected 'keep', 'full', 'half'"),
        ({"quantized": "int4"}, "expected 'fake', 'float', 'exact'"),
        ({"flat": "yes"}, "expected False, True"),
        ({"freeze": 3}, "freeze is no path: got 3"),
        ({"bind": {"x:0": "2"}}, "bind does not name sizes: got 'x:0': '2'"),
        ({"bind": {"x:0": True}}, "bind does not name sizes"),
        ({"bind": {"x:1": 4}}, "got 'x:1': 4, expected 8\nhint: free={'x:1': 'size'}"),
        ({"free": {"x:0": 3}}, "free does not name sizes"),
    ],
)
def test_what_is_none_of_the_file_is_refused(
    file: Path, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(px.ArgumentError, match=said):
        px.onnx.write(file, tmp_path / "made", **options)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(("precision", "dtype"), [("half", "float16"), ("full", "float32")])
def test_the_record_has_the_precision_that_is_asked_for(
    file: Path, tmp_path: Path, precision: Any, dtype: str
) -> None:
    made = px.onnx.write(file, tmp_path / "made", precision=precision)
    model = imported(tmp_path / "made").load(Cpu())
    for path, param in model.params().items():
        assert param.value.dtype is px.float32
        rounded = made.params[path][0].astype(dtype).astype(np.float32)
        assert np.array_equal(param.value.numpy(), rounded)
    size = (tmp_path / "made" / "weights.mpk").stat().st_size
    assert size < 3 * 64 * np.dtype(dtype).itemsize + 1024


def test_frozen_weights_are_not_trained_by_the_package(file: Path, tmp_path: Path) -> None:
    before = px.onnx.write(file, tmp_path / "all")
    first = next(iter(before.params))
    made = px.onnx.write(file, tmp_path / "some", freeze=[first])
    train = Autodiff(Cpu())
    every = set(imported(tmp_path / "all").load(train).params(trainable=True))
    some = set(imported(tmp_path / "some").load(train).params(trainable=True))
    assert every - some == {first}
    assert len(every) == 3
    assert (made.report["trained"], made.report["frozen"]) == (128, 64)
    assert "trained: 128 numbers; frozen: 64" in (tmp_path / "some" / "report.md").read_text()


def test_a_flat_model_is_one_class_with_the_same_results(tmp_path: Path) -> None:
    body, before = "", "x"
    for i in range(6):
        body += f"h{i} = MatMul({before}, w{i}) t{i} = Tanh(h{i}) s{i} = Sigmoid(t{i}) "
        body += f"r{i} = Add(s{i}, {before}) "
        before = f"r{i}"
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[n, 8] x) => (float[n, 8] {before})'
    model = parser.parse_model(f"{text} {{ {body} }}")
    for i in range(6):
        model.graph.initializer.append(numpy_helper.from_array(f(i) / 4, f"w{i}"))
    data = model.SerializeToString()
    made = {flat: px.onnx.write(data, tmp_path / f"m{flat}", flat=flat) for flat in (False, True)}
    assert made[False].model.count("(nn.Module)") == 2
    assert made[True].model.count("(nn.Module)") == 1
    assert len(made[True].params) == len(made[False].params) == 6
    x = f(9)[:3]
    assert np.array_equal(run(tmp_path / "mTrue", x), run(tmp_path / "mFalse", x))


def test_the_command_takes_all_of_them(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--free", "x:0=batch", "--precision", "half", "--freeze", "*weight", "--flat"]
    assert main([str(file), "--out", str(tmp_path / "made"), *words]) == 0
    out = capsys.readouterr().out
    assert "frozen: 192" in out
    assert "for 'x' (2, 8)" in out
    assert "for 'x' (4, 8)" in out
    model = imported(tmp_path / "made").load(Autodiff(Cpu()))
    assert not model.params(trainable=True)


@pytest.mark.parametrize("words", [["--free", "x:0"], ["--bind", "n=x"], ["--freeze", "no"]])
def test_the_command_says_what_is_wrong_with_an_option(
    file: Path, tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(file), "--out", str(tmp_path / "made"), *words]) == 2
    assert words[1].partition("=")[2] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["FILE"], "nothing to do with the file"),
        (["FILE", "--bind", "n=8"], "nothing to do with the file"),
        (["FILE", "--check", "--out", "made"], "nothing together: got --check --out"),
        (["FILE", "--check", "--against", "onnxruntime"], "got --check --against"),
        (["FILE", "--check", "--quantized", "float"], "got --check --quantized"),
        (["FILE", "--ops"], "nothing together: got --ops"),
        (["--ops", "--check"], "got --ops --check"),
        (["FILE", "--out", "made", "--json"], "got --out --json"),
        (["FILE", "--out", "made", "--bind", "n=8", "--bind", "n=9"], "--bind names a size twice"),
        (["FILE", "--out", "made", "--sample", "SAMPLE"], "one array without a name"),
        (["--out", "made"], "no file is named"),
        (["none", "--check"], '[onnx] no such file or directory: got none\nhint: ls "."\n'),
        (["none", "--out", "made"], "[onnx] no such file or directory: got none"),
    ],
)
def test_the_command_says_what_is_missing_or_too_much(
    file: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "sample.npy", f(0))
    places = {"FILE": file, "SAMPLE": tmp_path / "sample.npy", "made": tmp_path / "made"}
    assert main([str(places.get(word, word)) for word in words]) == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_cannot_be_imported_is_told(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(file), "--out", str(tmp_path / "my model")]) == 0
    assert "is no name that Python imports" in capsys.readouterr().err
