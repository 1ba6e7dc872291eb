"""The GGUF format of llama.cpp: a header of typed values, a table of tensors, then the elements.

Source: github.com/ggml-org/ggml, docs/gguf.md.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import as_dtype

from ._content import Content, header_too_large
from ._errors import Malformed, shown
from ._gguf_blocks import BLOCKS, PLAIN, Blocks, widened
from ._layout import Descriptor, as_array, descriptor
from ._limits import Limits
from ._skeleton import PRECISION, TREE, WRITER, join, nested
from ._source import Source, cut_short
from ._tree import Stored, TensorEntry, unsupported

MAGIC: Final = b"GGUF"
VERSION: Final = 3
ALIGNMENT: Final = 32  # where a file does not say
ALIGNED: Final = "general.alignment"
OWN: Final = (PRECISION, TREE, WRITER)
MAX_AXES: Final = 4  # of ggml
_KNOWN: Final = (2, 3)
_MOST_ALIGNED: Final = 1 << 16
# Number of a type of values -> how struct reads it; text and lists are read by hand.
SCALARS: Final = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<B",
    10: "<Q",
    11: "<q",
    12: "<d",
}
BOOL, TEXT, LIST = 7, 8, 9


class Texts(NamedTuple):
    """A list of texts that were not read yet: where the first begins, and how many there are."""

    start: int
    number: int


class Row(NamedTuple):
    """What the table says of a tensor."""

    name: str
    shape: tuple[int, ...]
    code: int
    start: int


class Header(NamedTuple):
    """What stands before the elements."""

    values: dict[str, Any]
    rows: list[Row]
    base: int
    alignment: int


class _Cursor:
    """Reads values one after the other, none past the end of the file or of a header's cap."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._data: Final = source.read_all()
        self._limits: Final = limits
        self._end: Final = min(len(self._data), limits.header_bytes)
        self._values = 0
        self.at = 0

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        self.check(count)
        start, self.at = self.at, self.at + count
        return self._data[start : self.at]

    def check(self, count: int) -> None:
        """Refuse bytes that are not there, before anything is made of them."""
        if self.at + count > self._end:
            if self._end < len(self._data):
                raise header_too_large(self.at + count, self._limits)
            raise cut_short(len(self._data), self.at + count)

    def number(self, kind: str) -> Any:
        """The next number."""
        return struct.unpack(kind, self.take(struct.calcsize(kind)))[0]

    def text(self) -> str:
        """The next text."""
        return _decoded(self.take(self.number("<Q")))

    def counted(self, count: int, least: int) -> int:
        """A number of values that the file says there are, of so many bytes each at least."""
        self.check(count * least)
        self._values += count
        if self._values > self._limits.nodes:
            most = f"at most {self._limits.nodes:,}"
            raise Malformed("too many values in the header", got=self._values, expected=most)
        return count

    def value(self) -> Any:
        """The next value of any type; texts of a list are passed over."""
        kind = self.number("<I")
        if kind in SCALARS:
            return _scalar(kind, self.number(SCALARS[kind]))
        if kind == TEXT:
            return self.text()
        if kind != LIST:
            raise Malformed("a value of an unknown type", got=kind, expected="0 to 12")
        inside, count = self.number("<I"), self.number("<Q")
        if inside in SCALARS:
            size = struct.calcsize(SCALARS[inside])
            raw = self.take(self.counted(count, size) * size)
            return [_scalar(inside, each) for (each,) in struct.iter_unpack(SCALARS[inside], raw)]
        if inside != TEXT:
            raise Malformed("a list of an unknown type", got=inside, expected="numbers or texts")
        start = self.at
        data, at, end = self._data, self.at, self._end
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(self.counted(count, 8)):
            if at + 8 > end:
                break
            at += 8 + unpack(data, at)[0]
        self.at = start
        self.check(at - start)  # also where the last one ends behind the end
        self.at = at
        return Texts(start, count)

    def texts(self, found: Texts) -> list[str]:
        """The texts of a list."""
        data, at = self._data, found.start  # `value` saw that the last one ends before the end
        unpack = struct.Struct("<Q").unpack_from
        texts = []
        for _ in range(found.number):
            start = at + 8
            at = start + unpack(data, at)[0]
            texts.append(_decoded(data[start:at]))
        return texts


def _decoded(raw: memoryview) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8", got=shown(bytes(raw))) from None


def _scalar(kind: int, number: Any) -> Any:
    if kind != BOOL:
        return number
    if number > 1:
        raise Malformed("a bool that is neither 0 nor 1", got=number)
    return bool(number)


def _header(cursor: _Cursor, limits: Limits) -> Header:
    magic = bytes(cursor.take(4))
    if magic != MAGIC:
        raise Malformed("not a GGUF file", got=shown(magic), expected=shown(MAGIC))
    version = cursor.number("<I")
    if version not in _KNOWN:
        odd = version and version % (1 << 16) == 0
        what = "a GGUF file for big-endian machines" if odd else "a version that is not read"
        raise Malformed(what, got=version, expected="version 2 or 3")
    tensors, count = cursor.number("<Q"), cursor.number("<Q")
    if tensors > limits.tensors:
        raise Malformed("too many tensors in the file", got=tensors, expected=limits.tensors)
    values: dict[str, Any] = {}
    for _ in range(cursor.counted(count, 13)):  # a name, a type, a byte
        key = cursor.text()
        if key in values:
            raise Malformed(f"{shown(key)} stands twice in the header")
        values[key] = cursor.value()
    rows = [_row(cursor) for _ in range(cursor.counted(tensors, 24))]
    aligned = values.get(ALIGNED, ALIGNMENT)
    fits = type(aligned) is int and 0 < aligned <= _MOST_ALIGNED and not aligned & (aligned - 1)
    if not fits:
        raise Malformed("the alignment is wrong", got=shown(aligned), expected="a power of two")
    return Header(values, rows, -(-cursor.at // aligned) * aligned, aligned)


def _row(cursor: _Cursor) -> Row:
    name, axes = cursor.text(), cursor.number("<I")
    if axes > MAX_AXES:
        raise Malformed(f"{shown(name)} has too many axes", got=axes, expected=MAX_AXES)
    sizes = struct.unpack(f"<{axes}Q", cursor.take(8 * axes))  # the last axis first
    return Row(name, sizes[::-1], cursor.number("<I"), cursor.number("<Q"))


def read(source: Source, limits: Limits) -> Content:
    """Read and check the header; tensors stay unread."""
    header = _header(_Cursor(source, limits), limits)
    named: dict[str, TensorEntry] = {}
    size, end = len(source.read_all()), 0
    for row in header.rows:
        if row.name in named:
            raise Malformed(f"{shown(row.name)} stands twice in the table")
        named[row.name], nbytes = _entry(source, row, header.base + row.start)
        if row.start != end:
            raise Malformed(f"{shown(row.name)} is misplaced", got=row.start, expected=end)
        last = header.base + end + nbytes
        if last > size:
            raise cut_short(size, last)
        end += -(-nbytes // header.alignment) * header.alignment
    behind = size - header.base - end
    if behind > 0:  # the last tensor may be filled up, or not
        raise Malformed("bytes behind the end of the record", got=behind, expected=0)
    values = header.values
    words = {key: text for key, value in values.items() if (text := _word(key, value)) is not None}
    own = {key: values.get(key) for key in OWN}
    tree = own[TREE]
    return Content(
        join(tree, named, limits) if isinstance(tree, str) else nested(named),
        _text_or(own[PRECISION], "keep"),
        words,
        version=VERSION,
        writer=_text_or(own[WRITER], ""),
        checksums=False,
        layout="phlox" if isinstance(tree, str) else "pytorch",
    )


def _text_or(value: object, other: str) -> str:
    return value if isinstance(value, str) else other


def _word(key: str, value: Any) -> str | None:
    """A value for people; long lists by their length, what is ours not at all."""
    if key in OWN:
        return None
    if isinstance(value, Texts):
        return f"{value.number:,} texts"
    if isinstance(value, list):
        return f"{len(value):,} numbers" if len(value) > 8 else shown(value)
    return value if isinstance(value, str) else str(value)


def _entry(source: Source, row: Row, start: int) -> tuple[TensorEntry, int]:
    """A tensor that is read when it is asked for, and its bytes in the file."""
    plain = PLAIN.get(row.code)
    if plain is not None:
        what = descriptor(plain, list(row.shape))
        return _plain(source, what, start), what.nbytes
    form = BLOCKS.get(row.code)
    if form is None:
        known = ", ".join([*PLAIN.values(), *(b.name for b in BLOCKS.values())])
        raise Malformed(f"{shown(row.name)} is of an unknown type", got=row.code, expected=known)
    what = descriptor("float32", list(row.shape))
    if not row.shape or row.shape[-1] % form.size:
        rows = f"rows of a multiple of {form.size}"
        raise Malformed(f"{shown(row.name)} of {form.name}", got=shown(row.shape), expected=rows)
    nbytes = math.prod(row.shape) // form.size * form.nbytes
    if form.widen is None:
        hint = "quantize the model to a form such as Q8_0 or Q4_K"
        itemsize = 1  # less, which no type of elements can say
        return unsupported(form.name, row.shape, itemsize=itemsize, hint=hint), nbytes
    return _blocks(source, what, form, start, nbytes), nbytes


def _plain(source: Source, what: Descriptor, start: int) -> TensorEntry:
    def numbers() -> NDArray[Any]:
        return as_array(source.read(start, what.nbytes), what)

    drop = lambda: source.drop(start, what.nbytes)  # noqa: E731
    return TensorEntry(what.shape, what.dtype, numbers, drop=drop)


def _blocks(source: Source, what: Descriptor, form: Blocks, start: int, nbytes: int) -> TensorEntry:
    def raw() -> NDArray[np.uint8]:
        return np.frombuffer(source.read(start, nbytes), np.uint8)

    def numbers() -> NDArray[Any]:
        return widened(raw(), form).reshape(what.shape)

    return TensorEntry(
        what.shape,
        as_dtype("float32"),
        numbers,
        drop=lambda: source.drop(start, nbytes),
        stored=Stored(form.name, nbytes, raw),
    )


def header_values(source: Source, limits: Limits) -> dict[str, Any]:
    """Return what the header says, with lists read.

    Raises:
        Malformed: as ``read``, but for tensors.
    """
    cursor = _Cursor(source, limits)
    found = _header(cursor, limits).values
    return {
        key: cursor.texts(value) if isinstance(value, Texts) else value
        for key, value in found.items()
        if key not in OWN
    }
