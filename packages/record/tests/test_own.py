"""A recorder that a user writes is one like any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_record._source import Write
from phlox_tensor import tree


class PlainRecorder(pr.Recorder):
    """Dicts of tensors as lists of numbers."""

    extension = ".numbers"

    def write(self, content: pr.Content, sink: Write) -> None:
        lists = tree.map(lambda t: [t.dtype.name, t.numpy().tolist()], content.tree)
        sink(json.dumps([content.precision, lists]).encode())

    def read(self, data: memoryview) -> pr.Content:
        precision, lists = json.loads(bytes(data))
        found = {k: pr.TensorEntry.from_numpy(np.asarray(v, d)) for k, (d, v) in lists.items()}
        return pr.Content(found, precision)


TREE: Any = {
    "a": pt.asarray([1.0, 2.0], device=pt.Numpy()),
    "b": pt.ones((1, 2), device=pt.Numpy()),
}


def test_it_saves_and_loads(tmp_path: Path) -> None:
    path = PlainRecorder(pr.HalfPrecision).record(TREE, tmp_path / "own")
    assert path.name == "own.numbers"
    assert json.loads(path.read_text())[1]["a"] == ["float16", [1.0, 2.0]]
    loaded = pr.recorder_for(path).load(path)
    assert (loaded["a"].dtype, loaded["a"].tolist()) == (pt.float32, [1.0, 2.0])
    stored = PlainRecorder().load(tmp_path / "own", dtype="stored")
    assert stored["b"].dtype is pt.float16
    assert PlainRecorder().open(path)["b"].shape == (1, 2)
    data = PlainRecorder().to_bytes(TREE)
    assert PlainRecorder().from_bytes(data)["b"].tolist() == [[1.0, 1.0]]


def test_it_is_inspected_and_converted(tmp_path: Path) -> None:
    path = PlainRecorder(pr.HalfPrecision).record(TREE, tmp_path / "own")
    info = pr.inspect(path)
    assert info.recorder is PlainRecorder
    assert info.precision == "half"
    assert [(name, t.dtype) for name, t in info.tensors()] == [("a", pt.float16), ("b", pt.float16)]
    other = pr.convert(path, tmp_path / "own.mpk")
    back = pr.convert(other, tmp_path / "back.numbers")
    assert back.read_bytes() == path.read_bytes()


def test_errors_name_file_and_tensor(tmp_path: Path) -> None:
    large: Any = {"a": pt.asarray([1e6])}
    with pytest.raises(pr.RecordError, match=r"own\.numbers: a does not fit float16"):
        PlainRecorder(pr.HalfPrecision).record(large, tmp_path / "own")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(pr.RecordError, match="belongs to another recorder"):
        PlainRecorder().record(TREE, tmp_path / "own.mpk")
    with pytest.raises(FileNotFoundError, match=r"own\.numbers"):
        PlainRecorder().load(tmp_path / "own")


def test_an_extension_has_one_recorder() -> None:
    for extension in (".mpk", "mine"):
        with pytest.raises(TypeError, match=r"extension '.*' (is that of|has no dot)"):
            type("Mine", (pr.Recorder,), {"extension": extension})


def test_a_recorder_without_its_functions_is_abstract() -> None:
    class Half(pr.Recorder):
        extension = ".half"

        def write(self, content: pr.Content, sink: Write) -> None:
            sink(b"")

    made: Any = Half
    with pytest.raises(TypeError, match=r"abstract.*read"):
        made()


def test_the_extension_names_the_recorder(kind: type[pr.Recorder]) -> None:
    assert type(pr.recorder_for(f"a.b{kind.extension}")) is kind
    assert type(pr.recorder_for("plain")) is pr.NamedMsgpackRecorder
    for unknown in ("a.pkl", "a.onnx", "epoch_0.5"):
        with pytest.raises(
            pr.RecordError, match=r"no recorder: got .*, expected \.bin, \.ckpt, \.cmpk.*\.mpk"
        ):
            pr.recorder_for(unknown)


def test_pieces_are_the_bytes_of_a_tensor() -> None:
    array = np.arange(200_000, dtype=np.float32).reshape(200, 1000)
    pieces = [bytes(p) for p in pr.TensorEntry.from_numpy(array).pieces()]
    assert len(pieces) > 1
    assert b"".join(pieces) == array.tobytes()
