"""The format of MNIST: arrays behind a short header, and the four files that make a dataset."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._arrays import arrays
from ._dataset import Dataset
from ._errors import DataError, checked_path

# The third byte of a file, as the page of MNIST describes it.
_TYPES: Final = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_GZIP: Final = b"\x1f\x8b"


class Parts(NamedTuple):
    """The two parts that a dataset is published in."""

    train: Dataset[Any]
    test: Dataset[Any]


def idx(folder: str | PathLike[str]) -> Parts:
    """Read a folder of MNIST or of a dataset in its files: Fashion-MNIST, KMNIST, EMNIST.

    Items are ``{"image": uint8 (28, 28), "label": int64}``. Files may be compressed by gzip.

    Raises:
        FileNotFoundError: naming the file that is missing.
        DataError: for a file that is no IDX file, or longer or shorter than it says.

    Example:
        >>> idx("no_such_folder")
        Traceback (most recent call last):
            ...
        FileNotFoundError: no_such_folder lacks train-images-idx3-ubyte, and with .gz behind it
    """
    return Parts(*(_part(Path(folder), name) for name in ("train", "t10k")))


def _part(folder: Path, name: str) -> Dataset[Any]:
    images = read_idx(_find(folder, f"{name}-images-idx3-ubyte"))
    labels = read_idx(_find(folder, f"{name}-labels-idx1-ubyte"))
    return arrays(image=images, label=labels.astype(np.int64))


def _find(folder: Path, name: str) -> Path:
    names = [name, f"{name}.gz"]
    spelled = [*names, *(each.replace("-idx", ".idx") for each in names)]
    found = next((file for each in spelled if (file := folder / each).is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{folder} lacks {name}, and with .gz behind it")
    return found


def read_idx(path: str | PathLike[str]) -> NDArray[Any]:
    """Return the array of an IDX file, compressed by gzip or not.

    Raises:
        DataError: for a file that is no IDX file, or longer or shorter than it says.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "three")
        ...     size = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
        ...     read_idx(file).tolist()
        [7, 8, 9]
    """
    with open(checked_path(path, "read_idx"), "rb") as plain:
        compressed = plain.read(2) == _GZIP
        plain.seek(0)
        if not compressed:
            return _read(plain, path)
        try:
            with gzip.GzipFile(fileobj=plain) as file:
                return _read(file, path)
        except (EOFError, OSError, zlib.error) as error:
            raise DataError("idx", f"{path} is no whole gzip file", got=error) from error


def _read(file: IO[bytes] | gzip.GzipFile, path: str | PathLike[str]) -> NDArray[Any]:
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES:
        expected = "00 00, a type, a number of axes"
        raise DataError("idx", f"{path} is no IDX file", got=head.hex(" "), expected=expected)
    dtype = np.dtype(_TYPES[head[2]])
    sizes = file.read(4 * head[3])
    shape = tuple(np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4").tolist())
    whole = prod(shape) * dtype.itemsize
    # Not so many bytes at once: a header may promise more than there is memory.
    data = bytearray()
    while len(data) <= whole and (more := file.read(min(1 << 24, whole + 1 - len(data)))):
        data += more
    if len(shape) != head[3] or len(data) != whole:
        got = f"{'more than ' if len(data) > whole else ''}{min(len(data), whole)}"
        expected = f"{whole} bytes of {shape} {dtype.name}"
        raise DataError("idx", f"{path} is cut off or longer", got=got, expected=expected)
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("=")).reshape(shape)
