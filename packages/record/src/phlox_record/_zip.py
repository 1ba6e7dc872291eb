"""A zip reader for bytes from strangers: places are checked before anything is read.

Source: PKWARE's APPNOTE 6.3.10. Stored and deflated members, zip64; no encryption, no parts.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from ._errors import Malformed, shown

_END: Final = struct.Struct("<4sHHHHIIH")
_END64_PLACE: Final = struct.Struct("<4sIQI")
_END64: Final = struct.Struct("<4sQHHIIQQQQ")
_ENTRY: Final = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL: Final = struct.Struct("<4sHHHHHIIIHH")
_MOST_COMMENT: Final = 0xFFFF
_FULL32: Final = 0xFFFFFFFF
_FULL16: Final = 0xFFFF
_STORED: Final = 0
_DEFLATED: Final = 8
_ENCRYPTED: Final = 0x2041  # bits 0, 6 and 13
_UTF8: Final = 0x800
_STEP: Final = 1 << 16


class Member(NamedTuple):
    """A file inside a zip file.

    Attributes:
        name: as it stands there.
        start: of its bytes as they lie there.
        packed: how many there are.
        size: of what they unfold to.
        crc: of what they unfold to.
        method: how they are packed.
    """

    name: str
    start: int
    packed: int
    size: int
    crc: int
    method: int


def members(data: memoryview, most: int) -> dict[str, Member]:
    """Return the members of a zip file by name, without reading them.

    Raises:
        Malformed: no zip file, cut short, members that overlap, a name twice or one that climbs.
    """
    count, size, start = _directory(data)
    if count > most:
        raise Malformed("too many tensors in the zip file", got=count, expected=f"at most {most:,}")
    if start + size > len(data) or count * _ENTRY.size > size:
        raise Malformed("the zip directory does not fit the file", got=f"{size:,} bytes")
    found: dict[str, Member] = {}
    spans: list[tuple[int, int]] = []
    at, limit = start, start + size
    for _ in range(count):
        member, head, at = _entry(data, at, limit)
        if member.name in found:
            raise Malformed("a name stands twice in the zip file", got=shown(member.name))
        spans.append((head, member.start + member.packed))
        found[member.name] = member
    end = 0
    for first, last in sorted(spans):
        if first < end or last > start:
            raise Malformed("members of the zip file overlap", got=first, expected=f"{end} or more")
        end = last
    return found


def _directory(data: memoryview) -> tuple[int, int, int]:
    """Number of entries, size and start of the directory."""
    tail = bytes(data[-(_END.size + _MOST_COMMENT) :])
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < _END.size:
        raise Malformed("not a zip file, or cut short", got=f"{len(data):,} bytes")
    _, disk, first, here, count, size, start, comment = _END.unpack_from(tail, at)
    if at + _END.size + comment != len(tail):
        raise Malformed("bytes behind the end of the zip file")
    if disk or first or here != count:
        raise Malformed("a zip file of several parts")
    end = len(data) - len(tail) + at
    if count == _FULL16 or _FULL32 in (size, start):
        return _directory64(data, end)
    return count, size, start


def _directory64(data: memoryview, end: int) -> tuple[int, int, int]:
    place = end - _END64_PLACE.size
    if place < 0 or bytes(data[place : place + 4]) != b"PK\6\7":
        raise Malformed("the zip64 directory is missing")
    at = _END64_PLACE.unpack_from(data, place)[2]
    if at + _END64.size > place or bytes(data[at : at + 4]) != b"PK\6\6":
        raise Malformed("the zip64 directory is misplaced", got=at)
    *_, count, size, start = _END64.unpack_from(data, at)
    return count, size, start


def _entry(data: memoryview, at: int, limit: int) -> tuple[Member, int, int]:
    """A member, where its local header is, and where the next entry starts."""
    if at + _ENTRY.size > limit:
        raise Malformed("the zip directory ends early", got=at)
    row = _ENTRY.unpack_from(data, at)
    signature, _, _, flags, method, _, _, crc, packed, size, names, extras, notes, *_, head = row
    at += _ENTRY.size
    if signature != b"PK\1\2" or at + names + extras + notes > limit:
        raise Malformed("an entry of the zip directory is wrong", got=at - _ENTRY.size)
    raw = bytes(data[at : at + names])
    extra = bytes(data[at + names : at + names + extras])
    size, packed, head = _wide(extra, size, packed, head)
    name = _name(raw, flags)
    if flags & _ENCRYPTED or method not in (_STORED, _DEFLATED):
        raise Malformed(f"{shown(name)} is encrypted or packed in an unknown way", got=method)
    if method == _STORED and packed != size:
        raise Malformed(f"{shown(name)} has two sizes", got=packed, expected=size)
    if head + _LOCAL.size > len(data) or bytes(data[head : head + 4]) != b"PK\3\4":
        raise Malformed(f"{shown(name)} is misplaced", got=head)
    local = _LOCAL.unpack_from(data, head)
    if local[3] != method or bytes(data[head + _LOCAL.size :][: local[9]]) != raw:
        raise Malformed(f"{shown(name)} is another member where it lies", got=head)
    start = head + _LOCAL.size + local[9] + local[10]
    member = Member(name, start, packed, size, crc, method)
    return member, head, at + names + extras + notes


def _wide(extra: bytes, size: int, packed: int, head: int) -> tuple[int, int, int]:
    """The sizes and the place, from the zip64 field where the entry has no room for them."""
    values = [size, packed, head]
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind == 1:
            field = extra[at : at + length]
            for index, value in enumerate(values):
                if value == _FULL32 and len(field) >= 8:
                    values[index] = int.from_bytes(field[:8], "little")
                    field = field[8:]
        at += length
    return values[0], values[1], values[2]


def _name(raw: bytes, flags: int) -> str:
    try:
        name = raw.decode("utf-8" if flags & _UTF8 else "ascii")
    except UnicodeDecodeError:
        raise Malformed("a name in the zip file is not UTF-8", got=shown(raw)) from None
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
        raise Malformed("a name in the zip file leaves its folder", got=shown(name))
    return name


def contents(data: memoryview, member: Member, cap: int, *, checked: bool = True) -> memoryview:
    """Return the bytes of a member; those of a stored one are shared."""
    if member.size > cap:
        raise Malformed(
            f"{shown(member.name)} is too large",
            got=f"{member.size:,} bytes",
            expected=f"at most {cap:,} bytes",
        )
    packed = data[member.start : member.start + member.packed]
    found = packed if member.method == _STORED else memoryview(_inflated(packed, member))
    if checked and zlib.crc32(found) != member.crc:
        what = f"damaged data of {shown(member.name)}"
        raise Malformed(what, got="a wrong checksum", hint="copy the file again")
    return found


def _inflated(packed: memoryview, member: Member) -> bytearray:
    """Grown as bytes come out, never sized in advance."""
    inflate = zlib.decompressobj(-15)
    result = bytearray()
    try:
        for at in range(0, len(packed), _STEP):
            feed = bytes(packed[at : at + _STEP])
            while feed and len(result) <= member.size:
                result += inflate.decompress(feed, _STEP)
                feed = inflate.unconsumed_tail
        result += inflate.flush()
    except zlib.error as error:
        raise Malformed(f"damaged data of {shown(member.name)}", got=str(error)) from None
    if len(result) != member.size or not inflate.eof or inflate.unused_data:
        got = f"{len(result):,} bytes"
        raise Malformed(f"{shown(member.name)} has a wrong size", got=got, expected=member.size)
    return result
