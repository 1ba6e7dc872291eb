"""Arrow and Parquet: rows of record batches and of row groups, found without reading the others."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from itertools import accumulate, count
from threading import Lock
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError
from phlox_tensor.needed import MissingPackageError, needing

from ._dataset import Dataset
from ._errors import DataError, require_missing
from ._images import decoded
from ._items import Draw, Indices, Items, part_of
from ._text import Paths, found_files

_MAGIC: Final = b"ARROW1"


class _Block(NamedTuple):
    """Rows that lie together in a file."""

    path: str
    group: int
    rows: int


class _Schema(NamedTuple):
    """What the columns of a file hold."""

    path: str
    kinds: dict[str, str]


class _Lists(NamedTuple):
    """Rows of any length, one after the other."""

    ends: NDArray[Any]
    values: NDArray[Any]


class _How(NamedTuple):
    """What was asked for."""

    op: str
    columns: Sequence[str] | None
    missing: str
    images: Sequence[str]
    kept: int  # blocks that stay in memory


@final
class Blocks(Items):
    """Rows of blocks, each of which is read when one of its rows is wanted."""

    fetches = True

    def __init__(self, paths: list[str], how: _How) -> None:
        self._paths, self._how = paths, how
        self._blocks, self._wide = (_parquet if how.op == "parquet" else _ipc)(paths, how)
        self._ends = [*accumulate(block.rows for block in self._blocks)]
        self._fresh()
        first = self._columns(0) if len(self) else {}
        for name in how.images if first else ():
            if name not in first:
                expected = ", ".join(first)
                raise ArgumentError(how.op, "no such column", got=name, expected=expected)
        ragged = any(isinstance(column, _Lists) for column in first.values())
        self.gathers = not ragged and not how.images

    def _fresh(self) -> None:
        self._open: dict[int, dict[str, Any]] = {}
        self._used: dict[int, int] = {}
        self._clock = count()
        self._maps: dict[str, Any] = {}
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        left = {"_open", "_used", "_clock", "_maps", "_lock"}
        return {name: value for name, value in vars(self).items() if name not in left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._fresh()

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        part, row = part_of(self._ends, index)
        columns = self._columns(part).items()
        return {name: self._value(name, column, row) for name, column in columns}

    def fetch(self, indices: Indices, keys: Indices, draw: Draw) -> list[Any]:
        found: list[Any] = [None] * len(indices)
        for place in np.argsort(indices, kind="stable").tolist():  # each block once
            found[place] = self.get(int(indices[place]), int(keys[place]), draw)
        return found

    def gather(self, indices: Indices) -> Any:
        found: dict[str, Any] = {}
        parts = np.searchsorted(self._ends, indices, "right")
        order = np.argsort(parts, kind="stable")
        begins = np.flatnonzero(np.diff(parts[order], prepend=-1)).tolist()
        for first, last in zip(begins, [*begins[1:], len(order)], strict=True):
            places = order[first:last]
            part = int(parts[places[0]])
            rows = indices[places] - (self._ends[part - 1] if part else 0)
            for name, column in self._columns(part).items():
                dense = isinstance(column, np.ndarray)
                if name not in found:
                    shape = (len(indices), *column.shape[1:]) if dense else len(indices)
                    found[name] = np.empty(shape, column.dtype if dense else object)
                found[name][places] = column[rows] if dense else column.take(rows).to_pylist()
        return {name: _plain(column) for name, column in found.items()}

    def _value(self, name: str, column: Any, row: int) -> Any:
        if isinstance(column, np.ndarray):
            return column[row]
        if isinstance(column, _Lists):
            return column.values[column.ends[row] : column.ends[row + 1]]
        value = column[row].as_py()
        if name not in self._how.images:
            return value
        content = value.get("bytes") if isinstance(value, dict) else value  # Hugging Face's way
        if not isinstance(content, bytes):
            what, got = f"{name!r} holds no bytes of a picture", f"{value!r:.60}"
            raise DataError(self._how.op, what, got=got)
        return decoded(BytesIO(content), name)

    def _columns(self, part: int) -> dict[str, Any]:
        self._used[part] = next(self._clock)
        found = self._open.get(part)
        if found is None:
            with self._lock:
                found = self._open.get(part) or self._read(self._blocks[part])
                self._open[part] = found
                while len(self._open) > self._how.kept:
                    self._open.pop(min(self._open, key=self._used.__getitem__))
        return found

    def _read(self, block: _Block) -> dict[str, Any]:
        how = self._how
        if how.op == "parquet":
            rows = _opened(block.path, how).read_row_group(block.group, how.columns)
            arrays = [column.combine_chunks() for column in rows.columns]
        else:
            if block.path not in self._maps:
                self._maps[block.path] = _batches(block.path, how)
            rows = self._maps[block.path][block.group]
            arrays = rows.columns
        found: dict[str, Any] = {}
        for name, array in zip(rows.schema.names, arrays, strict=True):
            if how.columns is None or name in how.columns:
                if how.missing == "error" and _holes(array):
                    where = f"{block.path}: {name!r} lacks values in block {block.group}"
                    hint = f'data.{how.op}(path, missing="nan")'
                    raise DataError(how.op, where, got=f"{_holes(array)} of null", hint=hint)
                kept = name in how.images
                try:
                    found[name] = array if kept else _column(array, wide=name in self._wide)
                except ValueError as error:  # of Arrow: it knows neither file nor column
                    what = f"{block.path}: {name!r} holds what float64 does not, beside null"
                    raise DataError(how.op, what, got=error) from error
        return found


class _NotInstalledError(DataError, MissingPackageError):
    """An extra is missing, which is caught by either name."""


def _plain(column: NDArray[Any]) -> Any:
    return column.tolist() if column.dtype == object else column


def _pyarrow(op: str) -> ModuleType:
    with needing(op, "phlox-data[arrow]", "pyarrow", error=_NotInstalledError):
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to load
    return pa


def _opened(path: str, how: _How) -> Any:
    pa = _pyarrow(how.op)
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - an extra, and slow to load

    try:
        return ParquetFile(path, memory_map=True)
    except pa.ArrowInvalid as error:
        raise DataError("parquet", f"{path} is no whole Parquet file", got=error) from error


def _parquet(paths: list[str], how: _How) -> tuple[list[_Block], set[str]]:
    """The row groups of files, and the columns of which some may lack values."""
    blocks, wide, schema = [], set(), None
    for path in paths:
        file = _opened(path, how)
        schema = _checked(how, file.schema_arrow, path, schema)
        for group in range(file.metadata.num_row_groups):
            told = file.metadata.row_group(group)
            blocks.append(_Block(path, group, told.num_rows))
            for place in range(told.num_columns):
                column = told.column(place)
                stats = column.statistics
                if stats is None or not stats.has_null_count or stats.null_count:
                    wide.add(column.path_in_schema.partition(".")[0])
    return blocks, wide if how.missing == "nan" else set()


def _batches(path: str, how: _How) -> list[Any]:
    """The record batches of a file, mapped into memory: of a file, or of a stream."""
    pa = _pyarrow(how.op)
    try:
        mapped = pa.memory_map(path)
        if mapped.read(len(_MAGIC)) == _MAGIC:
            file = pa.ipc.open_file(mapped)
            return [file.get_batch(place) for place in range(file.num_record_batches)]
        mapped.seek(0)
        return [*pa.ipc.open_stream(mapped)]
    except (pa.ArrowInvalid, EOFError) as error:
        raise DataError("arrow", f"{path} is no whole Arrow file", got=error) from error


def _ipc(paths: list[str], how: _How) -> tuple[list[_Block], set[str]]:
    """The record batches of files, and the columns of which some lack values."""
    blocks, wide, schema = [], set(), None
    for path in paths:
        for group, batch in enumerate(_batches(path, how)):
            if not group:
                schema = _checked(how, batch.schema, path, schema)
            blocks.append(_Block(path, group, batch.num_rows))
            pairs = zip(batch.schema.names, batch.columns, strict=True)
            wide |= {name for name, array in pairs if _holes(array)}
    return blocks, wide if how.missing == "nan" else set()


def _checked(how: _How, schema: Any, path: str, first: _Schema | None) -> _Schema:
    """The schema of the first file, which is that of all: their rows go into the same arrays."""
    kinds = dict(zip(schema.names, map(_values, schema.types), strict=True))
    for name in how.columns or ():
        if name not in kinds:
            got, expected = repr(name), ", ".join(kinds)
            raise ArgumentError(how.op, f"{path} has no such column", got=got, expected=expected)
    first = first or _Schema(path, kinds)
    alike = [name for name, kind in kinds.items() if kind == first.kinds.get(name)]
    for name in how.columns or {**first.kinds, **kinds}:
        if name not in alike:
            what = f"{path} has not the columns of {first.path}"
            got, expected = (
                f"{name!r} of {each[name]}" if name in each else f"no {name!r}"
                for each in (kinds, first.kinds)
            )
            hint = f"data.{how.op}(paths, columns={alike})" if alike else None
            raise DataError(how.op, what, got=got, expected=expected, hint=hint)
    return first


def _values(kind: Any) -> str:
    """What values are, whatever keeps them and whatever parts of lists are called."""
    if _kind(kind) == "dictionary":
        return _values(kind.value_type)
    if "list" in _kind(kind):
        size = f"[{kind.list_size}]" if hasattr(kind, "list_size") else ""
        name = _kind(kind).removeprefix("large_")
        return f"{name}<{_values(kind.value_type)}>{size}"
    return str(kind).removeprefix("large_")


def _holes(array: Any) -> int:
    """How many values of an array are missing, those in lists among them."""
    array = getattr(array, "storage", array)
    inner = _holes(array.flatten()) if "list" in _kind(array.type) else 0
    return int(array.null_count) + inner


def _kind(kind: Any) -> str:
    return str(kind).partition("<")[0]


def _is_number(kind: Any) -> bool:
    return _kind(kind).rstrip("0123456789") in {
        "bool",
        "double",
        "float",
        "halffloat",
        "int",
        "uint",
    }


def _column(array: Any, *, wide: bool) -> Any:
    """A column as an array, where its rows are numbers of one shape, or as lists of numbers."""
    shape = tuple(getattr(array.type, "shape", ()))  # of a tensor
    array = getattr(array, "storage", array)
    if hasattr(array, "dictionary_decode"):
        array = array.dictionary_decode()
    kind = _kind(array.type)
    if _is_number(array.type):
        return _numbers(array, wide=wide)
    if kind == "fixed_size_list":
        size = array.type.list_size
        inner = array.values[array.offset * size : (array.offset + len(array)) * size]
        values = _column(inner, wide=wide)
        if isinstance(values, np.ndarray):
            rows = values.reshape(len(array), *(shape or (size, *values.shape[1:])))
            if array.null_count:  # what lies there instead is nobody's
                rows = rows.copy()
                rows[array.is_null().to_numpy(zero_copy_only=False)] = np.nan
            return rows
    if kind in ("list", "large_list") and _is_number(array.type.value_type):
        return _Lists(array.offsets.to_numpy(), _numbers(array.values, wide=wide))
    return array


def _numbers(array: Any, *, wide: bool) -> NDArray[Any]:
    floats, bits = _kind(array.type) in ("double", "float", "halffloat"), array.type.bit_width
    if array.null_count and not floats:
        array = array.cast("float64")
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    if floats or not wide:
        return found
    # float32 does not hold every whole number of 32 bits.
    return found.astype(np.float64 if bits >= 32 else np.float32)


def arrow(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    missing: Literal["error", "nan"] = "error",
    images: Sequence[str] = (),
) -> Dataset[Any]:
    """Return the rows of Arrow files, of datasets of Hugging Face among them, as dicts by column.

    Files are mapped into memory, and nothing of them is copied before a batch is made. Numbers are
    those of NumPy, lists of numbers arrays; a batch without lists of any length is one gather.
    Needs pyarrow: ``pip install "phlox-data[arrow]"``.

    Args:
        paths: a file, several, or a pattern such as ``"data/*.arrow"``, whose files are sorted.
        columns: those that are wanted; all by default.
        missing: what null is: an error, or NaN among numbers, which makes whole ones floats, an
            empty list of numbers, and None elsewhere.
        images: columns of encoded pictures, which become uint8 (channels, height, width).

    Raises:
        DataError: for a file that is no whole Arrow file, and one whose columns, or their types,
            are others than those of the first; for null, from its rows too.

    Example:
        >>> import pyarrow as pa, tempfile
        >>> table = pa.table({"x": [1.5, 2.5], "name": ["a", "b"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with pa.ipc.new_file(f"{folder}/a.arrow", table.schema) as made:
        ...         made.write_table(table)
        ...     arrow(f"{folder}/a.arrow")[1]
        {'x': np.float64(2.5), 'name': 'b'}
    """
    return _rows(paths, _How("arrow", columns, missing, images, 1 << 40))


def parquet(
    paths: Paths,
    *,
    columns: Sequence[str] | None = None,
    missing: Literal["error", "nan"] = "error",
    images: Sequence[str] = (),
    kept: int = 4,
) -> Dataset[Any]:
    """Return the rows of Parquet files, as dicts by column, as ``arrow`` does.

    A row group is unpacked as a whole, so orders that jump among more of them than are kept read
    them again and again: ``shuffle=data.Blocks(size)``, of the rows in a group, reads each once.

    Args:
        paths: a file, several, or a pattern such as ``"data/*.parquet"``, whose files are sorted.
        columns: those that are wanted; others are not read.
        missing: as of ``arrow``.
        images: as of ``arrow``.
        kept: how many row groups stay in memory.

    Raises:
        DataError: as of ``arrow``.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pa.parquet.write_table(pa.table({"x": [[1, 2], [3, 4]]}), f"{folder}/a.parquet")
        ...     parquet(f"{folder}/*.parquet")[1]["x"].tolist()
        [3, 4]
    """
    if type(kept) is not int or kept < 1:
        raise ArgumentError("parquet", "kept is no such number", got=kept, expected="1 or more")
    return _rows(paths, _How("parquet", columns, missing, images, kept))


def _rows(paths: Paths, how: _How) -> Dataset[Any]:
    require_missing(how.op, how.missing)
    _pyarrow(how.op)
    return Dataset(Blocks(found_files(paths, how.op), how))
