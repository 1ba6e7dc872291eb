"""Archives and databases: items by name and key, faults by where they are."""

from __future__ import annotations

import io
import json
import sqlite3
import tarfile
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phlox_data as data
from phlox_data import DataError
from phlox_tensor import ArgumentError


def png() -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (4, 3), (1, 2, 3)).save(made, "png")
    return made.getvalue()


def npy() -> bytes:
    made = io.BytesIO()
    np.save(made, np.arange(3))
    return made.getvalue()


FILES = {
    "a/1.png": png(),
    "a/1.cls": b"3\n",
    "a/1.json": json.dumps({"by": "x"}).encode(),
    "a/2.png": png(),
    "a/2.mask.png": png(),
    "a/2.npy": npy(),
    "a/2.txt": "é".encode(),
    "a/2.bin": b"\0\1",
    "a/.hidden": b"",
    "README": b"",
}


def tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as made:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return path


def zipped(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


MAKERS = {
    "deflated": zipped,
    "stored": lambda path, files: zipped(path, files, zipfile.ZIP_STORED),
    "tar": tar,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_parts_of_one_name_are_one_item(tmp_path: Path, kind: str) -> None:
    first, second = data.archive(MAKERS[kind](tmp_path / "a", FILES))
    assert (first["key"], second["key"]) == ("a/1", "a/2")
    assert first["png"].shape == (3, 3, 4)
    assert first["png"][:, 0, 0].tolist() == [1, 2, 3]
    assert (first["cls"], first["json"]) == (3, {"by": "x"})
    assert second["mask.png"].shape == (3, 3, 4)
    assert second["npy"].tolist() == [0, 1, 2]
    assert (second["txt"], second["bin"]) == ("é", b"\0\1")


def test_shards_are_shuffled_and_read_by_threads(tmp_path: Path) -> None:
    for shard in range(3):
        files = {f"{i:03}.cls": str(i).encode() for i in range(shard * 10, shard * 10 + 10)}
        tar(tmp_path / f"s{shard}.tar", files)
    items = data.archive(f"{tmp_path}/*.tar").map(lambda item: item["cls"])
    assert [*items] == [*range(30)]
    batches = [
        [batch.tolist() for batch in data.DataLoader(items, 8, shuffle=True, workers=workers)]
        for workers in (0, 3)
    ]
    assert batches[0] == batches[1]
    assert sorted(item for batch in batches[0] for item in batch) == [*range(30)]


def test_a_part_called_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a part called key: got a/1\.key"):
        data.archive(tar(tmp_path / "a.tar", {"a/1.key": b"x", "a/1.cls": b"1"}))


def test_parts_of_tars_have_no_checksum_to_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tar(tmp_path / "a.tar", {"a/1.bin": b"x"})
    counted: list[bytes] = []
    monkeypatch.setattr(zlib, "crc32", counted.append)
    assert data.archive(file)[0]["bin"] == b"x"
    assert counted == []


def test_faults_of_archives_say_where_they_are(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a.zip", FILES, zipfile.ZIP_STORED).read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.zip is no whole tar or zip"):
        data.archive(cut)
    other = tmp_path / "other.zip"
    other.write_bytes(whole.replace(b"3\n", b"4\n", 1))
    with pytest.raises(DataError, match=r"a/1\.cls is corrupt: got another checksum"):
        data.archive(other)[0]
    files = {"a.txt": b"x", "b.txt": b"y"}
    whole = tar(tmp_path / "f.tar", files).read_bytes()
    for end in (1024, 1400, 2048):  # behind a file, within a header, behind the last file
        (tmp_path / "f.tar").write_bytes(whole[:end])
        with pytest.raises(DataError, match=r"f\.tar is no whole tar: .*\nhint: tar -rf"):
            data.archive(tmp_path / "f.tar")
    packed = tmp_path / "a.tar.gz"
    with tarfile.open(packed, "w:gz") as made:
        made.addfile(tarfile.TarInfo("a.txt"))
    with pytest.raises(DataError, match=r"is compressed.*\nhint: gunzip"):
        data.archive(packed)
    with pytest.raises(DataError, match=r"one\.cls is no \.cls"):
        data.archive(tar(tmp_path / "b.tar", {"one.cls": b"cat"}))[0]
    with pytest.raises(DataError, match=r"one\.png is no whole picture"):
        data.archive(tar(tmp_path / "c.tar", {"one.png": b"cat"}))[0]
    with pytest.raises(DataError, match="method 12, expected stored or deflated"):
        data.archive(zipped(tmp_path / "d.zip", {"a.txt": b"x"}, zipfile.ZIP_BZIP2))
    short = tar(tmp_path / "e.tar", {"a.txt": b"x" * 9000})
    items = data.archive(short)
    short.write_bytes(short.read_bytes()[:1000])
    with pytest.raises(DataError, match="became shorter"):
        items[0]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x REAL, name TEXT)")
        made.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, i / 2, f"n{i}") for i in range(20)])
    made.close()
    return path


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_of_a_query_are_items(database: Path, workers: int) -> None:
    query = "SELECT id, x FROM t WHERE id >= ? ORDER BY id DESC;"
    rows = data.sqlite(database, query, key="id", values=[5])
    assert len(rows) == 15
    assert rows[0] == {"id": 19, "x": 9.5}
    batch = next(iter(data.DataLoader(rows, 4, workers=workers)))
    assert batch["id"].tolist() == [19, 18, 17, 16]
    assert batch["x"].dtype == np.float32


def test_faults_of_databases_are_said(database: Path, tmp_path: Path) -> None:
    query = "SELECT * FROM t"
    wrong: list[tuple[Any, ...]] = [
        (database, "SELECT * FROM u", "id", "no such table: u"),
        (database, "SELECT x, 1 AS one FROM t", "one", "two rows have one one"),
    ]
    for path, asked, key, says in wrong:
        with pytest.raises(DataError, match=says):
            data.sqlite(path, asked, key=key)
    with pytest.raises(ArgumentError, match="no name of a column"):
        data.sqlite(database, query, key="id; DROP TABLE t")
    with pytest.raises(FileNotFoundError):
        data.sqlite(tmp_path / "none.db", query, key="id")
    other = tmp_path / "text.db"
    other.write_text("id,x\n1,2\n" * 100)
    with pytest.raises(DataError, match=r"not a database\nhint: data\.csv"):
        data.sqlite(other, query, key="id")
    rows = data.sqlite(database, query, key="id")
    with sqlite3.connect(database) as made:
        made.execute("DELETE FROM t WHERE id = 3")
    made.close()
    with pytest.raises(DataError, match="the row of key 3 is gone"):
        rows[3]


def test_a_database_that_is_locked_is_said(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, timeout=0.05))
    writer = connect(database)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DataError, match="locked\nhint: end the program that writes"):
        data.sqlite(database, "SELECT * FROM t", key="id")
    writer.close()


def test_names_that_lead_out_of_an_archive_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as made:
        made.writestr("a/../../../evil.txt", "x")
    with pytest.raises(data.DataError, match=r"a name that leads out of it: got a/\.\./\.\."):
        data.archive(tmp_path / "a.zip")
