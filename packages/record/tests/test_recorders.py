"""What a user types, and what a user gets wrong."""

from __future__ import annotations

import math
import os
import stat
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt


def test_the_extension_is_added_when_absent(kind: type[pr.Recorder], tmp_path: Path) -> None:
    recorder = kind()
    path = recorder.record({"a": 1}, tmp_path / "model.v1")
    assert path == tmp_path / f"model.v1{kind.extension}"
    assert recorder.load(tmp_path / "model.v1", like={"a": 0}) == {"a": 1}
    assert recorder.load(str(path), like={"a": 0}) == {"a": 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize("wrong", ["a.json", "a.mpk.gz", "a.cmpk"])
def test_the_extension_of_another_recorder(wrong: str, tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    with pytest.raises(pr.RecordError, match=r"(?s)another recorder.*hint: \w+\(HalfPrecision\)"):
        recorder.record({"a": 1}, tmp_path / wrong)
    with pytest.raises(pr.RecordError, match="another recorder"):
        recorder.load(tmp_path / wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_recorder_names_it(kind: type[pr.Recorder]) -> None:
    kinds = {pr.JsonRecorder, pr.NamedMsgpackRecorder, pr.CompactMsgpackGzRecorder} - {kind}
    data = kind().to_bytes({"a": 1})
    for other in kinds:
        with pytest.raises(pr.RecordError) as caught:
            other().from_bytes(data, like={"a": 1})
        assert caught.value.got == kind.__name__
        assert caught.value.expected == other.__name__
        assert kind.__name__ in (caught.value.hint or "")


def test_a_missing_file(tmp_path: Path) -> None:
    pr.JsonRecorder().record({"a": 1}, tmp_path / "digits")
    with pytest.raises(FileNotFoundError, match=r"there is digits\.json"):
        pr.NamedMsgpackRecorder().load(tmp_path / "digits")
    with pytest.raises(FileNotFoundError, match=r"nothing\.mpk"):
        pr.NamedMsgpackRecorder().load(tmp_path / "nothing")


def test_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.mpk").mkdir()
    with pytest.raises(pr.RecordError, match="not a regular file"):
        pr.NamedMsgpackRecorder().load(tmp_path / "folder")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mpk")
    with pytest.raises(pr.RecordError, match="not a regular file"):
        pr.NamedMsgpackRecorder().load(tmp_path / "pipe")


def test_metadata_and_precision_are_in_the_header(kind: type[pr.Recorder], tmp_path: Path) -> None:
    notes = {"commit": "abc", "größe": "1"}
    path = kind(pr.HalfPrecision).record({"w": pt.asarray([1.0])}, tmp_path / "a", metadata=notes)
    info = pr.inspect(path)
    assert info.recorder is kind
    assert info.metadata == notes
    assert (info.precision, info.writer) == ("half", f"phlox-record {pr.__version__}")
    assert info.nbytes == path.stat().st_size
    assert [(t.dtype, t.shape) for _, t in info.tensors()] == [(pt.float16, (1,))]


def test_metadata_must_be_text() -> None:
    notes: Any = {"step": 1}
    with pytest.raises(pr.RecordError, match="metadata"):
        pr.NamedMsgpackRecorder().to_bytes({}, metadata=notes)


class Flag(int):
    """A subclass of a plain type."""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((1, 2), r"list\(value\)"),
        ({1, 2}, r"sorted\(value\)"),
        (np.zeros(2), r"asarray\(value\)"),
        (np.float64(1), r"value\.item\(\)"),
        (bytearray(b"a"), r"bytes\(value\)"),
        (Flag(1), r"int\(value\)"),
        (object(), "None, bool, int"),
        (2**64, r"2\*\*64"),
        (-(2**63) - 1, r"2\*\*64"),
        ("\ud800", "UTF-8"),
        ({1: 2}, "str keys"),
        ({"\ud800": 2}, "UTF-8"),
        (1j, "None, bool, int"),
        (pr.ParamEntry("id", "no tensor"), "Tensor"),  # type: ignore[arg-type]
        (pt.float32, "None, bool, int"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_a_record_cannot_hold(value: Any, says: str, kind: type[pr.Recorder]) -> None:
    with pytest.raises(pr.RecordError, match=says) as caught:
        kind().to_bytes({"deep": [None, {"here": value}]})
    assert "deep.1.here" in str(caught.value)


def test_depth(kind: type[pr.Recorder]) -> None:
    tree: Any = 1
    for _ in range(128):
        tree = [tree]
    assert kind().from_bytes(kind().to_bytes(tree), like=tree) == tree
    with pytest.raises(pr.RecordError, match="too deep"):
        kind().to_bytes([tree])
    keyed: Any = 1
    for _ in range(128):
        keyed = pr.Keyed({"a": keyed})
    assert kind().from_bytes(kind().to_bytes(keyed), like=keyed) == keyed
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(pr.RecordError, match="may not hold itself"):
        kind().to_bytes(loop)


def test_limits_hold_when_writing(kind: type[pr.Recorder]) -> None:
    tensors: Any = [pt.zeros(0), pt.zeros(0), pt.zeros(0)]
    with pytest.raises(pr.RecordError, match="too many tensors"):
        kind(limits=pr.Limits(tensors=2)).to_bytes(tensors)
    with pytest.raises(pr.RecordError, match="too many values"):
        kind(limits=pr.Limits(nodes=3)).to_bytes(tensors)
    tight = pr.Limits(header_bytes=100, json_bytes=100, inflated_bytes=100)
    with pytest.raises(pr.RecordError, match=r"too large|may unfold"):
        kind(limits=tight).to_bytes(b"x" * 200)


def test_limits_hold_when_reading(kind: type[pr.Recorder]) -> None:
    tensors: Any = [pt.zeros(0), pt.zeros(0), pt.zeros(0)]
    data = kind().to_bytes(tensors)
    with pytest.raises(pr.RecordError, match="too many tensors"):
        kind(limits=pr.Limits(tensors=2)).from_bytes(data, like=tensors[:2])
    with pytest.raises(pr.RecordError, match="too many values"):
        kind(limits=pr.Limits(nodes=4)).from_bytes(data, like=tensors[:2])


def test_a_failed_save_leaves_the_old_file(kind: type[pr.Recorder], tmp_path: Path) -> None:
    recorder = kind(pr.HalfPrecision)
    path = recorder.record({"w": pt.asarray([1.0])}, tmp_path / "a")
    before = path.read_bytes()
    with pytest.raises(pr.RecordError, match="does not fit float16"):
        recorder.record({"v": pt.asarray([2.0]), "w": pt.asarray([1e6])}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_saving_where_nothing_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pr.NamedMsgpackRecorder().record({}, tmp_path / "missing" / "a")
    (tmp_path / "taken.mpk").mkdir()
    with pytest.raises(OSError, match="taken"):
        pr.NamedMsgpackRecorder().record({}, tmp_path / "taken")
    assert os.listdir(tmp_path) == ["taken.mpk"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission bits")
def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        path = pr.NamedMsgpackRecorder().record({}, tmp_path / "a")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_equal_records_give_equal_bytes(kind: type[pr.Recorder], small: dict[str, Any]) -> None:
    assert kind().to_bytes(small) == kind().to_bytes(small)


def test_bytes_and_file_are_the_same(kind: type[pr.Recorder], tmp_path: Path) -> None:
    path = kind().record({"a": [1, 2]}, tmp_path / "a")
    assert path.read_bytes() == kind().to_bytes({"a": [1, 2]})
    for data in (path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes())):
        assert kind().from_bytes(data, like={"a": []}) == {"a": [1, 2]}


@pytest.mark.parametrize("kept", [None, 3, -0.0, "text", b"raw", [], {}, math.pi])
def test_a_record_may_be_one_value(kept: Any, kind: type[pr.Recorder]) -> None:
    like: Any = 0 if kept is None else kept
    found = kind().from_bytes(kind().to_bytes(kept), like=like)
    assert repr(found) == repr(kept)


def test_recorders_show_their_settings() -> None:
    assert repr(pr.JsonRecorder(pr.HalfPrecision)) == "JsonRecorder(HalfPrecision)"
    assert repr(pr.NamedMsgpackRecorder()) == "NamedMsgpackRecorder(KeepPrecision)"


def test_wrong_settings() -> None:
    precision: Any = "half"
    with pytest.raises(TypeError, match="HalfPrecision"):
        pr.NamedMsgpackRecorder(precision)
    base: Any = pr.Recorder
    with pytest.raises(TypeError, match="abstract"):
        base()


def test_names_from_a_file_cannot_drive_a_terminal() -> None:
    data = pr.JsonRecorder().to_bytes({"\x1b[2J\n" + "x" * 500: pt.asarray([1.0])})
    damaged = data.replace(b"AACAPw==", b"AACAPg==")
    with pytest.raises(pr.RecordError) as caught:
        pr.JsonRecorder().from_bytes(damaged)
    assert r"\x1b[2J\n" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 400
