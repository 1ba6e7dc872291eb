"""The command `phlox onnx`."""

import json
from pathlib import Path

import pytest
from onnx import parser

from phlox_onnx._cli import main


def write(folder: Path, text: str) -> str:
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> g {text}')
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return str(path)


def test_check_says_what_a_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "(float[n, 2] x) => (float[n, 2] y) { y = Relu(x) }")
    assert main([file, "--check"]) == 0
    out = capsys.readouterr().out
    assert "x: float32 (n, 2)" in out
    assert "every op has a row" in out


def test_check_names_every_op_without_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "(float[2] x) => (float[2] y) { a = Reluu(x)  y = Nix(a) }")
    assert main([file, "--check", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["unsupported"]
    assert found == [
        {"op": "Nix", "count": 1, "first": "y", "nearest": []},
        {"op": "Reluu", "count": 1, "first": "a", "nearest": ["Relu"]},
    ]


def test_a_file_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.onnx").write_bytes(b"nothing")
    assert main([str(tmp_path / "x.onnx"), "--check"]) == 2
    assert main([str(tmp_path / "none.onnx"), "--check"]) == 2
    assert "not an ONNX" in capsys.readouterr().err


def test_ops_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--ops"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert {"Conv", "LSTM", "com.microsoft.FusedMatMul"} <= set(names)
    assert main([]) == 2
