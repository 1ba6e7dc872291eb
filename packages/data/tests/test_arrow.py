"""Arrow and Parquet as datasets: the values that pyarrow says, null, and files that are broken."""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import phlox_data as data
import phlox_tensor as pt

pa: Any = pytest.importorskip("pyarrow", reason="an extra of the package")
pq: Any = pytest.importorskip("pyarrow.parquet", reason="an extra of the package")


def ipc(folder: Path, table: Any, size: int, **settings: Any) -> data.Dataset[Any]:
    with pa.ipc.new_file(str(folder / "a.arrow"), table.schema) as made:
        made.write_table(table, max_chunksize=size)
    return data.arrow(folder / "a.arrow", **settings)


def stream(folder: Path, table: Any, size: int, **settings: Any) -> data.Dataset[Any]:
    with pa.ipc.new_stream(str(folder / "a.arrow"), table.schema) as made:
        made.write_table(table, max_chunksize=size)
    return data.arrow(f"{folder}/*.arrow", **settings)


def groups(folder: Path, table: Any, size: int, **settings: Any) -> data.Dataset[Any]:
    pq.write_table(table, folder / "a.parquet", row_group_size=size)
    return data.parquet(folder / "a.parquet", **settings)


WRITERS = [ipc, stream, groups]


def table(count: int = 53) -> Any:
    rng = np.random.default_rng(0)
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6 * count, dtype="u1")), 3)
    columns = {
        "half": pa.array(rng.normal(size=count).astype(np.float16)),
        "whole": pa.array(rng.integers(0, 99, count), "int32"),
        "truth": pa.array(rng.random(count) > 0.5),
        "text": pa.array([f"é{i}" for i in range(count)]),
        "bytes": pa.array([bytes([i]) for i in range(count)]),
        "word": pa.array([f"w{i % 3}" for i in range(count)]).dictionary_encode(),
        "square": pa.FixedSizeListArray.from_arrays(pairs, 2),
        "map": pa.array([{"a": i, "b": [i]} for i in range(count)]),
    }
    return pa.table(columns)


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("size", [1, 7, 100])
def test_rows_are_those_of_pyarrow(write: Any, size: int, tmp_path: Path) -> None:
    rows = write(tmp_path, table(), size)
    wanted = table().to_pylist()
    assert len(rows) == 53
    assert [{name: plain(value) for name, value in row.items()} for row in rows] == wanted
    one = [*data.DataLoader(rows, 10, shuffle=True)]
    many = [*data.DataLoader(pickle.loads(pickle.dumps(rows)), 10, shuffle=True, workers=3)]
    for first, second in zip(one, many, strict=True):
        assert {n: plain(v) for n, v in first.items()} == {n: plain(v) for n, v in second.items()}
    batch = data.DataLoader(rows, 53).at(0, 0)
    assert batch["square"].shape == (53, 2, 3)
    types = [batch[name].dtype for name in ("half", "whole", "truth", "square")]
    assert types == ["float16", "int32", "bool", "uint8"]
    assert batch["text"][7] == "é7"
    assert batch["word"][:4] == ["w0", "w1", "w2", "w0"]


@pytest.mark.parametrize("write", WRITERS)
def test_lists_of_numbers_are_arrays_of_any_length(write: Any, tmp_path: Path) -> None:
    lists = [[1, 2, 3], [], [4], [5, 6]]
    rows = write(tmp_path, pa.table({"x": pa.array(lists, pa.large_list(pa.int16()))}), 3)
    assert [row["x"].tolist() for row in rows] == lists
    padded = data.DataLoader(rows, 4, collate=data.pad(-1)).at(0, 0)["x"]
    assert padded.dtype == np.int16
    assert padded.tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1], [5, 6, -1]]
    with pytest.raises(data.RaggedError, match=r"'x'.*\n.*data\.pad"):
        data.DataLoader(rows, 4).at(0, 0)


@pytest.mark.parametrize("write", WRITERS)
def test_null_is_an_error_or_nan(write: Any, tmp_path: Path) -> None:
    holes = pa.table(
        {
            "whole": [1, 2, None, 4],
            "float": [0.5, None, 1.5, 2.5],
            "truth": [True, False, None, True],
            "pair": pa.array([[1, 2], None, [3, None], [5, 6]], pa.list_(pa.int8(), 2)),
            "list": pa.array([[1], None, [2, None], []]),
            "text": ["a", None, "c", "d"],
            "full": [1, 2, 3, 4],
        }
    )
    for name in holes.column_names[:-1]:
        with pytest.raises(data.DataError, match=rf"'{name}' lacks values .*\n.*missing=\"nan\""):
            list(write(tmp_path, holes.select([name, "full"]), 2))
    rows = write(tmp_path, holes, 2, missing="nan")
    values = [*rows]
    nan = np.float32("nan")
    assert (
        repr([plain(v["pair"]) for v in values])
        == "[[1.0, 2.0], [nan, nan], [3.0, nan], [5.0, 6.0]]"
    )
    assert [v["list"].tolist() for v in values][::3] == [[1.0], []]
    assert [v["text"] for v in values] == ["a", None, "c", "d"]
    batch = data.DataLoader(rows.map(lambda row: row | {"list": 0}), 4).at(0, 0)
    assert np.array_equal(batch["whole"], np.array([1, 2, nan, 4]), equal_nan=True)
    assert np.array_equal(batch["truth"], np.array([1, 0, nan, 1], np.float32), equal_nan=True)
    assert (batch["whole"].dtype, batch["truth"].dtype) == (np.float64, np.float32)
    assert (batch["float"].dtype, batch["full"].dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("nested", [False, True])
def test_pictures_are_decoded(write: Any, nested: bool, tmp_path: Path) -> None:
    file = BytesIO()
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    Image.fromarray(pixels).save(file, "png")
    cells: list[Any] = [file.getvalue(), b"no picture"]
    if nested:
        cells = [{"bytes": cell, "path": "x.png"} for cell in cells]
    given = pa.table({"image": cells, "label": [1, 2]})
    rows = write(tmp_path, given, 2, images=["image"])
    assert rows[0]["image"].tolist() == pixels.transpose(2, 0, 1).tolist()
    with pytest.raises(data.DataError, match="image is no whole picture"):
        rows[1]
    with pytest.raises(data.DataError, match="'label' holds no bytes"):
        write(tmp_path, given, 2, images=["label"])[0]
    with pytest.raises(pt.ArgumentError, match="no such column: got x, expected image, label"):
        write(tmp_path, given, 2, images=["x"])


@pytest.mark.parametrize("write", WRITERS)
def test_columns_are_chosen(write: Any, tmp_path: Path) -> None:
    rows = write(tmp_path, table(), 10, columns=["text", "whole"])
    assert set(rows[0]) == {"text", "whole"}
    with pytest.raises(pt.ArgumentError, match="has no such column: got 'x', expected half, whole"):
        write(tmp_path, table(), 10, columns=["x"])
    with pytest.raises(pt.ArgumentError, match="no such choice of missing"):
        write(tmp_path, table(), 10, missing="drop")


@pytest.mark.parametrize("write", WRITERS)
def test_numbers_beyond_floats_are_refused_beside_null(write: Any, tmp_path: Path) -> None:
    with pytest.raises(data.DataError, match="'x' holds what float64 does not"):
        list(write(tmp_path, pa.table({"x": [2**60 + 1, None]}), 2, missing="nan"))


def test_a_missing_extra_is_caught_by_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for kind in (data.DataError, ModuleNotFoundError):
        with pytest.raises(kind, match=r'pip install "phlox-data\[arrow\]"'):
            data.parquet(__file__)


@pytest.mark.parametrize("write", WRITERS)
def test_broken_files_are_named(write: Any, tmp_path: Path) -> None:
    write(tmp_path, table(), 10)
    (file,) = tmp_path.iterdir()
    read = data.parquet if write is groups else data.arrow
    whole = file.read_bytes()
    for content in (b"no such file", whole[: len(whole) // 2], whole[:5]):
        file.write_bytes(content)
        with pytest.raises(data.DataError, match=rf"{file.name} is no whole"):
            list(read(file))
    with pytest.raises(data.DataError, match="no such files"):
        read(f"{tmp_path}/*.nothing")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


def test_row_groups_are_read_once_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = groups(tmp_path, table(60), 10, kept=2)
    read: list[int] = []
    old = pq.ParquetFile.read_row_group

    def noted(file: Any, group: int, columns: Any) -> Any:
        read.append(group)
        return old(file, group, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    loader = data.DataLoader(pickle.loads(pickle.dumps(rows)), 5, shuffle=data.Blocks(10))
    assert sorted(int(w) for b in loader for w in b["whole"]) == sorted(
        table(60)["whole"].to_pylist()
    )
    assert sorted(read) == [0, 1, 2, 3, 4, 5]


def test_several_files_are_one_dataset(tmp_path: Path) -> None:
    for part in range(3):
        (tmp_path / str(part)).mkdir()
        ipc(tmp_path / str(part), pa.table({"x": [part, part + 10]}), 1)
    rows = data.arrow(f"{tmp_path}/*/a.arrow")
    assert [int(row["x"]) for row in rows] == [0, 10, 1, 11, 2, 12]


@pytest.mark.parametrize("write", WRITERS)
def test_files_of_other_columns_or_types_are_refused(write: Any, tmp_path: Path) -> None:
    def two(first: Any, second: Any, **settings: Any) -> data.Dataset[Any]:
        for name, given in (("first", first), ("second", second)):
            (tmp_path / name).mkdir(exist_ok=True)
            write(tmp_path / name, given, 2)
        read = data.parquet if write is groups else data.arrow
        return read(f"{tmp_path}/*/a.*", **settings)

    whole = pa.table({"x": [1, 2], "y": [1, 2]})
    floats = pa.table({"x": [3.5, 4.5], "y": [3, 4]})
    with pytest.raises(data.DataError, match=r"second.*first.*'x' of double.*'x' of int64") as told:
        two(whole, floats)
    assert "columns=['y'])" in str(told.value)
    assert [row["y"] for row in two(whole, floats, columns=["y"])] == [1, 2, 3, 4]
    narrow = pa.table({"x": pa.array([3, 4], "int32"), "y": [3, 4]})
    for first, second in ((whole, narrow), (narrow, whole)):
        with pytest.raises(data.DataError, match=r"second.*'x' of int\d\d.*'x' of int\d\d"):
            two(first, second)
    with pytest.raises(data.DataError, match="got no 'y', expected 'y' of int64"):
        two(whole, whole.select(["x"]))
    with pytest.raises(data.DataError, match="got 'y' of int64, expected no 'y'"):
        two(whole.select(["x"]), whole)
    lists = pa.table({"x": pa.array([[1], [2]], pa.list_(pa.int8(), 1)), "y": [1, 2]})
    longer = pa.table({"x": pa.array([[1, 2], [2, 3]], pa.list_(pa.int8(), 2)), "y": [1, 2]})
    with pytest.raises(data.DataError, match=r"'x' of fixed_size_list<int8>\[2\]"):
        two(lists, longer)


def test_files_whose_values_are_alike_need_not_keep_them_alike(tmp_path: Path) -> None:
    words = pa.array(["a", "b"])
    lists = [pa.list_(pa.field("item", pa.int8(), nullable=False)), pa.large_list(pa.int8())]
    for place, text in enumerate([words.dictionary_encode(), words.cast("large_string")]):
        (tmp_path / str(place)).mkdir()
        columns = {"text": text, "list": pa.array([[1], [2, 3]], lists[place])}
        names = ["text", "list"][:: 1 - 2 * place]
        ipc(tmp_path / str(place), pa.table(columns).select(names), 2)
    rows = data.arrow(f"{tmp_path}/*/a.arrow")
    assert [row["text"] for row in rows] == ["a", "b"] * 2
    assert [row["list"].tolist() for row in rows] == [[1], [2, 3]] * 2


def test_the_row_group_that_was_not_used_for_longest_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = groups(tmp_path, table(30), 10, kept=2)  # opening reads the first group
    read: list[int] = []
    old = pq.ParquetFile.read_row_group

    def noted(file: Any, group: int, columns: Any) -> Any:
        read.append(group)
        return old(file, group, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    for index in (10, 0, 20, 0, 20, 10):
        rows[index]
    assert read == [1, 2, 1]
