"""Tar and zip archives as datasets: the files of one name are the parts of one item."""

from __future__ import annotations

import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from itertools import accumulate
from pathlib import PurePosixPath
from struct import unpack
from typing import Any, BinaryIO, Final, NamedTuple, final

import numpy as np

from ._dataset import Dataset
from ._errors import DataError
from ._images import ENDINGS, decoded
from ._items import Draw, Items, part_of
from ._text import Paths, found_files

_HEADER: Final = 30


class _Place(NamedTuple):
    """Where the bytes of a part lie."""

    start: int
    size: int
    header: bool = False  # whether they begin behind a header of zip, whose size it says itself
    whole: int | None = None  # its size once unpacked, where it is deflated
    crc: int | None = None


_Sample = tuple[str, dict[str, _Place]]


@final
class Archive(Items):
    """Items of archives. A file is opened for each read: nothing is held, and threads may ask."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._samples = [_samples(path) for path in paths]
        self._ends = [*accumulate(len(samples) for samples in self._samples)]

    def __len__(self) -> int:
        return self._ends[-1]

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        part, row = part_of(self._ends, index)
        name, places = self._samples[part][row]
        item: dict[str, Any] = {"key": name}
        with open(self._paths[part], "rb") as file:
            for ending, place in places.items():
                where = f"{self._paths[part]}: {name}.{ending}"
                item[ending] = _value(ending, _content(file, place, where), where)
        return item


def _content(file: BinaryIO, place: _Place, where: str) -> bytes:
    start = place.start
    if place.header:
        file.seek(start)
        name, extra = unpack("<26x2H", file.read(_HEADER).ljust(_HEADER, b"\0"))
        start += _HEADER + name + extra
    file.seek(start)
    content = file.read(place.size)
    if len(content) != place.size:
        raise DataError("archive", f"{where}: the file became shorter after it was opened")
    try:
        if place.whole is not None:  # never more than the archive said, whatever is in it
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, place.whole or 1)
    except zlib.error as error:
        raise DataError("archive", f"{where} is corrupt", got=error) from error
    if place.crc is not None and place.crc != zlib.crc32(content):
        raise DataError("archive", f"{where} is corrupt", got="another checksum")
    return content


def _samples(path: str) -> list[_Sample]:
    """The items of an archive in its order; parts of one item have one name up to the first dot."""
    found: dict[str, dict[str, _Place]] = {}
    for name, place in _members(path):
        folder, _, file = name.rpartition("/")
        if ".." in folder.split("/"):  # whoever writes files by keys would write anywhere
            raise DataError("archive", f"{path} has a name that leads out of it", got=name)
        stem, _, ending = file.partition(".")
        if not stem or not ending:  # hidden files, and those that say no kind
            continue
        key = f"{folder}/{stem}" if folder else stem
        parts = found.setdefault(key, {})
        if ending == "key":
            what, hint = f"{path} has a part called key", "an item has its name there"
            raise DataError("archive", what, got=name, expected="another ending", hint=hint)
        if ending in parts:
            raise DataError("archive", f"{path} has {name} twice", hint="one name, one file")
        parts[ending] = place
    return [*found.items()]


def _members(path: str) -> list[tuple[str, _Place]]:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as opened:
                return [(each.filename, _zipped(path, each)) for each in opened.infolist()]
        with tarfile.open(path, "r:") as archive:
            files = [each for each in archive if each.isfile()]
            _check_end(path, archive.offset)
            return [(each.name, _Place(each.offset_data, each.size)) for each in files]
    except (tarfile.TarError, zipfile.BadZipFile) as error:
        what, hint = f"{path} is no whole tar or zip", None
        with open(path, "rb") as file:
            if file.read(3) in (b"\x1f\x8b\x08", b"BZh", b"\xfd7z"):
                what = f"{path} is compressed, so that no item can be found in it"
                hint = "gunzip FILE.tar.gz, and give FILE.tar"
        raise DataError("archive", what, got=error, hint=hint) from error


def _check_end(path: str, end: int) -> None:
    """Refuse a tar that is cut off between two files, or within what is said of one."""
    with open(path, "rb") as file:
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            what, expected = f"{path} is no whole tar", "empty blocks behind the last file"
            hint = "tar -rf FILE.tar -T /dev/null, if nothing is missing"
            raise DataError("archive", what, got="its end", expected=expected, hint=hint)


def _zipped(path: str, member: zipfile.ZipInfo) -> _Place:
    if (
        member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        or member.flag_bits & 1
    ):
        what, expected = f"{path}: {member.filename} cannot be read", "stored or deflated"
        got = "an encrypted file" if member.flag_bits & 1 else f"method {member.compress_type}"
        raise DataError("archive", what, got=got, expected=expected)
    whole = member.file_size if member.compress_type == zipfile.ZIP_DEFLATED else None
    return _Place(member.header_offset, member.compress_size, True, whole, member.CRC)


def _value(ending: str, content: bytes, where: str) -> Any:
    """What the bytes of a part say, by its ending."""
    kind = PurePosixPath(ending).suffix or f".{ending}"
    if kind.lower() in ENDINGS:
        return decoded(BytesIO(content), where)
    reader = _READERS.get(kind.lower())
    if reader is None:
        return content
    try:
        return reader(content)
    except ValueError as error:
        raise DataError("archive", f"{where} is no {kind}", got=error) from error


def _number(content: bytes) -> int:
    return int(content.decode("ascii"))


def _array(content: bytes) -> Any:
    return np.load(BytesIO(content), allow_pickle=False)


# Endings of parts that are more than bytes.
_READERS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    ".cls": _number,
    ".json": json.loads,
    ".npy": _array,
    ".txt": bytes.decode,
}


def archive(paths: Paths) -> Dataset[Any]:
    """Return the items of tar and zip archives, such as the shards of WebDataset.

    Files that share a name up to its first dot are one item: ``cat/1.jpg`` and ``cat/1.cls`` are
    ``{"key": "cat/1", "jpg": uint8 (3, height, width), "cls": int}``. Pictures, ``.cls`` (a whole
    number), ``.json``, ``.npy`` and ``.txt`` are read, all others stay bytes. Archives are indexed
    once, so that items may be shuffled, split and gone on with like those of any dataset.

    Args:
        paths: an archive, several, or a pattern such as ``"shards/*.tar"``, whose files are sorted.

    Raises:
        DataError: for a file that is neither, for compressed tars; from an item, naming archive and
            part, for what cannot be read.

    Source: [WebDataset](https://github.com/webdataset/webdataset), "The WebDataset format".

    Example:
        >>> import tempfile, zipfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with zipfile.ZipFile(f"{folder}/pets.zip", "w") as made:
        ...         made.writestr("cat/1.txt", "a cat")
        ...         made.writestr("cat/1.cls", "3")
        ...     archive(f"{folder}/pets.zip")[0]
        {'key': 'cat/1', 'txt': 'a cat', 'cls': 3}
    """
    return Dataset(Archive(found_files(paths, "archive")))
