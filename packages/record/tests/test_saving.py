"""Saving while the program goes on, and to several files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt

NAMES = ("JsonRecorder", "NamedMsgpackGzRecorder", "NamedMsgpackRecorder", "SafetensorsRecorder")
NAMED = [getattr(pr, name) for name in NAMES]


def tensors(count: int = 6, size: int = 1000) -> dict[str, Any]:
    return {f"t{n}": {"w": pt.asarray(np.full(size, n, "f4"))} for n in range(count)}


def values(tree: Any) -> dict[str, Any]:
    return {path: leaf.tolist() for path, leaf in pt.tree.leaves_with_paths(tree)}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_gets_the_bytes_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "out.mpk"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    pr.NamedMsgpackRecorder().record(tensors(1), pipe)
    assert pipe.is_fifo()
    reader.join(60)
    copy = pr.NamedMsgpackRecorder().record(tensors(1), tmp_path / "copy")
    assert read == [copy.read_bytes()]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.mpk", "out.mpk"]


def test_saving_goes_on_beside_the_program(tmp_path: Path) -> None:
    go = threading.Event()

    def read() -> Any:
        assert go.wait(60)
        return np.ones(2, "f4")

    tree: Any = {"w": pr.TensorEntry((2,), pt.float32, read), "list": [1, 2]}
    saving = pr.NamedMsgpackRecorder().record_async(tree, tmp_path / "a")
    assert repr(saving) == "Saving(going on)"
    tree["list"].append(3)  # the record is what it was when saving began
    assert not (tmp_path / "a.mpk").exists()
    go.set()
    path = saving.wait()
    assert repr(saving) == "Saving(done)"
    found = pr.NamedMsgpackRecorder().load(path)
    assert (found["list"], found["w"].tolist()) == ([1, 2], [1, 1])


def test_errors_of_saving_come_at_once_or_when_waited_for(tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    alien: Any = {"a": {1, 2}}
    with pytest.raises(pr.RecordError, match="cannot store a"):
        recorder.record_async(alien, tmp_path / "a")
    saving = recorder.record_async({"w": pt.asarray([1e9])}, tmp_path / "a")
    with pytest.raises(pr.RecordError, match="w does not fit float16"):
        saving.wait()
    assert os.listdir(tmp_path) == []


def test_of_two_savings_to_one_path_the_later_one_stays(tmp_path: Path) -> None:
    go = threading.Event()

    def slowly() -> Any:
        assert go.wait(60)
        return np.zeros(2, "f4")

    recorder = pr.NamedMsgpackRecorder()
    slow = pr.TensorEntry((2,), pt.float32, slowly)
    earlier = recorder.record_async({"w": slow}, tmp_path / "a")
    later = recorder.record_async({"w": pt.ones(2)}, tmp_path / "a.mpk")
    elsewhere = recorder.record_async({"w": pt.ones(2)}, tmp_path / "b").wait()
    assert (elsewhere.exists(), later.done) == (True, False)
    go.set()
    assert recorder.load(later.wait())["w"].tolist() == [1, 1]
    assert earlier.done


def test_shards_say_whether_they_have_checksums_and_are_read_to_their_end(tmp_path: Path) -> None:
    said = {}
    for recorder in (pr.NamedMsgpackRecorder(), pr.SafetensorsRecorder()):
        index = recorder.record(tensors(), tmp_path / "a", max_shard_size=9000)
        said[type(recorder).__name__] = pr.inspect(index).checksums
    assert said == {"NamedMsgpackRecorder": True, "SafetensorsRecorder": False}
    packed = pr.NamedMsgpackGzRecorder()
    packed.record(tensors(), tmp_path / "a", max_shard_size=9000)
    shard = sorted(tmp_path.glob("a-*.mpk.gz"))[0]
    shard.write_bytes(shard.read_bytes() + b"more")
    with pytest.raises(pr.RecordError):
        packed.load(tmp_path / "a")


@pytest.mark.parametrize("kind", NAMED)
def test_a_record_in_several_files_is_one(kind: type[pr.Recorder], tmp_path: Path) -> None:
    recorder = kind()
    tree: Any = {**tensors(), "step": 3}
    index = recorder.record(tree, tmp_path / "a", max_shard_size=9000)
    assert index.name == f"a{kind.extension}.index.json"
    files = sorted(path for path in tmp_path.iterdir() if path != index)
    assert len(files) == 3
    for path in files:
        assert len(recorder.load(path)) == 2
    for name in ("a", f"a{kind.extension}", index.name):
        found = recorder.load(tmp_path / name)
        assert found.pop("step") == 3
        assert values(found) == values(tensors())
    lazy = recorder.open(tmp_path / "a")
    assert isinstance(lazy["t5"]["w"], pr.TensorEntry)


def test_a_later_save_takes_the_place_of_all_files(tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder()
    recorder.record(tensors(), tmp_path / "a", max_shard_size=5000)
    recorder.record(tensors(2), tmp_path / "a", max_shard_size=5000)
    assert len(os.listdir(tmp_path)) == 3
    recorder.record(tensors(1), tmp_path / "a")
    assert os.listdir(tmp_path) == ["a.mpk"]
    recorder.record(tensors(2), tmp_path / "a", max_shard_size=5000)
    assert len(os.listdir(tmp_path)) == 3
    assert values(recorder.load(tmp_path / "a")) == values(tensors(2))


def test_a_failed_save_of_several_files_leaves_the_old_ones(tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    recorder.record(tensors(), tmp_path / "a", max_shard_size=5000)
    bad = {**tensors(), "z": pt.asarray([1e9])}
    with pytest.raises(pr.RecordError, match="z does not fit"):
        recorder.record(bad, tmp_path / "a", max_shard_size=5000)
    assert values(recorder.load(tmp_path / "a")) == values(tensors())


def test_the_safetensors_package_reads_our_shards(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    index = pr.SafetensorsRecorder().record(tensors(), tmp_path / "a", max_shard_size=9000)
    about = json.loads(index.read_text())
    assert about["metadata"]["total_size"] == 24_000
    for name, file in about["weight_map"].items():
        assert numpy.load_file(tmp_path / file)[name].tolist() == values(tensors())[name]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"t0.w": "../a.mpk"}, "another folder"),
        ({"t0.w": "/etc/passwd"}, "another folder"),
        ({"t0.w": ".."}, "another folder"),
        ({"t0.w": 7}, "another folder"),
        ({"t9.w": None}, "is not in its file"),
    ],
)
def test_an_index_that_lies_is_refused(change: Any, says: str, tmp_path: Path) -> None:
    index = pr.NamedMsgpackRecorder().record(tensors(), tmp_path / "a", max_shard_size=9000)
    about = json.loads(index.read_text())
    first = about["weight_map"]["t0.w"]
    about["weight_map"] |= {key: value or first for key, value in change.items()}
    index.write_text(json.dumps(about))
    with pytest.raises(pr.RecordError, match=says):
        pr.NamedMsgpackRecorder().load(tmp_path / "a")


def test_wrong_settings_of_shards(tmp_path: Path) -> None:
    with pytest.raises(pt.ArgumentError, match="max_shard_size"):
        pr.NamedMsgpackRecorder().record(tensors(), tmp_path / "a", max_shard_size=0)
    with pytest.raises(pr.RecordError, match="no names"):
        pr.CompactMsgpackRecorder().record(tensors(), tmp_path / "a", max_shard_size=10)
    assert os.listdir(tmp_path) == []


def test_a_failure_that_nobody_waits_for_is_a_warning(tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder(pr.HalfPrecision)
    savings = [recorder.record_async({"a": pt.asarray([1e9])}, tmp_path / "a")]
    while not savings[0].done:
        time.sleep(0.01)
    with pytest.warns(RuntimeWarning, match=r"nothing was saved: .*float16"):
        savings.clear()


KILLED = """
import os, sys
import phlox_record as pr, phlox_tensor as pt
kind, place, keep = getattr(pr, sys.argv[1]), sys.argv[2], sys.argv[3] == "wait"
def last():
    print("there", flush=True)
    if keep:
        sys.stdin.readline()
    os._exit(9)
entry = pr.TensorEntry((4,), pt.float32, last)
tree = {"a": pt.ones(4), "b": pt.ones(4), "c": entry}
kind().record(tree, place, max_shard_size=16)
"""


def begun(kind: type[pr.Recorder], place: Path, then: str) -> subprocess.Popen[str]:
    """A process that has written two of three files of a record."""
    command = [sys.executable, "-c", KILLED, kind.__name__, str(place), then]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    return process


@pytest.mark.skipif(sys.platform == "win32", reason="locks of files are those of POSIX")
@pytest.mark.parametrize("kind", [pr.NamedMsgpackRecorder, pr.SafetensorsRecorder])
@pytest.mark.parametrize("most", [None, 16])
def test_what_a_killed_save_of_several_files_left_goes_with_the_next_one(
    kind: type[pr.Recorder], most: int | None, tmp_path: Path
) -> None:
    recorder = kind()
    begun(kind, tmp_path / "a", "end").communicate()
    left = {path.name for path in tmp_path.iterdir()}
    assert sum(name.startswith("a-") for name in left) == 2
    assert sum(name.startswith(".phlox-") for name in left) == 2
    other = recorder.record(tensors(2), tmp_path / "b", max_shard_size=16)
    assert not list(tmp_path.glob(".phlox-*"))
    for name in left - set(os.listdir(tmp_path)):
        assert name.startswith(".phlox-"), "shards of another record are not ours to remove"
    going_on = begun(kind, tmp_path / "a", "wait")
    written = set(os.listdir(tmp_path)) - left
    recorder.record(tensors(1), tmp_path / "a", max_shard_size=most)
    assert {name for name in written if name.startswith("a-")} <= set(os.listdir(tmp_path))
    going_on.communicate("go on\n")
    recorder.record(tensors(1), tmp_path / "a", max_shard_size=most)
    names = sorted(name for name in os.listdir(tmp_path) if name.startswith("a"))
    assert len(names) == (1 if most is None else 2), names
    assert values(recorder.load(tmp_path / "a")) == values(tensors(1))
    assert values(recorder.load(other)) == values(tensors(2))


def test_shards_that_another_index_names_stay(tmp_path: Path) -> None:
    recorder = pr.NamedMsgpackRecorder()
    index = recorder.record(tensors(2), tmp_path / "a", max_shard_size=16)
    index.rename(tmp_path / "kept.mpk.index.json")
    recorder.record(tensors(1), tmp_path / "a", max_shard_size=16)
    assert values(recorder.load(tmp_path / "kept")) == values(tensors(2))


def test_a_system_without_locks_of_files_saves_and_loads(tmp_path: Path) -> None:
    code = (
        "import sys\nsys.modules['fcntl'] = None\n"
        "import phlox_tensor as pt, phlox_record as pr\n"
        "recorder = pr.NamedMsgpackRecorder()\n"
        "recorder.record({'a': pt.ones(3)}, sys.argv[1])\n"
        "print(recorder.load(sys.argv[1])['a'].tolist())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[1.0, 1.0, 1.0]\n", done.stderr


def test_many_may_save_to_one_folder_at_once(tmp_path: Path) -> None:
    errors: list[OSError] = []

    def save(name: str) -> None:
        try:
            for turn in range(60):  # each of which tidies up the folder first
                pr.NamedMsgpackRecorder().record({"turn": turn}, tmp_path / name)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=save, args=(f"file-{k}",)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"file-{k}.mpk" for k in range(6)]
