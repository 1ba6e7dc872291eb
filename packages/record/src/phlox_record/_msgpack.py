"""A msgpack reader for bytes from strangers.

A reader of untrusted bytes must bound depth and the number of values before it builds them, and
must refuse repeated keys. The msgpack package does not, so it reads only what is known to be
harmless. All else goes to the reader here, which says what is wrong. It needs no recursion and
never allocates by a declared length: what all open containers still expect is compared with the
bytes that are left.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

import msgpack

from ._errors import Malformed, shown


class Ext(NamedTuple):
    """An extension value: application code and payload."""

    code: int
    data: bytes


_NUMBERS: Final = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}
_CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}
_FIXED_EXT: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
# width of the length field, by tag
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_BYTES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_EXTS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
_TEXTS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}

_CONTAINERS: Final = frozenset({dict, list})
# How a time stamp begins: of its length the last byte, then its code.
_TIMESTAMPS: Final = [bytes([length, 0xFF]) for length in (4, 8, 12, 0xD6, 0xD7)]
_UNCLEAR: Final = (ValueError, msgpack.UnpackException)


def pack(value: Any) -> bytes:
    """Return `value` as msgpack; `msgpack.ExtType` gives an extension."""
    return cast("bytes", msgpack.packb(value))


def unpack(data: bytes, *, depth: int, nodes: int) -> Any:
    """Return the one msgpack value that `data` is; extensions come as `Ext`.

    Args:
        data: the whole value, nothing behind it.
        depth: most containers inside each other.
        nodes: most values in all, keys included.

    Raises:
        Malformed: cut short, bytes left over, a type outside JSON's plus bin and ext, keys that
            are not text or repeat, invalid UTF-8, more depth or nodes than allowed.
    """
    if len(data) <= nodes:  # a value takes a byte at least
        try:
            return read_fast(data, depth)
        except _UNCLEAR:
            pass  # read again, to say where and why
    return read_carefully(data, depth, nodes)


def read_fast(data: bytes, depth: int) -> Any:
    """Return the value by the msgpack package, as `read_carefully` would."""
    # Skipping builds nothing. What it gets through has no length that the bytes do not bear out.
    whole = msgpack.Unpacker(max_buffer_size=len(data))
    whole.feed(data)
    whole.skip()
    if b"\xff" in data and any(mark in data for mark in _TIMESTAMPS):
        raise ValueError("maybe a time stamp, which the package does not leave an extension")
    value = msgpack.unpackb(data, ext_hook=_ext, object_pairs_hook=_distinct)
    level: list[Any] = [[value]]
    for _ in range(depth + 1):
        level = [c for node in level for c in _inside(node) if type(c) in _CONTAINERS]
        if not level:
            return value
    raise ValueError("too deep")


def _ext(code: int, data: bytes) -> Ext:
    if code < 0:
        raise ValueError("an extension of msgpack's own")
    return Ext(code, data)


def _distinct(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs) or any(type(key) is not str for key in made):
        raise ValueError("keys that are not text or repeat")
    return made


def _inside(node: Any) -> Iterable[Any]:
    return node if type(node) is list else node.values()


def read_carefully(data: bytes, depth: int, nodes: int) -> Any:
    """Return the value, looking at each byte; arguments and errors are those of `unpack`."""
    end, at = len(data), 0
    expected = left = 1  # by all open containers, and by the innermost one
    values: list[Any] = []
    is_map = False
    stack: list[tuple[list[Any], int, bool]] = []
    while True:
        while not left:
            if not stack:
                if at != end:
                    raise Malformed("bytes behind the header's value", got=end - at, expected=0)
                return values[0]
            made = _map(values) if is_map else values
            values, left, is_map = stack.pop()
            values.append(made)
        if at == end:
            raise _cut_short(0, expected)
        tag = data[at]
        at += 1
        left -= 1
        expected -= 1
        nodes -= 1
        if tag <= 0x7F:
            values.append(tag)
        elif 0xA0 <= tag <= 0xBF:
            piece = data[at : at + (tag & 0x1F)]
            at += tag & 0x1F
            values.append(_text(piece, tag & 0x1F))
        elif tag in _NUMBERS:
            form = _NUMBERS[tag]
            if end - at < form.size:
                raise _cut_short(end - at, form.size)
            values.append(form.unpack_from(data, at)[0])
            at += form.size
        elif tag <= 0x9F or tag in _ARRAYS or tag in _MAPS:
            if len(stack) == depth:
                raise Malformed("the header is too deep", expected=f"at most {depth} levels")
            stack.append((values, left, is_map))
            values, is_map = [], tag <= 0x8F or tag in _MAPS
            at, left = _count(data, at, tag)
            expected += left
            if expected > min(end - at, nodes):
                raise _greedy(end - at, expected, nodes)
        else:
            at, value = _scalar(data, at, tag)
            values.append(value)


def _count(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the values of a container begin, and how many there are, keys included."""
    if tag <= 0x9F:
        return at, 2 * (tag & 0x0F) if tag <= 0x8F else tag & 0x0F
    width = _ARRAYS.get(tag) or _MAPS[tag]
    size = int.from_bytes(_piece(data, at, width), "big")
    return at + width, size if tag in _ARRAYS else 2 * size


def _scalar(data: bytes, at: int, tag: int) -> tuple[int, Any]:
    """Where a value ends that is no container, and the value."""
    if tag >= 0xE0:
        return at, tag - 0x100
    if tag in _CONSTANTS:
        return at, _CONSTANTS[tag]
    width = _TEXTS.get(tag) or _BYTES.get(tag) or _EXTS.get(tag) or 0
    if not width and tag not in _FIXED_EXT:
        raise Malformed("a byte in the header is no msgpack type", got=f"{tag:#x}")
    size = _FIXED_EXT.get(tag) or int.from_bytes(_piece(data, at, width), "big")
    at += width
    if tag in _TEXTS:
        return at + size, _text(data[at : at + size], size)
    if tag in _BYTES:
        return at + size, _piece(data, at, size)
    code = _piece(data, at, 1)[0]
    if code > 0x7F:
        raise Malformed("unknown extension in the header", got=f"code {code - 0x100}")
    return at + 1 + size, Ext(code, _piece(data, at + 1, size))


def _map(flat: list[Any]) -> dict[str, Any]:
    """The map of keys and values that follow each other."""
    made: dict[str, Any] = {}
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        if type(key) is not str:
            raise Malformed("a key in the header is not text", got=shown(key))
        if key in made:
            raise Malformed("a key stands twice in the header", got=shown(key))
        made[key] = value
    return made


def _piece(data: bytes, at: int, count: int) -> bytes:
    piece = data[at : at + count]
    if len(piece) < count:
        raise _cut_short(len(piece), count)
    return piece


def _text(piece: bytes, size: int) -> str:
    if len(piece) < size:
        raise _cut_short(len(piece), size)
    try:
        return piece.decode()
    except UnicodeDecodeError:
        raise Malformed("text in the header is not UTF-8") from None


def _greedy(left: int, expected: int, nodes: int) -> Malformed:
    if expected > left:
        got = f"{left} bytes"
        return Malformed("the header ends early", got=got, expected=f"{expected} values")
    return Malformed(
        "too many values in the header",
        expected=f"at most {max(nodes, 0):,} more",
        hint="a recorder with limits=Limits(nodes=…), if you trust the file",
    )


def _cut_short(left: int, expected: int) -> Malformed:
    return Malformed("the header ends early", got=f"{left} bytes", expected=expected)
