"""`phlox record show` and `phlox record convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_record._cli import main

FOREIGN = (pr.NpzRecorder, pr.SafetensorsRecorder)


def test_show(
    small: dict[str, Any],
    kind: type[pr.Recorder],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = kind(pr.HalfPrecision).record(small, tmp_path / "a", metadata={"note": "\x1b[2J"})
    assert main(["show", str(path), "--verify"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(
        f"a{kind.extension}: {kind.__name__}, format {1 if kind in FOREIGN else 2}\n"
    )
    assert "half precision" in out
    assert "6 tensors with 10 values" in out
    assert r"note: \x1b[2J" in out
    assert "float16 [2, 2]  8 B  param w-1" in out
    assert out.endswith("all checksums are right\n")
    assert "größe" in out
    assert ("weight" in out) is not kind.needs_like


def test_show_finds_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pr.NamedMsgpackRecorder().record({"a": {"w": pt.asarray([1.0])}}, tmp_path / "a")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert main(["show", str(path)]) == 0
    assert main(["show", str(path), "--verify"]) == 1
    out, err = capsys.readouterr()
    assert "damaged: a.w" in out
    assert "damaged tensor data" in err


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree: Any = {"w": pt.asarray([1.0, 2.0])}
    first = str(pr.NamedMsgpackRecorder(pr.HalfPrecision).record(tree, tmp_path / "a"))
    compact, text = str(tmp_path / "b.cmpk"), str(tmp_path / "c.json")
    assert main(["convert", first, compact]) == 0
    assert main(["convert", compact, text, "--like", first, "--precision", "double"]) == 0
    assert "c.json: " in capsys.readouterr().out
    assert pr.inspect(compact).precision == "half"
    found = pr.JsonRecorder().load(text, dtype="stored")["w"]
    assert (found.dtype, found.tolist()) == (pt.float64, [1.0, 2.0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "none.mpk"], "No such file"),
        (["show", "text.mpk"], "not a phlox record"),
        (["convert", "a.mpk", "b.pt"], "the extension names no recorder"),
        (["convert", "c.cmpk", "b.json"], "a compact file has no names"),
        (["convert", "text.mpk", "b.json"], "not a phlox record"),
    ],
)
def test_errors(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pr.NamedMsgpackRecorder().record({"a": 1}, "a")
    pr.CompactMsgpackRecorder().record({"a": 1}, "c")
    Path("text.mpk").write_text("hello")
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert not Path("b.json").exists()


def test_a_damaged_source_leaves_no_target(tmp_path: Path) -> None:
    path = pr.NamedMsgpackRecorder().record({"w": pt.asarray([1.0])}, tmp_path / "a")
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.raises(pr.RecordError, match="damaged tensor data"):
        pr.convert(path, tmp_path / "b.json")
    assert [p.name for p in tmp_path.iterdir()] == ["a.mpk"]
