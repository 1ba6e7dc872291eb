"""NumPy's archives, both ways with NumPy."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt


def arrays() -> dict[str, Any]:
    names = ("bool", "float16", "float32", "float64", "int8", "int64", "uint16", "uint64")
    found = {f"a.{name}": np.arange(6).reshape(2, 3).astype(name) for name in names}
    return {**found, "scalar": np.float32(2.5), "empty": np.zeros((0, 3))}


def test_numpy_reads_what_we_write(tmp_path: Path) -> None:
    tree: Any = {name: pt.asarray(array) for name, array in arrays().items()}
    path = pr.NpzRecorder(pr.KeepPrecision).record(tree, tmp_path / "a")
    with np.load(path, allow_pickle=False) as found:
        assert set(found) == {*arrays(), "__phlox__"}
        for name, array in arrays().items():
            assert found[name].dtype == array.dtype
            assert np.array_equal(found[name], array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_we_read_what_numpy_writes(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **arrays(), columns=np.asfortranarray(np.eye(2, 3, 1, "f4")))
    tree = pr.NpzRecorder().load(tmp_path / "a", dtype="stored")
    flat = dict(pt.tree.leaves_with_paths(tree))
    for name, array in arrays().items():
        assert flat[name].dtype.numpy == array.dtype
        assert np.array_equal(flat[name].numpy(), array)
    assert tree["columns"].tolist() == [[0, 1, 0], [0, 0, 1]]


def test_elements_are_aligned_in_the_file(tmp_path: Path) -> None:
    tree: Any = {name: pt.asarray(array) for name, array in arrays().items()}
    path = pr.NpzRecorder(pr.KeepPrecision).record(tree, tmp_path / "a")
    for where, tensor in pr.inspect(path).tensors():
        assert tensor.numpy().ctypes.data % 64 == 0, where


def test_names_that_would_leave_a_folder_are_escaped() -> None:
    tree: Any = {"../up": {"a/b": pt.asarray([1.0])}, "c\\d\0": pt.asarray([2.0]), "%2F": 1}
    data = pr.NpzRecorder().to_bytes(tree)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert not [name for name in archive.namelist() if set(name) & set("/\\\0")]
    found = pr.NpzRecorder().from_bytes(data)
    assert found["../up"]["a/b"].tolist() == [1.0]
    assert found["c\\d\0"].tolist() == [2.0]


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return out.getvalue()


def npy(header: str, data: bytes = bytes(8), size: int | None = None) -> bytes:
    length = len(header) if size is None else size
    return b"\x93NUMPY\1\0" + struct.pack("<H", length) + header.encode() + data


def described(descr: str = "'<f4'", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


GOOD = npy(described())
OBJECTS = io.BytesIO()
np.save(OBJECTS, np.array([print], dtype=object), allow_pickle=True)
HOSTILE: list[tuple[bytes, str]] = [
    (b"PK\3\4a.npy", "not a zip file"),
    (archive(("a.npy", GOOD))[:-1], "not a zip file"),
    (archive(("a.npy", GOOD)) + b"x", "behind the end"),
    (archive(("a.npy", GOOD), ("b.txt", b"hello")), "no array"),
    (archive(("a.npy", GOOD), ("../b.npy", GOOD)), "leaves its folder"),
    (archive(("a.npy", GOOD), ("/b.npy", GOOD)), "leaves its folder"),
    (archive(("a.npy", OBJECTS.getvalue())), "not read"),
    (archive(("a.npy", npy(described("[('x', '<f4')]")))), "not read"),
    (archive(("a.npy", npy(described("'>c8'")))), "not read"),
    (archive(("a.npy", npy(described(shape="(3,)")))), "size of a.npy"),
    (archive(("a.npy", npy(described(shape="(-2,)")))), "shape"),
    (archive(("a.npy", npy(described(shape="(2**40,)")))), "header of a.npy"),
    (archive(("a.npy", npy(described(shape=f"({2**62}, {2**62})")))), "impossibly"),
    (archive(("a.npy", npy(described(order="1")))), "header of a.npy"),
    (archive(("a.npy", npy("__import__('os').system('true')"))), "header of a.npy"),
    (archive(("a.npy", npy("(" * 3000))), "header of a.npy"),
    (archive(("a.npy", npy(described(), size=60_000))), "too long"),
    (archive(("a.npy", b"\x93NUMPY")), "no array"),
    (archive(("__phlox__.npy", GOOD)), "no text"),
]


@pytest.mark.parametrize(
    "array",
    [
        np.array([1 + 2j]),
        np.array([[None, 1]], dtype=object),
        np.array(["text"]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=[("x", "f4")]),
        np.ones(2, np.longdouble),
        np.ones(2, ml_dtypes.float8_e4m3fn),
    ],
    ids=lambda array: str(array.dtype),
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_array_of_another_type_spoils_only_itself(save: Any, array: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", a=np.arange(3), b=array)
    tree = pr.NpzRecorder().open(tmp_path / "a")
    assert tree["a"].numpy().tolist() == [0, 1, 2]
    assert tree["b"].shape == array.shape
    with pytest.raises(pr.RecordError, match="not read"):
        tree["b"].numpy()
    with pytest.raises(pr.RecordError, match=r"not read \(at b\)"):
        pr.load(tmp_path / "a.npz")


def test_an_archive_without_arrays_is_an_empty_record(tmp_path: Path) -> None:
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz")
        assert pr.load(tmp_path / "a.npz") == pr.NpzRecorder().load(tmp_path / "a") == {}


@pytest.mark.parametrize("code", [">f2", ">f4", ">f8", ">i2", ">i8", ">u4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_big_endian_machines_are_read(code: str, order: Any, tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3).astype(code, order=order)
    np.savez(tmp_path / "a.npz", a=array)
    found = pr.NpzRecorder().load(tmp_path / "a", device=pt.Numpy(), dtype="stored")["a"]
    assert found.dtype.name == array.dtype.name
    assert found.tolist() == array.tolist()


@pytest.mark.parametrize(("data", "says"), HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_hostile_files(data: bytes, says: str) -> None:
    with pytest.raises(pr.RecordError, match=says):
        pr.NpzRecorder().from_bytes(data)


def test_a_bomb_stops_at_the_cap() -> None:
    bomb = archive(("a.npy", npy(described(), bytes(64 << 20))), method=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    with pytest.raises(pr.RecordError, match="at most 1,048,576 bytes"):
        pr.NpzRecorder(limits=pr.Limits(inflated_bytes=1 << 20)).from_bytes(bomb)


def test_members_that_overlap_are_refused() -> None:
    data = bytearray(archive(("a.npy", GOOD), ("b.npy", GOOD)))
    first, second = data.index(b"PK\1\2"), data.rindex(b"PK\1\2")
    data[second + 42 : second + 46] = data[first + 42 : first + 46]  # both lie where `a.npy` does
    with pytest.raises(pr.RecordError, match="another member where it lies"):
        pr.NpzRecorder().from_bytes(data)
    data[second + 46 : second + 51] = b"a.npy"
    with pytest.raises(pr.RecordError, match="stands twice"):
        pr.NpzRecorder().from_bytes(data)


def test_a_changed_byte_is_refused_or_harmless() -> None:
    tree: Any = {"a": pt.asarray([1, 2]), "b": {"c": pt.asarray([True, False])}, "n": 3}
    recorder = pr.NpzRecorder()
    data = bytearray(recorder.to_bytes(tree))
    refused = 0
    for at in range(len(data)):
        data[at] ^= 0x80
        try:
            found = recorder.from_bytes(data)
            assert found["n"] == 3, at  # a byte that means nothing: padding, a date
            assert (found["a"].tolist(), found["b"]["c"].tolist()) == ([1, 2], [True, False])
        except pr.RecordError:
            refused += 1
        data[at] ^= 0x80
    assert refused > len(data) // 2
