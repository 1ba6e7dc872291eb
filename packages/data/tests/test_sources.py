"""Files as datasets, and files that are not what their readers take."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phlox_data as data
import phlox_tensor as pt

# IDX


def idx_bytes(array: Any, code: int, dtype: str) -> bytes:
    array = np.asarray(array)
    head = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(dtype).tobytes()


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_files_of_every_type_are_read(code: int, dtype: str, pack: Any, tmp_path: Path) -> None:
    wanted = np.arange(24).reshape(2, 3, 4)
    (tmp_path / "f").write_bytes(pack(idx_bytes(wanted, code, dtype)))
    found = data.read_idx(tmp_path / "f")
    assert found.shape == (2, 3, 4)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert found.tolist() == wanted.tolist()


def test_a_folder_of_mnist_has_two_parts(tmp_path: Path) -> None:
    for part, count, name in (("train", 3, "{}-{}"), ("t10k", 2, "{}.{}")):
        images = idx_bytes(np.ones((count, 28, 28)), 8, "u1")
        labels = idx_bytes(np.arange(count), 8, "u1")
        (tmp_path / name.format(f"{part}-images", "idx3-ubyte.gz")).write_bytes(
            gzip.compress(images)
        )
        (tmp_path / name.format(f"{part}-labels", "idx1-ubyte")).write_bytes(labels)
    train, test = data.idx(tmp_path)
    assert (len(train), len(test)) == (3, 2)
    batch = data.DataLoader(train, 2).at(0, 1)
    assert batch["image"].shape == (1, 28, 28)
    assert batch["image"].dtype == np.uint8
    assert batch["label"].tolist() == [2]
    assert batch["label"].dtype == np.int64
    (tmp_path / "t10k-images.idx3-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match="lacks t10k-images-idx3-ubyte"):
        data.idx(tmp_path)


WHOLE = idx_bytes(np.arange(6), 12, ">i4")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no IDX file"),
        (b"PK\x03\x04", "no IDX file: got 50 4b 03 04"),
        (bytes([0, 0, 7, 1]), "no IDX file"),
        (WHOLE[:6], "cut off"),
        (WHOLE[:-1], r"cut off or longer: got 23, expected 24 bytes of \(6,\) int32"),
        (WHOLE + b"\0", "got more than 24"),
        (bytes([0, 0, 8, 2]) + b"\xff" * 8, "cut off"),
        (gzip.compress(WHOLE, mtime=0)[:-9], "gzip"),
        (gzip.compress(WHOLE, mtime=0)[:12] + b"\0" * 9, "gzip"),
    ],
)
def test_broken_idx_files_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(data.DataError, match=said):
        data.read_idx(tmp_path / "f")


# NPZ


def test_archives_of_numpy_are_read_by_name(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.eye(3), y=np.arange(3))
    rows = data.npz(tmp_path / "a.npz")
    assert len(rows) == 3
    assert rows[1]["x"].tolist() == [0, 1, 0]


def test_other_archives_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, x=np.array([{}], object))
    with pytest.raises(data.DataError, match="no archive of plain arrays: got Object arrays"):
        data.npz(file)
    np.savez(file, x=np.eye(30))
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(data.DataError, match="no archive"):
        data.npz(file)
    np.save(tmp_path / "b.npy", np.eye(3))
    with pytest.raises(data.DataError, match=r"holds one array\nhint: data\.arrays"):
        data.npz(tmp_path / "b.npy")
    np.savez(file)
    with pytest.raises(data.DataError, match=r"a\.npz holds no arrays"):
        data.npz(file)
    np.savez(file, x=np.eye(3), y=np.eye(2))
    with pytest.raises(pt.ShapeError, match="got 2 of y, expected 3 of x"):
        data.npz(file)


# CSV


def table(folder: Path, content: str, **settings: Any) -> data.Dataset[Any]:
    (folder / "t.csv").write_bytes(content.encode(settings.pop("write", "utf-8")))
    return data.csv(folder / "t.csv", **settings)


@pytest.mark.parametrize(
    ("cells", "dtype"),
    [
        (["1", "-2", "+3"], "int64"),
        (["1", "2.5", ".5"], "float32"),
        (["1e3", "inf", "nan"], "float32"),
        ([" 1", "2 ", "3"], "int64"),
        (["1_0", "2_0", "3_0"], None),
        (["01234", "02345", "09999"], None),
        (["a", "b", "3"], None),
        (["", "", ""], None),
        (["-", "+", "-"], None),
        (["٣", "٤", "٣"], None),
    ],
)
def test_columns_find_their_type(cells: list[str], dtype: str | None, tmp_path: Path) -> None:
    rows = table(tmp_path, "n,x\n" + "".join(f"0,{cell}\n" for cell in cells))
    column = data.DataLoader(rows, 3).at(0, 0)["x"]
    if dtype is None:
        assert column == cells
    else:
        assert column.dtype == dtype
        assert np.array_equal(column, np.array([*map(float, cells)], dtype), equal_nan=True)


def test_quotes_marks_of_order_and_blank_lines_are_no_content(tmp_path: Path) -> None:
    rows = table(tmp_path, '\ufeffname;x\r\n"a;""b""\n c";1\r\n\r\nd;2\r\n', delimiter=";")
    assert [row["name"] for row in rows] == ['a;"b"\n c', "d"]
    assert [int(row["x"]) for row in rows] == [1, 2]


def test_names_are_given_where_a_file_has_none(tmp_path: Path) -> None:
    rows = table(tmp_path, "1,2\n3,4\n", names=["a", "b"])
    assert len(rows) == 2
    assert rows[0] == {"a": 1, "b": 2}


def test_missing_numbers_are_an_error_or_nan(tmp_path: Path) -> None:
    content = "x,y,name\n1,2,\n,3,b\n4,NA,c\n"
    with pytest.raises(data.DataError, match=r"t\.csv:3: a cell of 'x' .*''.*\n.*=\"nan\""):
        table(tmp_path, content)
    batch = data.DataLoader(table(tmp_path, content, missing="nan"), 3).at(0, 0)
    assert np.isnan(batch["x"]).tolist() == [False, True, False]
    assert np.isnan(batch["y"]).tolist() == [False, False, True]
    assert batch["name"] == ["", "b", "c"]
    with pytest.raises(data.DataError, match="expected a number"):
        table(tmp_path, content, missing="nan", types={"x": "int64"})


@pytest.mark.parametrize(
    ("content", "settings", "said"),
    [
        ("a,b\n1,2\n3\n", {}, r":3 has another number of cells: got 1, expected 2"),
        ("a,b\n1,2,3\n", {}, r":2 has another number of cells: got 3, expected 2"),
        ("a,a\n1,2\n", {}, "a name twice: got a, a"),
        ("", {}, "no rows: got an empty file"),
        ("a,b\n", {}, "no rows: got a head alone: a, b"),
        ("a;b\n1;2\n3;4\n", {}, r"one column: got 'a;b'\nhint: data\.csv\(path, delimiter=';'\)"),
        ("a\tb\n1\t2\n", {}, "one column"),
        ("k\nx\nz\n", {"label": "k", "classes": ["x", "y"]}, ":3: a label of 'k' is no class"),
        ('a\n"1\n', {}, "no table"),
        ("a\n1\n2\nx3\n", {}, r":4: a cell of 'a' .*got 'x3'.*\n.*types=\{\"a\": \"text\"\}"),
        ("a\n1\n2\n1,5\n", {"delimiter": ";"}, "got '1,5'"),
        ("a\n9223372036854775808\n", {}, "out of range"),
        ("a\n300\n", {"types": {"a": "uint8"}}, "out of range"),
        ("a\n0.5\n1e39\n", {}, r":3: .*got '1e39', expected within float32\n.*float64"),
        ("a\n1.5\n", {"types": {"a": "int64"}}, "got '1.5', expected a number of int64"),
        ("a,k\n1,\n", {"label": "k"}, r":2: the label 'k' is missing"),
        ("a,k\n1,x\n", {"vectors": {"v": ["a", "k"]}}, "'k' is text"),
    ],
)
def test_broken_tables_are_refused(
    content: str, settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(data.DataError, match=said):
        table(tmp_path, content, **settings)


def test_numbers_that_float32_does_not_hold_are_float64(tmp_path: Path) -> None:
    rows = table(tmp_path, "id,time,x\n16777217,1700000000.5,0.1\n,1.5,33554432.0\n", missing="nan")
    batch = data.DataLoader(rows, 2).at(0, 0)
    assert [batch[name].dtype for name in ("id", "time", "x")] == ["float64", "float64", "float32"]
    assert (batch["id"][0], batch["time"][0]) == (16777217, 1700000000.5)


def test_compressed_tables_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    with pytest.raises(data.DataError, match=r"t\.csv\.gz is compressed.*\nhint: gunzip"):
        data.csv(tmp_path / "t.csv.gz")


def test_another_encoding_is_said(tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match=r"encoding.*\nhint: data\.csv"):
        table(tmp_path, "a\né\n", write="cp1252")
    assert table(tmp_path, "a\né\n", write="cp1252", encoding="cp1252")[0]["a"] == "é"


def test_arguments_of_tables_that_name_nothing_are_refused(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [
        {"label": "z"},
        {"types": {"z": "text"}},
        {"vectors": {"v": ["z"]}},
    ]
    for each in settings:
        with pytest.raises(pt.ArgumentError, match="got 'z', expected a, b"):
            table(tmp_path, "a,b\n1,2\n", **each)
    with pytest.raises(pt.ArgumentError, match="missing"):
        table(tmp_path, "a,b\n1,2\n", missing="drop")


def test_labels_become_classes_and_columns_a_vector(tmp_path: Path) -> None:
    rows = table(tmp_path, "a,b,k\n1,2.5,+\n3,4,-\n5,6,+\n", label="k", vectors={"x": ["b", "a"]})
    assert rows.classes == ("+", "-")
    assert rows.split(0.5)[0].map(dict).classes == ("+", "-")
    batch = data.DataLoader(rows, 3).at(0, 0)
    assert set(batch) == {"k", "x"}
    assert batch["x"].dtype == np.float32
    assert batch["x"].tolist() == [[2.5, 1], [4, 3], [6, 5]]
    assert batch["k"].tolist() == [0, 1, 0]
    tests = table(tmp_path, "k\ny\n", label="k", classes=["x", "y"])
    assert (int(tests[0]["k"]), tests.classes) == (1, ("x", "y"))
    numbers = table(tmp_path, "k\n10\n9\n10\n", label="k")
    assert numbers.classes == ("9", "10")
    with pytest.raises(pt.ArgumentError, match=r"classes are those of a label.*\n.*label="):
        table(tmp_path, "k\ny\n", classes=["x", "y"])


# Lines


def test_lines_are_items(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes("\ufeffone\r\n\ntwo é".encode())
    (tmp_path / "a.txt").write_bytes(b"zero\n")
    (tmp_path / "empty.txt").write_bytes(b"")
    assert [*data.text(tmp_path / "b.txt")] == ["one", "", "two é"]
    assert [*data.text(f"{tmp_path}/*.txt")] == ["zero", "one", "", "two é"]
    assert [*data.text([tmp_path / "b.txt", tmp_path / "a.txt"])][-1] == "zero"
    assert len(data.text(tmp_path / "empty.txt")) == 0
    with pytest.raises(data.DataError, match="no such files"):
        data.text(f"{tmp_path}/*.md")


def test_values_of_json_are_items_by_line(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"x": [1, 2]}\n\n{"x": [3]}\n{"x": \n')
    values = data.jsonl(file)
    assert len(values) == 3
    assert values[1] == {"x": [3]}
    with pytest.raises(data.DataError, match=r"a\.jsonl:4 is no JSON"):
        values[2]
    (tmp_path / "b.jsonl").write_text('[\n{"x": 1}\n]\n')
    with pytest.raises(
        data.DataError, match=r"b\.jsonl:1 is no JSON.*\nhint: data\.of\(json\.load"
    ):
        data.jsonl(tmp_path / "b.jsonl")[0]
    loader = data.DataLoader(values.select([0, 1]), 2, workers=2, collate=data.pad(0))
    assert [b["x"].tolist() for b in loader] == [[[1, 2], [3, 0]]]


def test_bytes_that_are_no_text_are_named_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(data.DataError, match=r"a\.txt:2 is no UTF-8"):
        data.text(tmp_path / "a.txt")[1]


def test_a_file_that_became_shorter_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    lines = data.text(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_bytes(b"one\n")
    with pytest.raises(data.DataError, match=r"a\.txt:2: the file became shorter"):
        lines[1]


# Pictures


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, count in (("dog", 2), ("cat", 3), (".hidden", 1)):
        (tmp_path / name / "deep").mkdir(parents=True)
        for number in range(count):
            pixels = rng.integers(0, 255, (8, 10 + number, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / name / "deep" / f"{number}.PNG")
        (tmp_path / name / "notes.txt").write_text("no picture")
    return tmp_path


def test_folders_are_classes(pictures: Path) -> None:
    found = data.images(pictures)
    assert found.classes == ("cat", "dog")
    assert [int(item["label"]) for item in found] == [0, 0, 0, 1, 1]
    image = found[1]["image"]
    assert (image.dtype, image.shape) == (np.uint8, (3, 8, 11))
    own = np.asarray(Image.open(pictures / "cat" / "deep" / "1.PNG"))
    assert image.tolist() == own.transpose(2, 0, 1).tolist()


def test_pictures_are_resized_for_batches(pictures: Path) -> None:
    with pytest.raises(data.RaggedError, match="'image'"):
        data.DataLoader(data.images(pictures), 5).at(0, 0)
    one = data.DataLoader(data.images(pictures, size=(4, 6), mode="L"), 5, shuffle=True)
    many = data.DataLoader(data.images(pictures, size=(4, 6), mode="L"), 5, shuffle=True, workers=3)
    wanted, (found,) = one.at(0, 0), list(many)
    assert wanted["image"].shape == (5, 1, 4, 6)
    assert found["image"].tolist() == wanted["image"].tolist()


def test_pictures_are_turned_as_the_camera_says(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("L", (30, 20)).save(tmp_path / "a" / "turned.jpg", exif=exif)
    assert data.images(tmp_path, mode="L")[0]["image"].shape == (1, 30, 20)


@pytest.mark.parametrize("content", [b"", b"no picture", b"cut"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_picture_is_named(content: bytes, workers: int, pictures: Path) -> None:
    file = pictures / "cat" / "deep" / "2.PNG"
    file.write_bytes(file.read_bytes()[:200] if content == b"cut" else content)
    loader = data.DataLoader(data.images(pictures, size=(4, 4)), 2, workers=workers)
    with pytest.raises(data.DataError, match=r"2\.PNG is no whole picture") as caught:
        list(loader)
    assert caught.value.__notes__[0].startswith("item 2, batch 1 of epoch 0")


def test_deep_pictures_and_empty_folders_are_refused(pictures: Path, tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 40_000, np.uint16)).save(pictures / "cat" / "deep" / "0.PNG")
    with pytest.raises(data.DataError, match="more than 8 bits"):
        data.images(pictures)[0]
    (pictures / "owl").mkdir()
    with pytest.raises(data.DataError, match="'owl' has no pictures"):
        data.images(pictures)
    with pytest.raises(data.DataError, match="expected a folder for each class"):
        data.images(pictures / "owl")
    with pytest.raises(pt.ArgumentError, match="no such mode"):
        data.images(pictures, mode="CMYK")  # type: ignore[arg-type]
