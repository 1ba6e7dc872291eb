"""Wrong calls around files are told in words, by the names that the caller gave."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import phlox as px
from phlox import nn
from phlox_onnx._cli import main

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
X = np.ones((2, 4), np.float32)


def file(text: str = "(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }", **constants: Any) -> Any:
    proto = onnx.parser.parse_model(HEAD + text)
    for name, value in constants.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    return proto


PRODUCT = "(float[n, 4] x) => (float[n, 2] y) { a = MatMul(x, w) y = Relu(a) }"
WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file in the place of a folder": (
        lambda at: px.onnx.write(file(), at / "file"),
        r"\[write\] this is no folder: got .*file'",
    ),
    "a folder in the place of a file": (
        lambda at: px.onnx.save(nn.Linear(4, 2), X, at),
        r"\[save\] the path is a folder",
    ),
    "a folder that is not there": (
        lambda at: px.onnx.save(nn.Linear(4, 2), X, at / "none" / "x.onnx"),
        r"\[save\] there is no such folder: got .*none.x.onnx",
    ),
    "inputs that are none": (
        lambda at: px.onnx.write(file(), at / "made", verify=3),  # type: ignore[arg-type]
        r"\[write\] verify is no inputs: got int",
    ),
    "limits below 1": (lambda _: px.onnx.Limits(nodes=-1), r"\[Limits\] no limit: got nodes=-1"),
    "limits in words": (
        lambda _: px.onnx.Limits(depth="a"),  # type: ignore[arg-type]
        r"got depth='a', expected a whole number above 0",
    ),
    "no limits": (
        lambda _: px.onnx.load(file(), limits=0),  # type: ignore[arg-type]
        r"these are no limits: got int",
    ),
    "nothing in the place of a tensor": (
        lambda _: px.onnx.load(file())(None),
        r"\[onnx\] an input is no tensor: got None for 'x', expected float32",
    ),
    "sizes that other parts count on": (
        lambda at: px.onnx.write(file(PRODUCT, w=X.T), at / "made", free={"x:1": "w"}),
        r"\[write\] other parts of the file count on a size: got 'w', which is 4 there",
    ),
    "too few axes": (
        lambda _: px.onnx.load(file())(X[0]),
        r"another number of axes than in the file: got \(4,\) for 'x', expected \(n, 4\)",
    ),
    "two constants of one name": (
        lambda _: px.onnx.load(_twice()),
        r"two constants have one name: got 'w'",
    ),
}


def _twice() -> Any:
    proto = file(PRODUCT, w=X.T)
    proto.graph.initializer.append(proto.graph.initializer[0])
    return proto


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_told(name: str, tmp_path: Path) -> None:
    call, said = WRONG[name]
    (tmp_path / "file").write_text("something")
    with pytest.raises(px.PhloxError, match=said):
        call(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.onnx"], "none.onnx"),
        (["x.onnx", "--out", ""], "this is no folder: got ''"),
        (["x.onnx", "--out", "x.onnx"], "this is no folder: got 'x.onnx'"),
    ],
)
def test_the_command_tells_them_too(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(file(), "x.onnx")
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_an_input_may_be_called_self() -> None:
    model = px.onnx.load(file("(float[n] self) => (float[n] y) { y = Relu(self) }"))
    assert model(**{"self": [-1.0, 2.0]}).tolist() == [0.0, 2.0]


def test_a_model_prints_what_goes_in_and_out() -> None:
    model = px.onnx.load(file(PRODUCT, w=X.T))
    wanted = "x: float32 (n, 4) -> 2 nodes -> y: float32 (n, 2)"
    assert wanted in str(model)
    assert wanted in str(pickle.loads(pickle.dumps(model)))
    assert " object at " not in str(model)


def test_sizes_of_an_example_do_not_bind_the_call() -> None:
    model = px.onnx.load(file("(float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }"))
    assert model(np.ones((5, 4), np.float32)).shape == (5, 4)


def test_the_report_counts_only_what_stands_in_ops(tmp_path: Path) -> None:
    text = "(float x, seq(float[4]) s) => (float[4] y) { a = SequenceAt(s, i) y = Relu(a) }"
    feeds = {"x": np.float32(1), "s": [X[0]]}
    made = px.onnx.write(file(text, i=0), tmp_path / "made", verify=feeds)
    assert ".relu()" in made.model
    assert "Relu" not in made.report["called"]
    assert (made.ops is None) == (not made.report["called"])


def test_an_error_names_the_op_of_the_node_that_fails() -> None:
    text = "(float[n, 4] x, int64[k] i) => (float[n, 4] y) { y = ReduceSum(x, i) }"
    with pytest.raises(px.onnx.OnnxError, match=r"\[ReduceSum\] axis out of range: got 7"):
        px.onnx.load(file(text))(X, np.array([7]))
