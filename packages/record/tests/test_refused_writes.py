"""What recorders and checkpoints refuse, and leave as it was."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_record import Checkpointer, HalfPrecision, NamedMsgpackRecorder, Recorder
from phlox_tensor import ArgumentError, RecordError, WrongTypeError

TREE: Any = {"bias": pt.zeros(2), "norm": {"weight": pt.ones(2)}}


@pytest.mark.parametrize("pattern", ["baias", "*.norm.*", "norm.bias", "Bias"])
def test_a_pattern_of_a_precision_that_fits_nothing_is_refused(
    pattern: str, tmp_path: Path
) -> None:
    precision = HalfPrecision.where({"bias": pr.FullPrecision, pattern: pr.FullPrecision})
    recorder = NamedMsgpackRecorder(precision)
    for use in (
        lambda: recorder.record(TREE, tmp_path / "a"),
        lambda: recorder.record_async(TREE, tmp_path / "a"),
        lambda: recorder.to_bytes(TREE),
        lambda: pr.precision_loss(TREE, precision),
    ):
        with pytest.raises(RecordError, match="fits no tensor") as error:
            use()
        assert repr(pattern) in str(error.value)
        assert "bias, norm.weight" in str(error.value)
        assert error.value.hint is not None
        assert error.value.hint.startswith("precision.where({'")
    assert list(tmp_path.iterdir()) == []


def test_patterns_that_fit_are_taken_inside_others_too() -> None:
    inside = pr.DoublePrecision.where({"norm.w*": pr.KeepPrecision})
    fits = HalfPrecision.where({"bias": pr.FullPrecision, "norm.*": inside})
    assert NamedMsgpackRecorder(fits).to_bytes(TREE)
    wrong = HalfPrecision.where({"bias": inside})
    with pytest.raises(RecordError, match=r"'norm.w\*'"):
        NamedMsgpackRecorder(wrong).to_bytes(TREE)


class Returning(Recorder):
    extension = ".returning"

    def write(self, content: Any, sink: Any) -> Any:
        return b"bytes"

    def read(self, data: memoryview) -> Any:
        raise RecordError("read", "never written")


class Silent(Recorder):
    extension = ".silent"

    def write(self, content: Any, sink: Any) -> None:
        sink(b"")

    def read(self, data: memoryview) -> Any:
        raise RecordError("read", "never written")


@pytest.mark.parametrize(("kind", "got"), [(Returning, "bytes it returned"), (Silent, "nothing")])
def test_a_recorder_that_writes_nothing_is_refused(
    kind: type[Recorder], got: str, tmp_path: Path
) -> None:
    for use in (
        lambda: kind().record(TREE, tmp_path / "a"),
        lambda: kind().record_async(TREE, tmp_path / "a").wait(),
        lambda: kind().to_bytes(TREE),
        lambda: kind().record(TREE, tmp_path / "a", max_shard_size=8),
    ):
        with pytest.raises(RecordError, match=f"write gave no bytes to its sink: got {got}"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    place = tmp_path / "none" / "a.mpk"
    with pytest.raises(FileNotFoundError, match="there is no folder") as error:
        NamedMsgpackRecorder().record(TREE, place)
    assert error.value.filename == str(place)
    folder = tmp_path / "b.mpk"
    folder.mkdir()
    with pytest.raises(OSError, match=r"b\.mpk") as denied:
        NamedMsgpackRecorder().record(TREE, folder)
    assert denied.value.filename == str(folder)
    assert list(tmp_path.iterdir()) == [folder]


class Counter:
    """Stands in for an optimizer: loading changes it."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count = name, count

    def into_record(self) -> dict[str, Any]:
        return {"name": self.name, "count": self.count}

    def load_record(self, record: Any) -> Counter:
        self.count = record["count"]
        if record["name"] != self.name:
            raise RecordError("load_record", "of another counter")
        return self


class Fixed:
    """Stands in for a module: loading gives another one."""

    def __init__(self, name: str) -> None:
        self.name = name

    def to_device(self, device: Any) -> Fixed:
        return self

    def into_record(self) -> dict[str, Any]:
        return {"name": self.name}

    def load_record(self, record: Any) -> Fixed:
        if record["name"] != self.name:
            raise RecordError("load_record", "of another module")
        return Fixed(self.name)


@pytest.mark.parametrize("wrong", ["model", "second"])
def test_a_restore_that_fails_leaves_every_part_as_it_was(wrong: str, tmp_path: Path) -> None:
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(1, first=Counter("a", 5), model=Fixed("m"), second=Counter("b", 6))
    first = Counter("a", 0)
    second = Counter("c" if wrong == "second" else "b", 1)
    model = Fixed("n" if wrong == "model" else "m")
    state = pt.random.generator().state()
    with pytest.raises(RecordError, match="of another"):
        checkpoints.restore(first=first, model=model, second=second)
    assert (first.count, second.count) == (0, 1)
    assert pt.random.generator().state() == state
    found = checkpoints.restore(first=first, model=Fixed("m"), second=Counter("b", 1))
    assert found is not None
    assert list(found) == ["first", "model", "second", "step"]
    assert first.count == 5


@pytest.mark.parametrize("path", ["", ".", "..", "/", "a\0b"])
def test_paths_without_a_file_name_are_refused(path: str) -> None:
    for call in (pr.JsonRecorder().load, lambda p: pr.JsonRecorder().record({"a": 1}, p)):
        with pytest.raises(RecordError, match="no file name"):
            call(path)


def test_arguments_of_wrong_types_are_named(tmp_path: Path) -> None:
    wrong: Any = 3
    recorder = pr.NamedMsgpackRecorder()
    for call in (recorder.load, recorder.open, pr.inspect, pr.recorder_for, recorder.from_bytes):
        with pytest.raises(WrongTypeError):
            call(wrong)
    with pytest.raises(WrongTypeError, match="precision"):
        pr.precision_loss({"a": 1}, wrong)
    with pytest.raises(WrongTypeError, match="limits"):
        pr.NamedMsgpackRecorder(limits=wrong)
    for wrong in ("1GB", 1.5, True):
        with pytest.raises(ArgumentError, match="max_shard_size"):
            recorder.record({"a": pt.ones(2)}, tmp_path / "a", max_shard_size=wrong)
    for wrong in (3, None, {3: pr.FullPrecision}):
        with pytest.raises(WrongTypeError, match="where"):
            pr.HalfPrecision.where(wrong)
    checkpoints = pr.Checkpointer(tmp_path)
    for wrong in (3, {"loss": "a"}, {"loss": None}):
        with pytest.raises(ArgumentError, match="metrics"):
            checkpoints.save(1, metrics=wrong)
    wrong = None
    with pytest.raises(ArgumentError, match="a float type"):
        pr.materialize({"a": 1}, dtype=wrong)


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    recorder = pr.JsonRecorder()
    real = recorder.record({"a": 1}, tmp_path / "real")
    link = tmp_path / "link.json"
    link.symlink_to(real.name)
    recorder.record({"a": 2}, link)
    assert link.is_symlink()
    assert recorder.load(real) == {"a": 2}


def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    def full() -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    tree: Any = {"a": pt.ones(3), "b": pr.TensorEntry((3,), pt.float32, full)}
    with pytest.raises(OSError, match=r"No space.*a\.mpk"):
        pr.NamedMsgpackRecorder().record(tree, tmp_path / "a")
    with pytest.raises(OSError, match=r"No space.*a-.*\.mpk"):
        pr.NamedMsgpackRecorder().record(tree, tmp_path / "a", max_shard_size=4)
    assert not list(tmp_path.iterdir())


def test_files_of_an_index_are_looked_into_together(tmp_path: Path) -> None:
    tree = {"a": pt.ones(30), "b": pt.ones(3)}
    index = pr.NamedMsgpackRecorder().record(tree, tmp_path / "a", max_shard_size=60)
    assert [name for name, _ in pr.inspect(index).tensors()] == ["a", "b"]
    assert pr.convert(index, tmp_path / "b.json").exists()
    next(tmp_path.glob("a-*")).unlink()
    with pytest.raises(RecordError, match="a file of the record is missing"):
        pr.NamedMsgpackRecorder().load(tmp_path / "a")
