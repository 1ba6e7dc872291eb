"""What verifying leaves alone: random numbers, limits, memory, and the form of the file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import phlox as px
from phlox_onnx._cli import main
from phlox_onnx.source import _proof, _verify

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
RELU = onnx.parser.parse_model(HEAD + "(float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }")


def test_random_numbers_go_on_as_if_nothing_had_been_verified(tmp_path: Path) -> None:
    px.seed(5)
    wanted = px.random.normal((3,)).tolist()
    px.seed(5)
    px.onnx.write(RELU, tmp_path / "made")
    px.onnx.verify(RELU, tmp_path / "made", {"x": np.ones((2, 4), np.float32)})
    assert px.random.normal((3,)).tolist() == wanted


def test_both_sides_draw_the_same(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y) { n = RandomNormalLike(x) y = Add(n, x) }"
    file = onnx.parser.parse_model(HEAD + text)
    made = px.onnx.write(file, tmp_path / "made")
    assert made.proof[0].startswith("- 'y' beside load: 0.0e+00")


def test_limits_hold_while_verifying(tmp_path: Path) -> None:
    file = onnx.ModelProto()
    file.CopyFrom(RELU)
    file.graph.node[0].name = "x" * 2000
    limits = px.onnx.Limits(name=5000)
    px.onnx.write(file, tmp_path / "made", limits=limits)
    feeds = {"x": np.ones((2, 4), np.float32)}
    px.onnx.verify(file, tmp_path / "made", feeds, limits=limits)
    with pytest.raises(px.onnx.OnnxError, match="a name is too long"):
        px.onnx.verify(file, tmp_path / "made", feeds)


def test_inputs_that_would_be_huge_are_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []

    def noted(*args: Any) -> dict[str, Any]:
        feeds = _verify.feeds_of(*args)
        drawn.append(feeds["x"].size)
        return feeds

    monkeypatch.setattr(_proof, "feeds_of", noted)
    text = "(float[n, 3, h, w] x) => (float[a, b] y) <int64[2] s = {7, 11}> { y = Reshape(x, s) }"
    with pytest.raises(px.onnx.OnnxError, match="at none of the sizes that were tried"):
        px.onnx.write(onnx.parser.parse_model(HEAD + text), tmp_path / "made")
    assert 1 << 20 < max(drawn) <= _proof.MOST


@pytest.mark.parametrize("form", [bytes, bytearray, onnx.ModelProto])
def test_another_library_gets_the_bytes_of_a_file_in_memory(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(words: list[str], **_: Any) -> Any:
        assert Path(words[3]).read_bytes() == RELU.SerializeToString()
        raise subprocess.TimeoutExpired(words, 1)

    monkeypatch.setattr(subprocess, "run", asked)
    file = RELU if form is onnx.ModelProto else form(RELU.SerializeToString())
    px.onnx.write(file, tmp_path / "made")
    with pytest.raises(px.onnx.OnnxError, match="no answer after 600 seconds"):
        px.onnx.verify(
            file, tmp_path / "made", {"x": np.ones((2, 4), "float32")}, against="onnxruntime"
        )


def test_a_library_that_is_missing_is_no_matter_of_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "ModuleNotFoundError: No module named 'onnxruntime'"
    done = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    onnx.save(RELU, tmp_path / "relu.onnx")
    words = [str(tmp_path / "relu.onnx"), "--out", str(tmp_path / "made")]
    assert main([*words, "--against", "onnxruntime"]) == 1
    shown = capsys.readouterr().out
    assert shown.rstrip().endswith("hint: pip install onnxruntime")
