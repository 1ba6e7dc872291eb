"""Rows of an SQLite database, found by a key."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, final

from phlox_tensor import ArgumentError

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._items import Draw, Items

_Values = Sequence[Any]


@final
class Rows(Items):
    """Rows of a query, each asked for by its key; the database is opened for each read."""

    def __init__(self, path: str, query: str, key: str, values: _Values) -> None:
        self._path, self._values = path, tuple(values)
        self._wanted = f"SELECT * FROM ({query}) WHERE {key} IS ?"
        self._keys = [row[0] for row in self._run(f"SELECT {key} FROM ({query})", self._values)]
        if len({*self._keys}) != len(self._keys):
            what = f"two rows have one {key}, which is to tell rows apart"
            raise DataError("sqlite", what, hint='data.sqlite(path, query, key="id")')

    def __len__(self) -> int:
        return len(self._keys)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        rows = self._run(self._wanted, (*self._values, self._keys[index]))
        if not rows:
            what = f"{self._path}: the row of key {self._keys[index]!r} is gone"
            raise DataError("sqlite", what, hint="data.sqlite(path, query, key=...), made again")
        return dict(rows[0])

    def _run(self, query: str, values: _Values) -> list[sqlite3.Row]:
        address = f"{Path(self._path).absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            what = f"{self._path} did not answer the query"
            raise DataError("sqlite", what, got=error, hint=_HINTS.get(_kind(error))) from error


def _kind(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


_HINTS = {
    "SQLITE_BUSY": "end the program that writes to the database, or copy the file",
    "SQLITE_NOTADB": "data.csv(path)",
}


def sqlite(
    path: str | PathLike[str], query: str, *, key: str, values: _Values = ()
) -> Dataset[Any]:
    """Return the rows of a query on an SQLite database, as dicts of its columns.

    The keys are read once, each row when its item is asked for. The database is opened to be read
    alone.

    Args:
        path: the database.
        query: a ``SELECT`` whose rows have the key as a column.
        key: a column whose values tell the rows apart, best one with an index.
        values: what stands for each ``?`` of the query.

    Raises:
        DataError: for a file that is no database, a query that it refuses, a key that two rows
            share; from an item, for a row that is gone.

    Example:
        >>> import sqlite3, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with sqlite3.connect(f"{folder}/a.db") as made:
        ...         for command in ("CREATE TABLE t (id, x)", "INSERT INTO t VALUES (7, 0.5)"):
        ...             done = made.execute(command)
        ...     sqlite(f"{folder}/a.db", "SELECT id, x FROM t WHERE x > ?", key="id", values=[0])[0]
        {'id': 7, 'x': 0.5}
    """
    found = checked_path(path, "sqlite")
    if not os.path.isfile(found):
        raise FileNotFoundError(2, "no such file", found)
    if not key.replace("_", "").isalnum():
        what, expected = "key is no name of a column", "letters, digits and _"
        raise ArgumentError("sqlite", what, got=repr(key), expected=expected)
    return Dataset(Rows(found, query.strip().rstrip(";"), key, values))
