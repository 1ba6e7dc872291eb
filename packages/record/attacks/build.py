"""Makes files that try to harm whoever reads them; see README.md."""

from __future__ import annotations

import gzip
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgpack

MAGIC = b"\x89PHLOX\r\n"
FLOATS = struct.pack("<2f", 1.0, 2.0)


class Attack(NamedTuple):
    """A hostile file: its name tells the recorder, `says` is in the refusal.

    Large ones are functions, so that listing the names is cheap.
    """

    name: str
    says: str
    data: bytes | Callable[[], bytes]


def pack(value: Any) -> bytes:
    """Return msgpack bytes."""
    return cast("bytes", msgpack.packb(value))


def ext(code: int, payload: bytes = b"") -> msgpack.ExtType:
    """Return an extension of the header."""
    return msgpack.ExtType(code, payload)


def tensor(number: int = 0) -> msgpack.ExtType:
    """Return a reference to a tensor."""
    return ext(1, number.to_bytes(4, "little"))


def frame(packed: bytes, blocks: bytes = b"", *, layout: int = 1, version: int = 1) -> bytes:
    """Put a valid prefix before header bytes and padding behind them."""
    start = MAGIC + struct.pack("<HHI", version, layout, len(packed))
    crc = zlib.crc32(packed, zlib.crc32(start))
    head = start + struct.pack("<II", crc, 0) + packed
    return head + bytes(-len(head) % 64) + blocks if blocks else head


def block(data: bytes) -> bytes:
    """Return elements with their checksum."""
    return data + struct.pack("<I", zlib.crc32(data))


def named(tree: Any = None, table: Any = None, data: bytes | None = None, **fields: Any) -> bytes:
    """Return a named file; without arguments a valid one with a tensor of two floats."""
    header = {
        "precision": "full",
        "metadata": {},
        "tree": {"w": tensor()} if tree is None else tree,
        "tensors": [["float32", [2], 0, 8]] if table is None else table,
    }
    header.update(fields)
    return frame(pack(header), block(FLOATS) if data is None else data)


def row(**change: Any) -> bytes:
    """Return a named file whose one table row is changed."""
    fields = {"dtype": "float32", "shape": [2], "offset": 0, "nbytes": 8, **change}
    return named(table=[list(fields.values())])


def compact(tree: Any, table: Any, names: Any = bytes(8)) -> bytes:
    """Return a compact file."""
    return frame(pack(["full", {}, names, tree, table]), block(FLOATS), layout=2)


def raw_tree(tree: bytes) -> bytes:
    """Return a named file without tensors whose tree is given as msgpack bytes."""
    parts = [b"\x84", pack("precision"), pack("full"), pack("metadata")]
    parts += [b"\x80", pack("tensors"), b"\x90", pack("tree"), tree]
    return frame(b"".join(parts))


def text(tree: str, **fields: Any) -> bytes:
    """Return a JSON file with `tree` as it stands."""
    root = {"format": "phlox-record", "version": 1, "precision": "full", "metadata": {}, **fields}
    return (json.dumps(root)[:-1] + f', "tree": {tree}}}').encode()


def json_tensor(**change: Any) -> bytes:
    """Return a JSON file whose one tensor is changed."""
    value = {"dtype": "float32", "shape": [2], "data": "AACAPwAAAEA=", "crc32": zlib.crc32(FLOATS)}
    value.update(change)
    return text(json.dumps({"w": {"$tensor": value}}))


def prefixes() -> Iterator[Attack]:
    """Yield files that are wrong from the first bytes on."""
    good = named()
    yield Attack("empty.mpk", "empty", b"")
    yield Attack("one-byte.mpk", "not a phlox record", b"\x89")
    yield Attack("zip.mpk", "written by another recorder", b"PK\x03\x04" + bytes(100))
    yield Attack("pickle.mpk", "not a phlox record", b"\x80\x04cos\nsystem\n(S'true'\ntR.")
    yield Attack("magic-only.mpk", "ends early", MAGIC + bytes([1, 0, 1, 0]))
    yield Attack("version-0.mpk", "wrong format version", frame(b"\x80", version=0))
    yield Attack("version-3.mpk", "newer", frame(b"\x80", version=3))
    yield Attack("layout-9.mpk", "not a phlox record", frame(b"\x80", layout=9))
    yield Attack("reserved.mpk", "damaged prefix", good[:20] + b"\x01" + good[21:])
    huge = good[:12] + b"\xff\xff\xff\xff" + good[16:]
    yield Attack("header-4-gib.mpk", "header is too large", huge)
    yield Attack("header-60-mib.mpk", "ends early", good[:12] + b"\x00\x00\xc0\x03" + good[16:])
    yield Attack("header-flip.mpk", "damaged header", good[:40] + b"\xff" + good[41:])
    yield Attack("text-mode-copy.mpk", "not a phlox record", good.replace(b"\r\n", b"\n"))
    yield Attack("trailing.mpk", "behind the end", good + b"\0")
    yield Attack("cut.mpk", "ends early", good[:-1])
    yield Attack("header-padding.mpk", "padding", _flip(good, len(good) - 13))
    yield Attack("data-flip.mpk", "damaged tensor data", _flip(good, len(good) - 6))
    yield Attack("compact-as-named.mpk", "written by another recorder", compact(None, []))


def _flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def headers() -> Iterator[Attack]:
    """Yield headers that are no proper msgpack, or far too much of it."""
    many = struct.pack(">I", 2**32 - 1)
    yield Attack("array-4-billion.mpk", "ends early", frame(b"\xdd" + many))
    yield Attack("arrays-in-arrays.mpk", "ends early", frame((b"\xdd" + many) * 500))
    yield Attack("arrays-plausible.mpk", "too many values", lambda: frame(_plausible(5_000_000)))
    yield Attack("map-4-billion.mpk", "ends early", frame(b"\xdf" + many))
    yield Attack("text-4-gib.mpk", "ends early", frame(b"\xdb" + many))
    yield Attack("bytes-4-gib.mpk", "ends early", frame(b"\xc6" + many))
    yield Attack("ext-4-gib.mpk", "ends early", frame(b"\xc9" + many + b"\x01"))
    yield Attack("deep-arrays.mpk", "too deep", frame(b"\x91" * 1_000_000 + b"\xc0"))
    yield Attack("deep-maps.mpk", "too deep", frame(b"\x81\xa1a" * 300_000 + b"\xc0"))
    yield Attack("deep-tree.mpk", "too deep", raw_tree(b"\x91" * 129 + b"\xc0"))
    yield Attack("deep-keyed.mpk", "too deep", raw_tree(b"\x92\xc7\0\x03\x81\xa1a" * 129 + b"\xc0"))
    nulls = lambda: frame(_row_of(b"\xc0", 20_000_000))  # noqa: E731
    yield Attack("20-million-nulls.mpk", "too many values", nulls)
    maps = lambda: frame(_row_of(b"\x80", 1_900_000))  # noqa: E731
    yield Attack("2-million-maps.mpk", "wrong fields", maps)
    yield Attack("key-twice.mpk", "stands twice", raw_tree(b"\x82\xa1a\x01\xa1a\x02"))
    yield Attack("key-int.mpk", "not text", raw_tree(b"\x81\x01\x02"))
    yield Attack("key-array.mpk", "not text", raw_tree(b"\x81\x90\x02"))
    yield Attack("key-nan.mpk", "not text", raw_tree(b"\x81\xcb\x7f\xf8" + bytes(6) + b"\x02"))
    yield Attack("timestamp.mpk", "unknown extension", raw_tree(b"\xd6\xff\0\0\0\0"))
    yield Attack("never-used.mpk", "no msgpack type", raw_tree(b"\xc1"))
    yield Attack("not-utf-8.mpk", "not UTF-8", raw_tree(b"\xa2\xc3\x28"))
    yield Attack("surrogate.mpk", "not UTF-8", raw_tree(b"\xa3\xed\xa0\x80"))
    yield Attack("behind-header.mpk", "behind the header", frame(b"\x80\x80"))
    yield Attack("no-map.mpk", "wrong fields", frame(b"\x90"))
    yield Attack("field-missing.mpk", "wrong fields", frame(pack({"tree": 1})))
    yield Attack("field-extra.mpk", "wrong fields", named(code="import os"))
    yield Attack("precision-int.mpk", "precision", named(precision=7))
    yield Attack("metadata-list.mpk", "metadata", named(metadata=[]))
    yield Attack("metadata-nested.mpk", "metadata", named(metadata={"a": {}}))


def _row_of(value: bytes, count: int) -> bytes:
    return b"\xdd" + struct.pack(">I", count) + value * count


def _plausible(size: int) -> bytes:
    """Each array declares all the bytes that are left: 200 times what one of them may ask."""
    heads = (b"\xdd" + struct.pack(">I", size - 5 * (n + 1)) for n in range(200))
    return b"".join(heads) + b"\xc0" * (size - 1000)


def tables() -> Iterator[Attack]:
    """Yield descriptors that lie."""
    yield Attack("table-map.mpk", "not an array", named(tensors={}))
    yield Attack("row-short.mpk", "row of the tensor table", named(table=[["float32", [2]]]))
    yield Attack("row-text.mpk", "row of the tensor table", named(table=["abcd"]))
    yield Attack("dtype-object.mpk", "unknown dtype", row(dtype="object"))
    yield Attack("dtype-int.mpk", "unknown dtype", row(dtype=7))
    yield Attack("dtype-wider.mpk", "size is wrong", row(dtype="float64"))
    yield Attack("dtype-wider-sized.mpk", "ends early", row(dtype="float64", nbytes=16))
    yield Attack("shape-negative.mpk", "shape", row(shape=[-2]))
    yield Attack("shape-two-negatives.mpk", "shape", row(shape=[-1, -2]))
    yield Attack("shape-float.mpk", "shape", row(shape=[2.0]))
    yield Attack("shape-bool.mpk", "shape", row(shape=[2, True]))
    yield Attack("shape-text.mpk", "shape", row(shape="2"))
    yield Attack("shape-rank.mpk", "shape", row(shape=[1] * 31 + [2, 1]))
    yield Attack("shape-overflow.mpk", "impossibly", row(shape=[2**62, 2**62, 2]))
    yield Attack("shape-wraps-to-8.mpk", "impossibly", row(shape=[2**32 + 1, 2**32, 2], nbytes=8))
    yield Attack("shape-empty-huge.mpk", "impossibly", row(shape=[0, 2**63 - 1], nbytes=0))
    yield Attack("shape-tebibyte.mpk", "ends early", row(shape=[2**38], nbytes=2**40))
    yield Attack("size-lie.mpk", "size is wrong", row(nbytes=4))
    yield Attack("size-negative.mpk", "size is wrong", row(nbytes=-8))
    yield Attack("offset-negative.mpk", "misplaced", row(offset=-64))
    yield Attack("offset-unaligned.mpk", "misplaced", row(offset=4))
    yield Attack("offset-far.mpk", "misplaced", row(offset=2**63))
    yield Attack("offset-false.mpk", "misplaced", row(offset=False))
    pair = [["float32", [2], 0, 8], ["float32", [2], 0, 8]]
    both = {"a": tensor(0), "b": tensor(1)}
    twice = block(FLOATS) + bytes(52) + block(FLOATS)
    yield Attack("overlap.mpk", "misplaced", named(both, pair, twice))
    pair[1] = ["float32", [2], 128, 8]
    yield Attack("hole.mpk", "misplaced", named(both, pair, block(FLOATS) + bytes(180)))
    pair[1] = ["float32", [2], 64, 8]
    hidden = block(FLOATS) + b"hidden" + bytes(46) + block(FLOATS)
    yield Attack("hidden-in-padding.mpk", "padding", named(both, pair, hidden))
    empty = [["float32", [0], 64 * n, 0] for n in range(100_001)]
    yield Attack("tensors-100001.mpk", "too many tensors", named({}, empty, b"\0"))
    two = [["bool", [2], 0, 2]]
    yield Attack("bool-2.mpk", "other than 0 and 1", named(table=two, data=block(b"\x01\x02")))


def references() -> Iterator[Attack]:
    """Yield trees whose tensors and markers are wrong."""
    yield Attack("ref-none.mpk", "nothing refers", named({}))
    yield Attack("ref-twice.mpk", "out of order", named([tensor(), tensor()]))
    yield Attack("ref-far.mpk", "out of order", named([tensor(2**32 - 1)]))
    yield Attack("ref-short.mpk", "unknown extension", named([ext(1, b"\0")]))
    yield Attack("ref-long.mpk", "reference is wrong", named([ext(1, bytes(8))]))
    yield Attack("ref-code.mpk", "unknown extension", named([ext(9, bytes(4))]))
    yield Attack("param-id.mpk", "not UTF-8", named([ext(2, bytes(4) + b"\xff")]))
    yield Attack("positional-in-named.mpk", "without names", named([ext(4), tensor()]))
    yield Attack("keyed-empty.mpk", "keyed map", named([[ext(3)], tensor()]))
    yield Attack("keyed-list.mpk", "keyed map", named([ext(3), [tensor()]]))
    yield Attack("marker-data.mpk", "marker", named([ext(3, b"x"), {"a": tensor()}]))
    yield Attack("marker-late.mpk", "unknown extension", named([tensor(), ext(3), {}]))
    rows = [[3, [2]]]
    names_in = compact({"w": tensor()}, rows)
    yield Attack("names-in-compact.cmpk", "map with names", names_in)
    keyed = compact([ext(3), {"a": [ext(4), tensor()]}], rows)
    yield Attack("positional-in-keyed.cmpk", "without names", keyed)
    yield Attack("code-99.cmpk", "unknown dtype code", compact([ext(4), tensor()], [[99, [2]]]))
    yield Attack("code-true.cmpk", "unknown dtype code", compact([ext(4), tensor()], [[True, [2]]]))
    short = compact([ext(4), tensor()], rows, b"abc")
    yield Attack("names-short.cmpk", "hash of names", short)
    other = compact([ext(4), tensor()], rows)
    yield Attack("names-other.cmpk", "field names", other)
    yield Attack("entries.cmpk", "another structure", compact([ext(4), tensor(), 1], rows))
    kind = compact([ext(4), tensor()], [[7, [2]]])
    yield Attack("kind.cmpk", "another structure", kind)
    yield Attack("header-map.cmpk", "wrong fields", frame(b"\x80", layout=2))


def zipped() -> Iterator[Attack]:
    """Yield gzip files that unfold to too much, or not to one record."""
    good = gzip.compress(named(), mtime=0)
    yield Attack("cut.mpk.gz", "early", good[:-9])
    yield Attack("cut-in-trailer.mpk.gz", "early", good[:-1])
    yield Attack("checksum.mpk.gz", "damaged gzip", _flip(good, len(good) - 6))
    yield Attack("trailing.mpk.gz", "behind the end", good + b"\0")
    yield Attack("two-members.mpk.gz", "behind the end", good + good)
    yield Attack("gzip-of-gzip.mpk.gz", "not a phlox record", gzip.compress(good, mtime=0))
    yield Attack("not-gzip.mpk.gz", "written by another recorder", named())
    yield Attack("plain-ends.mpk.gz", "ends early", gzip.compress(named()[:-1], mtime=0))
    yield Attack("plain-longer.mpk.gz", "behind the end", gzip.compress(named() + b"\0", mtime=0))
    giant = named(table=[["uint8", [2**40], 0, 2**40]], data=b"\0")
    yield Attack("declares-tebibyte.mpk.gz", "may unfold", lambda: _bomb(giant, 1 << 20))
    within = named(table=[["uint8", [2**32 - 2**20], 0, 2**32 - 2**20]], data=b"\0")
    yield Attack("declares-4-gib.mpk.gz", "ends early", lambda: _bomb(within, 1 << 20))
    yield Attack("bomb-behind.mpk.gz", "behind the end", lambda: _bomb(named(), 512 << 20))
    yield Attack("bomb-header.mpk.gz", "header is too large", _bombed_header)
    yield Attack("bomb.json.gz", "may unfold", lambda: _bomb(text("[]"), 512 << 20, b" "))


def _bombed_header() -> bytes:
    return _bomb(MAGIC + struct.pack("<HHIII", 1, 1, 512 << 20, 0, 0), 512 << 20)


def _bomb(start: bytes, count: int, filler: bytes = b"\0") -> bytes:
    """Compress `start` and `count` times `filler`, about a thousandth of that."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, 31)
    piece = filler * (1 << 20)
    parts = [deflate.compress(start)]
    parts += [deflate.compress(piece) for _ in range(count >> 20)]
    return b"".join(parts) + deflate.flush()


def json_files() -> Iterator[Attack]:
    """Yield JSON that parsers read differently, or drown in."""
    yield Attack("empty.json", "empty", b"")
    yield Attack("other.json", "not a phlox record", b'{"a": 1}')
    yield Attack("list.json", "not a phlox record", b"[1, 2, 3, 4, 5]")
    yield Attack("deep.json", "too deep", text("[" * 1_000_000))
    yield Attack("deep-objects.json", "too deep", text('{"a":' * 300_000))
    yield Attack("deep-tree.json", "too deep", text("[" * 129 + "]" * 129))
    yield Attack("zeros.json", "too many values", lambda: text("[" + "0," * 5_000_000 + "0]"))
    yield Attack("objects.json", "too many values", lambda: text("[" + "{}," * 5_000_000 + "0]"))
    yield Attack("escapes.json", "not valid JSON", lambda: text('"' + "\\u0041" * 2_000_000))
    yield Attack("backslashes.json", "not valid JSON", lambda: text('"' + "\\\\" * 5_000_000))
    yield Attack("open-string.json", "not valid JSON", lambda: text('"' + "a" * 10_000_000))
    yield Attack("quotes.json", "not valid JSON", lambda: text('"' * 5_000_001))
    yield Attack("key-twice.json", "stands twice", text('{"a": 1, "a": 2}'))
    yield Attack("key-twice-escaped.json", "stands twice", text('{"a": 1, "\\u0061": 2}'))
    yield Attack("version-twice.json", "stands twice", text('1, "version": 1'))
    yield Attack("nan.json", "not valid JSON", text("NaN"))
    yield Attack("infinity.json", "not valid JSON", text("[-Infinity]"))
    yield Attack("overflow.json", "out of range", text("1e999"))
    yield Attack("digits.json", "out of range", text("1" * 1_000_000))
    yield Attack("int-65-bits.json", "out of range", text(str(2**64)))
    yield Attack("surrogate.json", "surrogate", text('"\\ud800"'))
    yield Attack("surrogate-key.json", "surrogate", text('{"\\ud800": 1}'))
    yield Attack("bom.json", "not a phlox record", b"\xef\xbb\xbf" + text("1"))
    yield Attack("latin-1.json", "not UTF-8", text('"x"').replace(b"x", b"\xe9"))
    yield Attack("utf-16.json", "not a phlox record", text("1").decode().encode("utf-16"))
    yield Attack("comment.json", "not valid JSON", text("1 /* no */"))
    yield Attack("trailing.json", "not valid JSON", text("1") + b"{}")
    yield Attack("cut.json", "not valid JSON", text("1")[:-1])
    yield Attack("version-3.json", "newer", text("1", version=3))
    yield Attack("version-true.json", "wrong format version", text("1", version=True))
    yield Attack("version-text.json", "wrong format version", text("1", version="1"))
    yield Attack("extra.json", "wrong fields", text("1", hook="os.system"))
    yield Attack("metadata.json", "metadata", text("1", metadata={"a": 1}))
    yield Attack("tag-unknown.json", "unknown tag", text('{"$import": "os"}'))
    yield Attack("tag-beside.json", "unknown tag", text('{"a": 1, "$bytes": ""}'))
    yield Attack("tag-float.json", "unknown tag", text('{"$float": "1"}'))
    yield Attack("tag-bytes.json", "base64", text('{"$bytes": "a"}'))
    yield Attack("param.json", "$param", text('{"$param": {"id": 1, "tensor": {}}}'))
    yield from json_tensors()


def json_tensors() -> Iterator[Attack]:
    """Yield JSON tensors that lie."""
    yield Attack("dtype.json", "unknown dtype", json_tensor(dtype="O"))
    yield Attack("dtype-list.json", "unknown dtype", json_tensor(dtype=[]))
    yield Attack("wider.json", "wrong length", json_tensor(dtype="float64"))
    yield Attack("shape-float.json", "shape", json_tensor(shape=[2.0]))
    yield Attack("shape-negative.json", "shape", json_tensor(shape=[-1, -2]))
    yield Attack("shape-huge.json", "impossibly", json_tensor(shape=[2**62, 4]))
    yield Attack("shape-large.json", "wrong length", json_tensor(shape=[2**40]))
    yield Attack("data-list.json", "tensor is wrong", json_tensor(data=[1, 2]))
    yield Attack("data-short.json", "wrong length", json_tensor(data="AACAPwAA"))
    yield Attack("data-alphabet.json", "base64", json_tensor(data="AACAPwAAAE*="))
    yield Attack("data-padding.json", "base64", json_tensor(data="AACAPw==AEA="))
    yield Attack("data-newlines.json", "base64", json_tensor(data="AACAPwAA\nEA="))
    yield Attack("data-flip.json", "damaged tensor data", json_tensor(data="AACAPwAAAEE="))
    yield Attack("crc-text.json", "tensor is wrong", json_tensor(crc32="1"))
    yield Attack("field.json", "tensor is wrong", json_tensor(module="os"))
    many = ['{"$tensor": {"dtype": "bool", "shape": [0], "data": "", "crc32": 0}}'] * 100_001
    yield Attack("tensors-100001.json", "too many tensors", text(f"[{','.join(many)}]"))


FAMILIES: tuple[Callable[[], Iterator[Attack]], ...] = (
    prefixes,
    headers,
    tables,
    references,
    zipped,
    json_files,
)


def attacks() -> Iterator[Attack]:
    """Yield every hostile file."""
    for family in FAMILIES:
        yield from family()


def expectations() -> dict[str, str]:
    """Return what the refusal of each file must say, by file name."""
    return {attack.name: attack.says for attack in attacks()}


def main(folder: str) -> None:
    """Write all files into `folder`."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for attack in attacks():
        data = attack.data if isinstance(attack.data, bytes) else attack.data()
        (place / attack.name).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1])
