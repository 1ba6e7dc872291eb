"""Lines of text and of JSON as items; a file is read through once for where lines begin."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from glob import glob
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from ._dataset import Dataset
from ._errors import DataError, checked_path
from ._folders import by_class
from ._items import Draw, Items, part_of

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
_WILD: Final = ("*", "?", "[")


@final
class Lines(Items):
    """Lines of files. A file is opened for each read: nothing is held, and threads may ask."""

    def __init__(self, paths: Sequence[str], op: str, *, values: bool) -> None:
        self._paths, self._op, self._values = paths, op, values
        self._places = [_index(path, blank=not values) for path in paths]
        self._ends = [*accumulate(len(begins) for begins, _, _ in self._places)]

    def __len__(self) -> int:
        return self._ends[-1]

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        part, row = part_of(self._ends, index)
        begins, sizes, numbers = self._places[part]
        with open(self._paths[part], "rb") as file:
            file.seek(begins[row])
            line = file.read(sizes[row])
        where = f"{self._paths[part]}:{numbers[row]}"
        if len(line) != sizes[row]:
            raise DataError(self._op, f"{where}: the file became shorter after it was opened")
        try:
            text = line.decode("utf-8-sig" if begins[row] == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataError(self._op, f"{where} is no UTF-8", got=error.reason) from error
        if not self._values:
            return text.removesuffix("\n").removesuffix("\r")
        try:
            return json.loads(text)
        except ValueError as error:
            hint = (
                "data.of(json.load(file)), for a file that is one list" if text[:1] == "[" else None
            )
            raise DataError(self._op, f"{where} is no JSON", got=error, hint=hint) from error


def _index(path: str, *, blank: bool) -> tuple[array[int], array[int], array[int]]:
    """Where lines begin, how many bytes they have, and their numbers; blank ones if wanted."""
    begins, sizes, numbers = array("q"), array("q"), array("q")
    place = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if blank or line.strip():
                begins.append(place)
                sizes.append(len(line))
                numbers.append(number)
            place += len(line)
    return begins, sizes, numbers


def found_files(paths: Paths, op: str) -> list[str]:
    given = [paths] if isinstance(paths, (str, PathLike)) else [*paths]
    found: list[str] = []
    for each in (checked_path(path, op) for path in given):
        wild = any(sign in each for sign in _WILD)
        found += sorted(glob(each, recursive=True)) if wild else [each]
    if not found:
        raise DataError(op, "no such files", got=", ".join(map(str, given)) or "no paths")
    return found


def text(paths: Paths) -> Dataset[str]:
    r"""Return the lines of text files, without their ends.

    Args:
        paths: a file, several, or a pattern such as ``"books/*.txt"``, whose files are sorted.

    Raises:
        DataError: when nothing fits the pattern; from an item, for bytes that are no UTF-8.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     size = pathlib.Path(folder, "a.txt").write_text("one\ntwo\n")
        ...     [*text(f"{folder}/*.txt")]
        ['one', 'two']
    """
    return Dataset(Lines(found_files(paths, "text"), "text", values=False))


@final
class Documents(Items):
    """Whole files of text, with the class of their folder."""

    def __init__(self, files: list[Path], labels: list[int]) -> None:
        self._files, self._labels = files, np.array(labels, np.int64)

    def __len__(self) -> int:
        return len(self._files)

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        try:
            text = self._files[index].read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            what = f"{self._files[index]} is no UTF-8"
            raise DataError("documents", what, got=error.reason) from error
        return {"text": text, "label": self._labels[index]}


def documents(folder: str | PathLike[str]) -> Dataset[Any]:
    """Return the text files of a folder that has a folder for each class.

    Items are ``{"text": str, "label": int64}``, of all files that end with ``.txt``. Classes are
    the sorted names of the folders, ``dataset.classes``.

    Raises:
        DataError: for a folder without classes, for a class without files; from an item, for
            bytes that are no UTF-8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("bad", "good"):
        ...         Path(folder, name).mkdir()
        ...         size = Path(folder, name, "1.txt").write_text(f"a {name} film")
        ...     documents(folder)[1]
        {'text': 'a good film', 'label': np.int64(1)}
    """
    root = Path(checked_path(folder, "documents"))
    names, files, labels = by_class(root, "documents", lambda file: file.suffix == ".txt")
    return Dataset(Documents(files, labels), names)


def jsonl(paths: Paths) -> Dataset[Any]:
    r"""Return the values of files that have one of JSON in each line; blank lines are left out.

    A value is read when its item is asked for.

    Args:
        paths: a file, several, or a pattern such as ``"logs/*.jsonl"``, whose files are sorted.

    Raises:
        DataError: when nothing fits the pattern; from an item, naming file and line.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     size = pathlib.Path(folder, "a.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
        ...     jsonl(f"{folder}/a.jsonl")[1]
        {'x': 2}
    """
    return Dataset(Lines(found_files(paths, "jsonl"), "jsonl", values=True))
