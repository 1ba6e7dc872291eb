"""`phlox record show` and `phlox record convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
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
    without = kind is pr.SafetensorsRecorder
    assert out.endswith("there are no checksums\n" if without else "all checksums are right\n")
    assert "größe" in out
    assert ("weight" in out) is not kind.needs_like


def test_show_counts_a_shared_parameter_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = pr.ParamEntry("p-1", pt.asarray([1.0, 2.0]))
    path = pr.NamedMsgpackRecorder().record({"a": shared, "b": [shared]}, tmp_path / "a")
    assert main(["show", str(path)]) == 0
    out = capsys.readouterr().out
    assert "1 tensors with 2 values" in out
    assert "a  float32 [2]  8 B  param p-1\n" in out
    assert "0  float32 [2]  8 B  param p-1, the one above\n" in out


def test_convert_of_a_compact_file_says_what_to_type(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = pr.CompactMsgpackRecorder().record({"a": pt.asarray([1.0])}, tmp_path / "a")
    assert main(["convert", str(path), str(tmp_path / "b.mpk")]) == 1
    assert "--like FILE" in capsys.readouterr().err


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
        (
            ["show", "wholly-else"],
            '[record] no such file or directory: got wholly-else\nhint: ls "."\n',
        ),
        (["check", "wholly-else"], "[record] no such file or directory: got wholly-else"),
        (["show", "."], "not a regular file"),
        (["show", "texts.mpk"], "there is text.mpk"),
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


def test_show_says_what_tensors_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = np.array([1e6 + 1, 1e6 + 2, 1e6 + 3, np.nan, np.inf], "f4")
    tree: Any = {"w": pt.asarray(numbers), "n": pt.asarray([3, 5]), "none": pt.zeros(0)}
    path = pr.NamedMsgpackRecorder().record(tree, tmp_path / "a")
    assert main(["show", str(path), "--stats"]) == 0
    out = capsys.readouterr().out
    assert "1e+06..1e+06, mean 1e+06, std 0.8165, 1 NaN, 1 infinite" in out
    assert "3..5, mean 4, std 1" in out
    found = pr.statistics(pr.NamedMsgpackRecorder().open(path)["w"])
    assert (found.low, found.high, found.mean) == (1e6 + 1, 1e6 + 3, 1e6 + 2)
    assert found.std == pytest.approx(np.std(numbers[:3].astype("f8")), rel=1e-12)


def test_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one: Any = {"a": pt.asarray([1.0, 2.0]), "b": pt.zeros(2), "c": pt.ones(1), "n": 1, "s": "x"}
    other: Any = {"a": pt.asarray([1.0, 2.5]), "b": pt.zeros(3), "d": pt.ones(1), "n": 1, "s": "y"}
    a = str(pr.NamedMsgpackRecorder().record(one, tmp_path / "a"))
    b = str(pr.SafetensorsRecorder().record(other, tmp_path / "b"))
    same = str(pr.JsonRecorder().record(one, tmp_path / "same"))
    assert main(["diff", a, same]) == 0
    assert capsys.readouterr().out == ""
    assert main(["diff", a, b]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "- c  float32 [1]",
        "+ d  float32 [1]",
        "~ a  1 values differ, by at most 0.5",
        "~ b  float32 [2], float32 [3]",
        "~ s  'x', 'y'",
    ]
    assert main(["diff", a, str(tmp_path / "none.mpk")]) == 2


def test_diff_of_precisions_says_what_was_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree: Any = {"w": pt.asarray([1.0, 0.1, np.nan])}
    a = str(pr.NamedMsgpackRecorder().record(tree, tmp_path / "a"))
    b = str(pr.NamedMsgpackRecorder(pr.HalfPrecision).record(tree, tmp_path / "b"))
    assert main(["diff", a, b]) == 1
    assert capsys.readouterr().out == (
        "~ w  float32 [3], float16 [3], 1 values differ, by at most 2.44e-05\n"
    )


def test_check(
    kind: type[pr.Recorder],
    small: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = kind().record(small, tmp_path / "good")
    assert main(["check", str(good)]) == 0
    assert f"good{kind.extension}: sound, {kind.__name__}, 6 tensors" in capsys.readouterr().out
    bad = tmp_path / f"bad{kind.extension}"
    bad.write_bytes(good.read_bytes()[:-1])
    if kind is pr.JsonRecorder:  # its last byte is a line feed, which means nothing
        bad.write_bytes(good.read_bytes()[:-2])
    assert main(["check", str(bad), str(good)]) == 1
    out, err = capsys.readouterr()
    assert "good" in out
    assert "bad" in err


def test_check_names_what_is_damaged_and_counts_a_shared_parameter_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = pr.ParamEntry("p-1", pt.asarray([1.0, 2.0]))
    path = pr.NamedMsgpackRecorder().record({"a": shared, "b": [shared]}, tmp_path / "a")
    assert main(["check", str(path)]) == 0
    assert "1 tensors, all checksums are right" in capsys.readouterr().out
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    assert main(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert (out, "damaged tensor data" in err) == ("damaged: a\n", True)


@pytest.mark.parametrize("kind", [pr.JsonRecorder, pr.NamedMsgpackGzRecorder])
def test_check_does_not_praise_checksums_that_are_not_there(
    kind: type[pr.Recorder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kind(checksums=False).record({"a": pt.asarray([1.0])}, tmp_path / "a")
    old = Path(__file__).parent / "files" / "old.pt"  # of a form without
    assert main(["check", str(path), str(old)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("there are no checksums") for line in lines] == [True, True]
