"""Safetensors, both ways with the `safetensors` package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_record import _cli as cli

st = pytest.importorskip("safetensors", reason="the safetensors package is not installed")
sn = pytest.importorskip("safetensors.numpy", reason="the safetensors package is not installed")

NAMES = ("bool", "float16", "float32", "float64", "int16", "int32", "int64", "int8", "uint16")
DTYPES = (*NAMES, "uint32", "uint64", "uint8")


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        f"layer.{index}.{name}": (rng.standard_normal((3, index)) * 3).astype(name)
        for index, name in enumerate(DTYPES)
    }


def test_the_package_reads_what_we_write(tmp_path: Path) -> None:
    tree: Any = {name: pt.asarray(array) for name, array in arrays().items()}
    path = pr.SafetensorsRecorder(pr.KeepPrecision).record(tree, tmp_path / "a")
    found = sn.load_file(path)
    assert set(found) == set(arrays())
    for name, array in arrays().items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


def test_we_read_what_the_package_writes(tmp_path: Path) -> None:
    more = {**arrays(), "brain": np.array([1.5, -2], ml_dtypes.bfloat16)}
    sn.save_file(more, tmp_path / "a.safetensors", metadata={"format": "np"})
    tree = pr.SafetensorsRecorder().load(tmp_path / "a", dtype="stored")
    assert pr.inspect(tmp_path / "a.safetensors").metadata == {"format": "np"}
    flat = dict(pt.tree.leaves_with_paths(tree))
    assert set(flat) == set(more)
    assert tree["layer"]["2"]["float32"].shape == (3, 2)
    for name, array in more.items():
        assert flat[name].dtype.numpy == array.dtype
        assert np.array_equal(flat[name].numpy(), array)


def test_every_precision_is_what_the_package_sees() -> None:
    tree: Any = {"w": pt.asarray([1.5, -2.0]), "n": pt.asarray([1, 2])}
    for precision, code, dtype in [
        (pr.BFloat16Precision, "BF16", ml_dtypes.bfloat16),
        (pr.DoublePrecision, "F64", np.float64),
        (pr.HalfPrecision, "F16", np.float16),
    ]:
        found = dict(st.deserialize(pr.SafetensorsRecorder(precision).to_bytes(tree)))
        assert (found["w"]["dtype"], found["n"]["dtype"]) == (code, "I64")
        assert np.frombuffer(found["w"]["data"], dtype).tolist() == [1.5, -2.0]


def test_a_name_that_is_also_a_branch_keeps_the_record_flat() -> None:
    data = sn.save({"a": np.ones(1), "a.b": np.zeros(1)})
    assert set(pr.SafetensorsRecorder().from_bytes(data)) == {"a", "a.b"}


@pytest.mark.parametrize(
    ("code", "narrow", "wide"),
    [
        ("F8_E4M3", ml_dtypes.float8_e4m3fn, "float16"),
        ("F8_E5M2", ml_dtypes.float8_e5m2, "float16"),
        ("F8_E8M0", ml_dtypes.float8_e8m0fnu, "float32"),
    ],
)
def test_every_number_of_8_bits_is_read_in_a_wider_type(
    code: str, narrow: Any, wide: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = np.arange(256, dtype=np.uint8)
    path = tmp_path / "a.safetensors"
    path.write_bytes(
        file({"w": {"dtype": code, "shape": [16, 16], "data_offsets": [0, 256]}}, every.tobytes())
    )
    entry = pr.SafetensorsRecorder().open(path)["w"]
    assert (entry.dtype.name, entry.stored.name, entry.stored.nbytes) == (wide, code, 256)
    found = entry.numpy().reshape(-1).astype(np.float64)
    assert np.array_equal(found, every.view(narrow).astype(np.float64), equal_nan=True)
    assert cli.main(["show", str(path)]) == 0
    assert f"{wide} [16, 16]  256 B as {code}" in capsys.readouterr().out


def file(header: Any, data: bytes = bytes(8)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def row(**change: Any) -> dict[str, Any]:
    return {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **change}}


TWO = {
    "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
    "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]},
}
HOSTILE: list[tuple[bytes, str]] = [
    (b"", "empty"),
    (b"\xff" * 8, "not a phlox record"),
    ((2**33).to_bytes(8, "little") + b"{", "header is too large|cut short"),
    (file(row())[:-1], "ends early"),
    (file(row(), bytes(9)), "behind the end"),
    (file(row(dtype="F6_E2M3")), "not read.*F6_E2M3"),
    (file(row(dtype="F6_E2M3", shape=[-2])), "shape"),
    (file(row(dtype="F6_E2M3", data_offsets=[8, 0])), "size of w"),
    (file(row(dtype="F8_E4M3")), "size of w"),
    (file(row(dtype=7)), "is no text"),
    (file(row(dtype="F64")), "size of w"),
    (file(row(shape=[-2])), "shape"),
    (file(row(shape=[2**62, 2**62])), "impossibly"),
    (file(row(shape=[2.0])), "shape"),
    (file(row(shape=[1] * 33)), "shape"),
    (file(row(data_offsets=[8, 16])), "misplaced"),
    (file(row(data_offsets=[-8, 0])), "misplaced"),
    (file(row(data_offsets=[0])), "offsets"),
    (file(row(data_offsets=[0.0, 8])), "offsets"),
    (file(row(data_offsets=[False, 8])), "offsets"),
    (file({**TWO, "b": {**TWO["b"], "data_offsets": [2, 6]}}), "misplaced"),
    (file({**TWO, "b": {**TWO["b"], "data_offsets": [0, 4]}}), "misplaced"),
    (file({**row(), "__metadata__": {"a": 1}}), "metadata"),
    (file({**row(), "__metadata__": {"phlox.tree": '{"a": {"$tensor": "x"}}'}}), "not in the file"),
    (file({**row(), "__metadata__": {"phlox.tree": "{}"}}), "nothing refers"),
    (file({**row(), "__metadata__": {"phlox.tree": "["}}), "not valid JSON"),
    (file({"w": [1]}), "row of w"),
    (file({"w": {**row()["w"], "more": 1}}), "row of w"),
    (file(b'{"w":1,"w":2}'), "stands twice"),
    (file(b'{"w":NaN}'), "not valid JSON"),
    (file(b'{"\xff":1}'), "not UTF-8"),
    (file(b"{" + b'"a":{' * 100_000), "too deep"),
    (file({"w": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, b"\2" * 8), "0 and 1"),
]


@pytest.mark.parametrize(
    ("code", "size"), [("F8_E3M4", 8), ("C64", 64), ("F4", 4), ("F6_E2M3", 6), ("NEW", 3)]
)
def test_a_tensor_of_another_type_spoils_only_itself(
    code: str, size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": code, "shape": [2, 4], "data_offsets": [8, 8 + size]},
        "c": {"dtype": "U8", "shape": [1], "data_offsets": [8 + size, 9 + size]},
    }
    path = tmp_path / "a.safetensors"
    path.write_bytes(file(rows, np.ones(2, "f4").tobytes() + bytes(size) + b"\7"))
    tree = pr.SafetensorsRecorder().open(path)
    assert (tree["a"].numpy().tolist(), tree["c"].numpy().tolist()) == ([1, 1], [7])
    assert tree["b"].shape == (2, 4)
    for read in (tree["b"].numpy, lambda: pr.load(path)):
        with pytest.raises(pr.RecordError, match=f"not read.*{code}") as caught:
            read()
        kept = "torch.view_as_real(weights[name])" if code == "C64" else "weights[name].float()"
        assert str(caught.value.hint).startswith(f"{kept} before")
    assert cli.main(["show", str(path), "--stats"]) == 0
    assert cli.main(["check", str(path)]) == 1
    assert "not read: b" in capsys.readouterr().out
    for write in (pr.SafetensorsRecorder().record, pr.NamedMsgpackRecorder().record):
        with pytest.raises(pr.RecordError, match=code):
            write(tree, tmp_path / "b")


@pytest.mark.parametrize(("data", "says"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files(data: bytes, says: str) -> None:
    with pytest.raises(pr.RecordError, match=says):
        pr.SafetensorsRecorder().from_bytes(data)


def test_a_changed_byte_is_refused_or_changes_one_tensor_alone() -> None:
    """The format has no checksums, so damage to elements cannot be seen."""
    tree: Any = {"a": pt.asarray([1, 2]), "b": {"c": pt.asarray([True, False])}, "n": 3}
    recorder = pr.SafetensorsRecorder()
    data = bytearray(recorder.to_bytes(tree))
    start = 8 + int.from_bytes(data[:8], "little")
    for at in range(start):
        data[at] ^= 0x80
        with pytest.raises(pr.RecordError):
            recorder.from_bytes(data)
        data[at] ^= 0x80
    for at in range(start, start + 16):
        data[at] ^= 0x80
        found = recorder.from_bytes(data)
        assert found["a"].tolist() != [1, 2]
        assert found["b"]["c"].tolist() == [True, False]
        data[at] ^= 0x80
