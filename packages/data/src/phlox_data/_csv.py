"""Tables as text: the types of columns are found out, and what fits none is an error."""

from __future__ import annotations

import csv as _csv
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError

from ._arrays import arrays
from ._dataset import Dataset, items_of
from ._errors import DataError, checked_path, require_missing

_MISSING: Final = frozenset({"", "-", "?", "N/A", "NA", "NULL", "None", "n/a", "null"})
# Digits behind a leading zero are a code, such as that of a town, and no number.
_WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:[+-]?inf|nan)"
)


class _Table(NamedTuple):
    """The cells of a file by column, and the line that each row ends in."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]


def csv(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    vectors: Mapping[str, Sequence[str]] | None = None,
    types: Mapping[str, str] | None = None,
    missing: Literal["error", "nan"] = "error",
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8-sig",
) -> Dataset[Any]:
    r"""Return the rows of a table; an item is a dict by column. The table is held in memory.

    A column of whole numbers is int64, one of other numbers float32, any other one text; so is a
    column of codes with leading zeros. Above 2**24 numbers that float32 does not hold make a column
    float64. A column that is mostly but not only numbers is an error.

    Args:
        path: the file.
        label: a column whose different values become classes: sorted, and numbered from 0.
        vectors: columns that become one array each, ``{"x": ["width", "height"]}``.
        types: of columns, where they shall be others: ``"text"``, or a type of NumPy.
        missing: what an empty cell among numbers is, and one of ``NA``, ``?``, ``null`` and the
            like: an error, or NaN, which makes whole numbers floats.
        names: of the columns, for a file whose first line has none.
        classes: of ``label``, in their order, such as ``classes=training.classes`` for a file of
            tests, which may lack some.
        delimiter: what stands between cells.
        encoding: of the file.

    Raises:
        DataError: for rows that are longer or shorter, names that come twice, missing values,
            and cells that are not of the type of their column, naming the line.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "t.csv")
        ...     size = file.write_text("width,height,kind\n1.5,2,cat\n3,4,ant\n")
        ...     table = csv(file, label="kind", vectors={"x": ["width", "height"]})
        >>> table[0]["x"].tolist(), int(table[0]["kind"]), table.classes
        ([1.5, 2.0], 1, ('ant', 'cat'))
    """
    require_missing("csv", missing)
    if classes is not None and label is None:
        what, hint = "classes are those of a label", 'data.csv(path, label="kind", classes=classes)'
        raise ArgumentError("csv", what, got="no label", hint=hint)
    table = _read(checked_path(path, "csv"), names, delimiter, encoding)
    types, vectors = types or {}, vectors or {}
    joined = [each for some in vectors.values() for each in some]
    for name in (*types, *joined, *([label] if label else [])):
        if name not in table.columns:
            expected = ", ".join(table.columns)
            raise ArgumentError("csv", "no such column", got=repr(name), expected=expected)
    kinds: tuple[str, ...] = ()
    found: dict[str, Any] = {}
    for name in table.columns:
        if name == label:
            kinds, found[name] = _labels(table, name, classes)
        else:
            found[name] = _typed(table, name, types.get(name), nan=missing == "nan")
    for name, some in vectors.items():
        found[name] = _vector(table, {each: found[each] for each in some})
    kept = {name: column for name, column in found.items() if name in vectors or name not in joined}
    return Dataset(items_of(arrays(kept)), kinds)


def _read(path: str, names: Sequence[str] | None, delimiter: str, encoding: str) -> _Table:
    rows: list[list[str]] = []
    lines: list[int] = []
    with open(path, "rb") as packed:
        if packed.read(2) == b"\x1f\x8b":
            what, hint = f"{path} is compressed", "gunzip FILE.csv.gz, and give FILE.csv"
            raise DataError("csv", what, got="gzip", hint=hint)
    with open(path, newline="", encoding=encoding) as file:
        reader = _csv.reader(file, delimiter=delimiter, strict=True)
        try:
            head = list(names) if names is not None else next(reader, [])
            for row in reader:
                if row:  # the reader gives a blank line as no cells
                    if len(row) != len(head):
                        what = f"{path}:{reader.line_num} has another number of cells"
                        raise DataError("csv", what, got=len(row), expected=len(head))
                    rows.append(row)
                    lines.append(reader.line_num)
        except UnicodeDecodeError as error:
            what, hint = f"{path} is not in this encoding", 'data.csv(path, encoding="cp1252")'
            raise DataError("csv", what, got=error.reason, expected=encoding, hint=hint) from error
        except _csv.Error as error:
            raise DataError("csv", f"{path}:{reader.line_num} is no table", got=error) from error
    head = [name.strip() for name in head]
    if not rows:
        got = f"a head alone: {', '.join(head)}" if head else "an empty file"
        raise DataError("csv", f"{path} has no rows", got=got)
    if len(set(head)) != len(head):
        raise DataError("csv", f"{path} has a name twice", got=", ".join(head))
    _divided(path, head, rows, delimiter)
    columns = zip(*rows, strict=True)
    return _Table(path, {n: [*c] for n, c in zip(head, columns, strict=True)}, lines)


def _divided(path: str, head: list[str], rows: list[list[str]], delimiter: str) -> None:
    """Refuse one column whose cells are all several by another delimiter."""
    for sign in ";\t|" if len(head) == 1 else "":
        count = head[0].count(sign)
        if count and sign != delimiter and all(row[0].count(sign) == count for row in rows):
            what, hint = f"{path} has one column", f"data.csv(path, delimiter={sign!r})"
            raise DataError("csv", what, got=repr(head[0]), hint=hint)


def _labels(
    table: _Table, name: str, given: Sequence[str] | None
) -> tuple[tuple[str, ...], NDArray[Any]]:
    cells = [cell.strip() for cell in table.columns[name]]
    for line, cell in zip(table.lines, cells, strict=True):
        if not cell:
            raise DataError("csv", f"{table.path}:{line}: the label {name!r} is missing")
    numbers = all(_WHOLE.fullmatch(cell) for cell in cells)
    classes = sorted(set(cells), key=int if numbers else None) if given is None else [*given]
    places = {each: place for place, each in enumerate(classes)}
    for line, cell in zip(table.lines, cells, strict=True):
        if cell not in places:
            what = f"{table.path}:{line}: a label of {name!r} is no class"
            raise DataError("csv", what, got=repr(cell), expected=", ".join(classes))
    return tuple(classes), np.array([places[cell] for cell in cells], np.int64)


def _typed(table: _Table, name: str, wanted: str | None, *, nan: bool) -> Any:
    """A column as an array of numbers, or as the text that it is."""
    if wanted == "text":
        return table.columns[name]
    cells = [cell.strip() for cell in table.columns[name]]
    filled = [cell for cell in cells if cell not in _MISSING]
    good = sum(_NUMBER.fullmatch(cell) is not None for cell in filled)
    if wanted is None and 2 * good <= len(filled):
        return table.columns[name]
    whole = all(_WHOLE.fullmatch(cell) for cell in filled)
    holes = len(filled) < len(cells)
    dtype = np.dtype(wanted or ("int64" if whole and not holes else _float_of(cells)))
    for line, cell in zip(table.lines, cells, strict=True):
        if cell in _MISSING:
            if not nan or dtype.kind != "f":
                hint = 'data.csv(path, missing="nan")'
                _refuse(table, line, name, cell, "a number", hint)
        elif not (_WHOLE if dtype.kind in "iu" else _NUMBER).fullmatch(cell):
            hint = f'data.csv(path, types={{"{name}": "text"}})'
            _refuse(table, line, name, cell, f"a number of {dtype}", hint)
    if dtype.kind == "f":
        return _floats(table, name, cells, dtype)
    try:
        return np.array([int(cell) for cell in cells], dtype)
    except OverflowError as error:
        hint = f'data.csv(path, types={{"{name}": "text"}})'
        what = f"{table.path}: a number of {name!r} is out of range"
        raise DataError("csv", what, got=error, expected=dtype, hint=hint) from error


def _float_of(cells: list[str]) -> str:
    """The type of floats: float32 has not the digits of large ids, or of seconds since 1970."""
    known = [float(cell) for cell in cells if _NUMBER.fullmatch(cell)]
    large = np.array([each for each in known if 2.0**24 < abs(each) < 2.0**64])
    return "float32" if np.array_equal(large, large.astype(np.float32)) else "float64"


def _floats(table: _Table, name: str, cells: list[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    exact = np.array([float("nan" if cell in _MISSING else cell) for cell in cells])
    with np.errstate(over="ignore"):
        column = exact.astype(dtype)
    lost = np.flatnonzero(np.isinf(column) & np.isfinite(exact))
    if lost.size:
        hint = f'data.csv(path, types={{"{name}": "float64"}})'
        _refuse(table, table.lines[lost[0]], name, cells[lost[0]], f"within {dtype}", hint)
    return column


def _vector(table: _Table, columns: dict[str, Any]) -> NDArray[Any]:
    """Several columns as one array of rows."""
    for name, column in columns.items():
        if isinstance(column, list):
            what = f"{table.path}: {name!r} is text, which is no part of a vector"
            raise DataError("csv", what, got=repr(column[0]), expected="numbers")
    floats = any(column.dtype.kind == "f" for column in columns.values())
    wide = any(column.dtype == np.float64 for column in columns.values())
    dtype = ("float64" if wide else "float32") if floats else "int64"
    return np.stack([column.astype(dtype) for column in columns.values()], axis=1)


def _refuse(table: _Table, line: int, name: str, cell: str, expected: str, hint: str) -> NoReturn:
    what = f"{table.path}:{line}: a cell of {name!r} is not of its type"
    raise DataError("csv", what, got=repr(cell), expected=expected, hint=hint)
