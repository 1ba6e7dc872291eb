"""A msgpack reader for bytes from strangers.

The msgpack package writes our headers. Reading is done here, since a reader of untrusted bytes
must bound depth and the number of values before it builds them, and must refuse repeated keys.
It needs no recursion and never allocates by a declared length: what all open containers still
expect is compared with the bytes that are left.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import msgpack

from ._errors import Malformed, shown


class Ext(NamedTuple):
    """An extension value: application code and payload."""

    code: int
    data: bytes


@dataclass(slots=True)
class _Open:
    """A container being filled."""

    value: list[Any] | dict[str, Any]
    left: int
    key: str | None = None


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
# tag -> (what follows, width of the length field); a fixed extension has no length field
_SIZED: Final = {
    0xC4: ("bin", 1),
    0xC5: ("bin", 2),
    0xC6: ("bin", 4),
    0xC7: ("ext", 1),
    0xC8: ("ext", 2),
    0xC9: ("ext", 4),
    0xD9: ("str", 1),
    0xDA: ("str", 2),
    0xDB: ("str", 4),
    0xDC: ("array", 2),
    0xDD: ("array", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}
_FIXED_EXT: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


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
    reader = _Reader(data, depth, nodes)
    result = reader.read()
    if reader.at != len(data):
        raise Malformed("bytes behind the header's value", got=len(data) - reader.at, expected=0)
    return result


class _Reader:
    def __init__(self, data: bytes, depth: int, nodes: int) -> None:
        self.at = 0
        self._data = data
        self._depth = depth
        self._nodes = nodes
        self._stack: list[_Open] = []
        self._expected = 1

    def read(self) -> Any:
        """Read one value, filling containers from an explicit stack."""
        while True:
            if self._expected > min(len(self._data) - self.at, self._nodes):
                raise self._greedy()
            self._expected -= 1
            self._nodes -= 1
            value = self._value()
            if isinstance(value, _Open):
                if value.left:
                    self._stack.append(value)
                    continue
                value = value.value
            while self._stack:
                top = self._stack[-1]
                self._put(top, value)
                if top.left:
                    break
                value = self._stack.pop().value
            else:
                return value

    def _greedy(self) -> Malformed:
        left = len(self._data) - self.at
        if self._expected > left:
            return Malformed(
                "the header ends early", got=f"{left} bytes", expected=f"{self._expected} values"
            )
        return Malformed(
            "too many values in the header",
            expected=f"at most {self._nodes:,} more",
            hint="a recorder with limits=Limits(nodes=…), if you trust the file",
        )

    def _put(self, top: _Open, value: Any) -> None:
        top.left -= 1
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            if type(value) is not str:
                raise Malformed("a key in the header is not text", got=shown(value))
            if value in top.value:
                raise Malformed("a key stands twice in the header", got=shown(value))
            top.key = value
        else:
            top.value[top.key] = value
            top.key = None

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self._data):
            left = len(self._data) - self.at
            raise Malformed("the header ends early", got=f"{left} bytes", expected=count)
        piece = self._data[self.at : end]
        self.at = end
        return piece

    def _value(self) -> Any:
        tag = self._take(1)[0]
        if tag <= 0x7F:
            return tag
        if tag >= 0xE0:
            return tag - 0x100
        if tag <= 0x8F:
            return self._map(tag & 0x0F)
        if tag <= 0x9F:
            return self._array(tag & 0x0F)
        if tag <= 0xBF:
            return self._text(tag & 0x1F)
        return self._tagged(tag)

    def _tagged(self, tag: int) -> Any:
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _NUMBERS:
            number = _NUMBERS[tag]
            return number.unpack(self._take(number.size))[0]
        if tag in _FIXED_EXT:
            return self._ext(_FIXED_EXT[tag])
        if tag not in _SIZED:
            raise Malformed("a byte in the header is no msgpack type", got=f"{tag:#x}")
        what, width = _SIZED[tag]
        size = int.from_bytes(self._take(width), "big")
        match what:
            case "bin":
                return self._take(size)
            case "ext":
                return self._ext(size)
            case "str":
                return self._text(size)
            case "array":
                return self._array(size)
            case "map":
                return self._map(size)
            case _:
                raise AssertionError(what)

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError:
            raise Malformed("text in the header is not UTF-8") from None

    def _ext(self, size: int) -> Ext:
        code = self._take(1)[0]
        if code > 0x7F:
            raise Malformed("unknown extension in the header", got=f"code {code - 0x100}")
        return Ext(code, self._take(size))

    def _array(self, size: int) -> _Open:
        return self._open([], size)

    def _map(self, size: int) -> _Open:
        return self._open({}, 2 * size)

    def _open(self, empty: list[Any] | dict[str, Any], size: int) -> _Open:
        if len(self._stack) == self._depth:
            raise Malformed("the header is too deep", expected=f"at most {self._depth} levels")
        self._expected += size
        return _Open(empty, size)
