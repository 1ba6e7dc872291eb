"""A parameter at two places is one in the file and one again when it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt


def tied() -> dict[str, Any]:
    shared = pr.ParamEntry("p-1", pt.asarray(np.arange(1000, dtype="f4")))
    other = pr.ParamEntry("p-2", pt.asarray([1.0]))
    return {"a": shared, "b": [other, shared], "c": {"d": other}}


def test_it_is_one_again(kind: type[pr.Recorder], tmp_path: Path) -> None:
    tree = tied()
    path = kind().record(tree, tmp_path / "a")
    for found in (kind().load(path, like=tree), kind().open(path, like=tree)):
        assert found["a"] is found["b"][1]
        assert found["b"][0] is found["c"]["d"]
        assert found["a"] is not found["b"][0]
    assert len(list(pr.inspect(path).tensors())) == 4  # places


def test_it_takes_the_room_of_one(kind: type[pr.Recorder]) -> None:
    tree = tied()
    alone = len(kind().to_bytes({**tree, "b": [tree["b"][0], None]}))
    apart = {**tree, "b": [tree["b"][0], pr.ParamEntry("p-3", pt.asarray(np.ones(1000, "f4")))]}
    assert len(kind().to_bytes(tree)) < alone + 200
    assert len(kind().to_bytes(apart)) > alone + 40


def test_it_is_read_once() -> None:
    reads = []

    def read() -> Any:
        reads.append(1)
        return np.ones(2, "f4")

    entry = pr.ParamEntry("p", pr.TensorEntry((2,), pt.float32, read))
    pr.NamedMsgpackRecorder().to_bytes([entry, entry, {"a": entry}])
    assert reads == [1]


@pytest.mark.parametrize("kind", [pr.JsonRecorder, pr.NamedMsgpackRecorder])
def test_it_survives_conversion(kind: type[pr.Recorder], tmp_path: Path) -> None:
    first = kind().record(tied(), tmp_path / "a")
    second = pr.convert(first, tmp_path / "b.safetensors")
    third = pr.convert(second, tmp_path / f"c{kind.extension}")
    assert third.read_bytes() == first.read_bytes()


@pytest.mark.parametrize("checksums", [True, False])
def test_checksums_are_optional(checksums: bool) -> None:
    tree: Any = {"w": pt.asarray([1.0, 2.0])}
    data = bytearray(pr.NamedMsgpackRecorder(checksums=checksums).to_bytes(tree))
    data[-5 if checksums else -1] ^= 0x40
    recorder = pr.NamedMsgpackRecorder()
    if checksums:
        with pytest.raises(pr.RecordError, match="damaged tensor data"):
            recorder.from_bytes(data)
    else:
        assert recorder.from_bytes(data)["w"].tolist() != [1.0, 2.0]
        data[20] ^= 1  # the flag itself is covered
        with pytest.raises(pr.RecordError, match="damaged"):
            recorder.from_bytes(data)
