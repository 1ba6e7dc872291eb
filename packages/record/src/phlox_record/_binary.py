"""The named and the compact msgpack layout: prefix, header, aligned blocks. See FORMAT.md."""

from __future__ import annotations

import hashlib
import struct
import zlib
from functools import partial
from typing import Any, Final, NamedTuple

import msgpack
from numpy.typing import NDArray

from phlox_tensor.tree import nodes_with_paths

from ._content import (
    Content,
    Form,
    Metadata,
    Positional,
    check_metadata,
    check_version,
    check_writer,
    header_too_large,
)
from ._errors import Malformed, shown
from ._layout import DTYPE_CODES, Descriptor, as_array, check_sum, describe, descriptor
from ._limits import MAX_DEPTH, Limits, check_depth
from ._msgpack import Ext, pack, unpack
from ._source import Source, Write
from ._tree import LEAF, Keyed, ParamEntry, Record, TensorEntry, entries

MAGIC: Final = b"\x89PHLOX\r\n"
VERSION: Final = 2
_NAMED: Final = 1
_COMPACT: Final = 2
ALIGNMENT: Final = 64

# magic, version, layout, header length, checksum of all other bytes here and the header, flags
_PREFIX: Final = struct.Struct("<8sHHIII")
_CHECKED: Final = 16
_CRC_BYTES: Final = 4
_NO_CHECKSUMS: Final = 1  # a flag: blocks end with their elements

_TENSOR: Final = 1
_PARAM: Final = 2
_KEYED: Final = 3
_POSITIONAL: Final = 4
_SHARED: Final = 5

_DTYPE_NAMES: Final = {code: name for name, code in DTYPE_CODES.items()}


def _places(sizes: list[int], behind: int) -> list[tuple[int, int]]:
    """Where each tensor starts in the data, aligned, and how many zeros come before.

    `behind` is the size of what follows each: its checksum, if there is one.
    """
    result = []
    end = 0
    for size in sizes:
        start = _aligned(end)
        result.append((start, start - end))
        end = start + size + behind
    return result


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def name_print(tree: Record | Positional) -> bytes:
    """Return a short hash of the field names of `tree`, in order; a `Keyed` has none."""
    digest = hashlib.blake2b(digest_size=8)
    for _, node in nodes_with_paths(tree, leaf=(Keyed, *LEAF)):
        if isinstance(node, dict):
            digest.update(pack(list(node)))
    return digest.digest()


class _Skeleton:
    """Turns a checked tree into msgpack values; tensors become their number in the table."""

    def __init__(self, *, compact: bool) -> None:
        self._compact = compact
        self._count = 0
        self._params: dict[int, bytes] = {}

    def convert(self, node: Record) -> Any:
        if isinstance(node, Keyed):
            outside, self._compact = self._compact, False
            inside = {key: self.convert(child) for key, child in node.items()}
            self._compact = outside
            return [msgpack.ExtType(_KEYED, b""), inside]
        if isinstance(node, dict):
            if self._compact:
                values = [self.convert(child) for child in node.values()]
                return [msgpack.ExtType(_POSITIONAL, b""), *values]
            return {key: self.convert(child) for key, child in node.items()}
        if isinstance(node, list):
            return [self.convert(child) for child in node]
        if isinstance(node, ParamEntry):
            if id(node) in self._params:
                return msgpack.ExtType(_SHARED, self._params[id(node)])
            self._params[id(node)] = self._number()
            return msgpack.ExtType(_PARAM, self._params[id(node)] + node.id.encode())
        if node is None or isinstance(node, bool | int | float | str | bytes):
            return node
        return msgpack.ExtType(_TENSOR, self._number())

    def _number(self) -> bytes:
        self._count += 1
        return (self._count - 1).to_bytes(4, "little")


def _write(layout: int, content: Content, limits: Limits, write: Write) -> None:
    """Write a checked tree; tensors are read, cast and written one after the other."""
    compact = layout == _COMPACT
    tree, precision, metadata = content.tree, content.precision, content.metadata
    leaves = entries(tree)
    stored = [describe(leaf) for leaf in leaves]
    behind = _CRC_BYTES if content.checksums else 0
    places = _places([what.nbytes for what in stored], behind)
    skeleton = _Skeleton(compact=compact).convert(tree)
    header: Any
    if compact:
        table: list[Any] = [[DTYPE_CODES[w.dtype.name], list(w.shape)] for w in stored]
        header = [precision, metadata, name_print(tree), skeleton, table, content.writer]
    else:
        table = [
            [w.dtype.name, list(w.shape), start, w.nbytes]
            for w, (start, _) in zip(stored, places, strict=True)
        ]
        header = {
            "writer": content.writer,
            "precision": precision,
            "metadata": metadata,
            "tree": skeleton,
            "tensors": table,
        }
    packed = pack(header)
    if len(packed) > limits.header_bytes:
        raise header_too_large(len(packed), limits)
    flags = struct.pack("<I", 0 if content.checksums else _NO_CHECKSUMS)
    start = _PREFIX.pack(MAGIC, VERSION, layout, len(packed), 0, 0)[:_CHECKED]
    crc = zlib.crc32(packed, zlib.crc32(start + flags))
    write(start + struct.pack("<I", crc) + flags)
    write(packed)
    if leaves:
        size = _PREFIX.size + len(packed)
        write(bytes(_aligned(size) - size))
    for leaf, what, (_, zeros) in zip(leaves, stored, places, strict=True):
        write(bytes(zeros))
        _write_tensor(leaf, what, write, checksum=content.checksums)


def _write_tensor(tensor: TensorEntry, what: Descriptor, write: Write, *, checksum: bool) -> None:
    crc = count = 0
    for piece in tensor.pieces():
        if checksum:
            crc = zlib.crc32(piece, crc)
        count += len(piece)
        write(piece)
    if count != what.nbytes:
        raise Malformed("a tensor gave a wrong size", got=count, expected=what.nbytes)
    if checksum:
        write(crc.to_bytes(_CRC_BYTES, "little"))


def _read(layout: int, source: Source, limits: Limits) -> Content:
    """Read and check the header; tensors stay unread."""
    prefix = bytes(source.read(0, _PREFIX.size))
    magic, version, found, size, crc, flags = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise Malformed("not a phlox record", got=shown(prefix[:8]), expected=shown(MAGIC))
    check_version(version, VERSION)
    if found != layout or flags > (0 if version == 1 else _NO_CHECKSUMS):
        raise Malformed("damaged prefix", got=shown(prefix))
    if size > limits.header_bytes:
        raise header_too_large(size, limits)
    packed = bytes(source.read(_PREFIX.size, size))
    checked = prefix[:_CHECKED] + (prefix[-4:] if version > 1 else b"")
    if zlib.crc32(packed, zlib.crc32(checked)) != crc:
        raise Malformed("damaged header", got="a wrong checksum", hint="copy the file again")
    header = unpack(packed, depth=2 * MAX_DEPTH + 8, nodes=limits.nodes)
    parts = (_compact_parts if layout == _COMPACT else _named_parts)(header, version)
    if len(parts.table) > limits.tensors:
        raise Malformed(
            "too many tensors in the file", got=len(parts.table), expected=limits.tensors
        )
    behind = 0 if flags else _CRC_BYTES
    places = _places([what.nbytes for what in parts.table], behind)
    if parts.offsets is not None:
        _check_offsets(places, parts.offsets)
    base = _aligned(_PREFIX.size + size)
    end = base + places[-1][0] + parts.table[-1].nbytes + behind if places else _PREFIX.size + size
    source.check_end(end, now=False)
    if places:
        _check_zero(source.read(_PREFIX.size + size, base - _PREFIX.size - size))
    found = [
        _Stored(source, what, base + start, zeros, behind).entry()
        for what, (start, zeros) in zip(parts.table, places, strict=True)
    ]
    return Content(
        tree=_Resolver(found, layout, version).resolve_all(parts.tree),
        precision=parts.precision,
        metadata=parts.metadata,
        version=version,
        writer=parts.writer,
        checksums=not flags,
        names=parts.names,
        check_end=lambda: source.check_end(end, now=True),
    )


class _Stored(NamedTuple):
    """A tensor of the file."""

    source: Source
    what: Descriptor
    start: int
    zeros: int  # bytes of padding before
    behind: int  # bytes of checksum

    def read(self) -> NDArray[Any]:
        size, zeros = self.what.nbytes, self.zeros
        raw = self.source.read(self.start - zeros, zeros + size + self.behind)
        _check_zero(raw[:zeros])
        data = raw[zeros : zeros + size]
        if self.behind:
            check_sum(data, int.from_bytes(raw[zeros + size :], "little"))
        return as_array(data, self.what)

    def drop(self) -> None:
        self.source.drop(self.start, self.what.nbytes)

    def entry(self) -> TensorEntry:
        return TensorEntry(self.what.shape, self.what.dtype, self.read, drop=self.drop)


def _check_offsets(places: list[tuple[int, int]], declared: list[object]) -> None:
    """Offsets must be just those the writer computes: aligned, in order, no overlap, no hole."""
    for (start, _), offset in zip(places, declared, strict=True):
        if type(offset) is not int or offset != start:
            raise Malformed("a tensor is misplaced", got=shown(offset), expected=start)


def _check_zero(padding: memoryview) -> None:
    if any(padding):
        raise Malformed("padding between tensors is not zero", got=shown(bytes(padding)))


class _Parts(NamedTuple):
    precision: str
    metadata: Metadata
    writer: str
    names: bytes
    tree: Any
    table: list[Descriptor]
    offsets: list[object] | None


def _named_parts(header: Any, version: int) -> _Parts:
    wanted = ["metadata", "precision", "tensors", "tree", *(["writer"] if version > 1 else [])]
    if not isinstance(header, dict) or sorted(header) != wanted:
        raise Malformed("the header has wrong fields", expected=", ".join(wanted))
    table, offsets = [], []
    for row in _rows(header["tensors"], 4):
        what = descriptor(row[0], row[1])
        if type(row[3]) is not int or row[3] != what.nbytes:
            raise Malformed("a tensor's size is wrong", got=shown(row[3]), expected=what.nbytes)
        table.append(what)
        offsets.append(row[2])
    precision, metadata = check_metadata(header["precision"], header["metadata"])
    writer = check_writer(header.get("writer", ""))
    return _Parts(precision, metadata, writer, b"", header["tree"], table, offsets)


def _compact_parts(header: Any, version: int) -> _Parts:
    count = 5 if version == 1 else 6
    if not isinstance(header, list) or len(header) != count:
        raise Malformed("the header has wrong fields", expected=f"{count} values")
    precision, metadata, names, tree, rows = header[:5]
    table = []
    for code, shape in _rows(rows, 2):
        if type(code) is not int or code not in _DTYPE_NAMES:
            raise Malformed("unknown dtype code in the file", got=shown(code))
        table.append(descriptor(_DTYPE_NAMES[code], shape))
    if not isinstance(names, bytes) or len(names) != 8:
        raise Malformed("the hash of names is wrong", got=shown(names), expected="8 bytes")
    precision, metadata = check_metadata(precision, metadata)
    writer = check_writer(header[5] if version > 1 else "")
    return _Parts(precision, metadata, writer, names, tree, table, None)


def _rows(table: object, width: int) -> list[list[Any]]:
    if not isinstance(table, list):
        raise Malformed("the tensor table is not an array", got=shown(table))
    for row in table:
        if not isinstance(row, list) or len(row) != width:
            raise Malformed("a row of the tensor table is wrong", got=shown(row))
    return table


class _Resolver:
    """Turns msgpack values into a tree; tensor numbers must count up from 0, each used once.

    A parameter at another place is named by the number again. Maps have names in a named file and
    inside a keyed map, and none elsewhere.
    """

    def __init__(self, found: list[TensorEntry], layout: int, version: int) -> None:
        self._entries = found
        self._named = layout == _NAMED
        self._params: dict[int, ParamEntry] = {}
        self._may_share = version > 1
        self._next = 0

    def resolve_all(self, node: Any) -> Any:
        tree = self._resolve(node, 0)
        if self._next != len(self._entries):
            raise Malformed(
                "tensors that nothing refers to", got=len(self._entries) - self._next, expected=0
            )
        return tree

    def _resolve(self, node: Any, depth: int) -> Any:
        if isinstance(node, dict | list):
            check_depth(depth)
            return self._container(node, depth + 1)
        if isinstance(node, Ext):
            return self._leaf(node)
        return node

    def _container(self, node: dict[str, Any] | list[Any], depth: int) -> Any:
        if isinstance(node, dict):
            if not self._named:
                raise Malformed("a map with names in a compact file", got=shown(list(node)))
            return {key: self._resolve(child, depth) for key, child in node.items()}
        first = node[0] if node else None
        if isinstance(first, Ext) and first.code in (_KEYED, _POSITIONAL):
            if first.data:
                raise Malformed("a marker in the tree carries data", got=shown(first.data))
            return self._marked(first.code, node, depth)
        return [self._resolve(child, depth) for child in node]

    def _marked(self, code: int, node: list[Any], depth: int) -> Positional | Keyed:
        if code == _POSITIONAL:
            if self._named:
                raise Malformed("a map without names where names belong")
            return Positional([self._resolve(child, depth) for child in node[1:]])
        if len(node) != 2 or not isinstance(node[1], dict):
            raise Malformed("a keyed map in the tree is wrong")
        outside, self._named = self._named, True
        inside = Keyed({key: self._resolve(child, depth) for key, child in node[1].items()})
        self._named = outside
        return inside

    def _leaf(self, ext: Ext) -> TensorEntry | ParamEntry:
        number = int.from_bytes(ext.data[:4], "little")
        if ext.code == _SHARED and self._may_share:
            if len(ext.data) != 4 or number not in self._params:
                raise Malformed("a parameter is shared before it is there", got=number)
            return self._params[number]
        if ext.code not in (_TENSOR, _PARAM) or len(ext.data) < 4:
            raise Malformed("unknown extension in the tree", got=f"code {ext.code}")
        if ext.code == _TENSOR and len(ext.data) != 4:
            raise Malformed("a tensor reference is wrong", got=shown(ext.data))
        if number != self._next or number >= len(self._entries):
            raise Malformed("tensor references are out of order", got=number, expected=self._next)
        self._next += 1
        found = self._entries[number]
        if ext.code == _TENSOR:
            return found
        try:
            made = ParamEntry(ext.data[4:].decode(), found)
        except UnicodeDecodeError:
            raise Malformed("a parameter id is not UTF-8") from None
        self._params[number] = made
        return made


def _recognizes(layout: int, head: bytes) -> bool:
    if not head.startswith(MAGIC):
        return False
    check_version(int.from_bytes(head[8:10], "little"), VERSION)
    return int.from_bytes(head[10:12], "little") == layout


def _form(layout: int) -> Form:
    return Form(
        write=partial(_write, layout),
        read=partial(_read, layout),
        recognizes=partial(_recognizes, layout),
        cap=lambda limits: limits.inflated_bytes,
    )


NAMED: Final = _form(_NAMED)
COMPACT: Final = _form(_COMPACT)
