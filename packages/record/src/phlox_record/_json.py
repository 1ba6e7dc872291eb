"""The JSON layout: the tree as JSON objects, tensors as base64. See FORMAT.md."""

from __future__ import annotations

import binascii
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final, NoReturn

from numpy.typing import NDArray

from ._content import Content, Form, check_metadata, check_version, check_writer
from ._errors import Malformed, shown
from ._layout import Descriptor, as_array, check_sum, describe, descriptor
from ._limits import MAX_DEPTH, Limits, check_depth
from ._source import Source, Write
from ._tree import INT_RANGE, Keyed, ParamEntry, Record, TensorEntry, TensorLike

FORMAT: Final = "phlox-record"
VERSION: Final = 2
_WORDS: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
# Possessive, so that no input makes it backtrack.
_QUOTED: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_DEEPEST: Final = 2 * MAX_DEPTH + 8
_MAX_DIGITS: Final = 20
_TENSOR: Final = ["crc32", "data", "dtype", "shape"]


def _write(content: Content, limits: Limits, write: Write) -> None:
    """Write a checked tree, tensor by tensor."""
    writer = TreeWriter(limits, write, checksums=content.checksums)
    writer.text(f'{{\n  "format": {_quoted(FORMAT)},\n  "version": {VERSION},\n')
    writer.text(f'  "writer": {_quoted(content.writer)},\n')
    writer.text(f'  "precision": {_quoted(content.precision)},\n')
    notes = json.dumps(content.metadata, ensure_ascii=False)
    writer.text(f'  "metadata": {notes},\n  "tree": ')
    writer.node(content.tree, "  ")
    writer.text("\n}\n")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class TreeWriter:
    """Writes a tree as JSON; its tensors whole, or by name where ``name`` gives one."""

    def __init__(
        self,
        limits: Limits,
        write: Write,
        *,
        checksums: bool = True,
        name: Callable[[TensorEntry], str] | None = None,
    ) -> None:
        """Write text to ``write``."""
        self._cap = limits.json_bytes
        self._count = 0
        self._write = write
        self._checksums = checksums
        self._name = name
        self._params: dict[int, int] = {}
        self._tensors = 0

    def text(self, text: str) -> None:
        """Write text as it is."""
        self._bytes(text.encode())

    def _bytes(self, data: bytes) -> None:
        self._count += len(data)
        if self._count > self._cap:
            raise _too_large(self._count, self._cap)
        self._write(data)

    def node(self, node: Record, indent: str) -> None:
        """Write a value and what is in it."""
        if isinstance(node, Keyed):
            self.text('{"$keyed": ')
            self._object(node, indent)
            self.text("}")
        elif isinstance(node, dict):
            self._object(node, indent)
        elif isinstance(node, list):
            self._array(node, indent)
        elif isinstance(node, ParamEntry):
            self._param(node)
        elif isinstance(node, bytes):
            self.text(f'{{"$bytes": "{binascii.b2a_base64(node, newline=False).decode()}"}}')
        elif isinstance(node, float) and not math.isfinite(node):
            self.text(f'{{"$float": "{node}"}}')
        elif node is None or isinstance(node, bool | int | float | str):
            self.text(json.dumps(node, ensure_ascii=False))
        else:
            self.text('{"$tensor": ')
            self._tensor(node)
            self.text("}")

    def _param(self, node: ParamEntry) -> None:
        if id(node) in self._params:
            self.text(f'{{"$shared": {self._params[id(node)]}}}')
            return
        self._params[id(node)] = self._tensors
        self.text(f'{{"$param": {{"id": {_quoted(node.id)}, "tensor": ')
        self._tensor(node.tensor)
        self.text("}}")

    def _object(self, node: dict[str, Record], indent: str) -> None:
        inner = indent + "  "
        before = "{\n"
        for key, child in node.items():
            escaped = "$" + key if key.startswith("$") else key
            self.text(f"{before}{inner}{_quoted(escaped)}: ")
            self.node(child, inner)
            before = ",\n"
        self.text(f"\n{indent}}}" if node else "{}")

    def _array(self, node: list[Record], indent: str) -> None:
        inner = indent + "  "
        before = "[\n"
        for child in node:
            self.text(before + inner)
            self.node(child, inner)
            before = ",\n"
        self.text(f"\n{indent}]" if node else "[]")

    def _tensor(self, tensor: TensorLike) -> None:
        assert isinstance(tensor, TensorEntry)
        self._tensors += 1
        if self._name is not None:
            self.text(_quoted(self._name(tensor)))
            return
        what = describe(tensor)
        self.text(f'{{"dtype": "{what.dtype.name}", "shape": {list(what.shape)}, "data": "')
        crc = 0
        rest = b""
        for piece in tensor.pieces():
            crc = zlib.crc32(piece, crc) if self._checksums else 0
            joined = rest + piece
            whole = len(joined) - len(joined) % 3
            rest = joined[whole:]
            self._bytes(binascii.b2a_base64(joined[:whole], newline=False))
        self._bytes(binascii.b2a_base64(rest, newline=False))
        self.text(f'", "crc32": {crc}}}' if self._checksums else '"}')


def _read(source: Source, limits: Limits) -> Content:
    """Parse the whole text; base64 is decoded when a tensor is read."""
    text = source.read_all()
    if len(text) > limits.json_bytes:
        raise _too_large(len(text), limits.json_bytes)
    root = parse(bytes(text), limits)
    if not isinstance(root, dict) or root.get("format") != FORMAT:
        raise Malformed("not a phlox record", expected=f'"format": "{FORMAT}"')
    version = check_version(root.get("version"), VERSION)
    wanted = ["format", "metadata", "precision", "tree", "version"]
    wanted += ["writer"] if version > 1 else []
    if sorted(root) != wanted:
        raise Malformed("the record has wrong fields", expected=", ".join(wanted))
    precision, metadata = check_metadata(root["precision"], root["metadata"])
    writer = check_writer(root.get("writer", ""))
    reader = TreeReader(limits, version)
    tree = reader.read(root["tree"])
    return Content(tree, precision, metadata, version, writer, reader.checksums)


def _too_large(size: int, cap: int) -> Malformed:
    return Malformed(
        "too large for JSON, which is held in memory whole",
        got=f"{size:,} bytes",
        expected=f"at most {cap:,} bytes",
        hint="NamedMsgpackRecorder, or limits=Limits(json_bytes=…)",
    )


def _scan(data: bytes, limits: Limits) -> None:
    """Bound depth and number of values before the parser builds any of them."""
    # Counted in texts too, which is too many but fast; base64 has none of these.
    values = data.count(b",") + data.count(b"[") + data.count(b"{")
    if values > limits.nodes or data.count(b'"') > 4 * limits.nodes:
        raise Malformed(
            "too many values in the file",
            expected=f"at most {limits.nodes:,}",
            hint="a recorder with limits=Limits(nodes=…), if you trust the file",
        )
    brackets = _QUOTED.sub(b"", data).translate(_ONE_KIND, _NO_BRACKETS)
    depth = 0
    while depth <= _DEEPEST and b"[]" in brackets:
        brackets, depth = brackets.replace(b"[]", b""), depth + 1  # without its innermost level
    if depth + brackets.count(b"[") > _DEEPEST:
        raise Malformed("the file is too deep", expected=f"at most {MAX_DEPTH} levels")


def parse(data: bytes, limits: Limits) -> Any:
    """Return the one JSON value in ``data``, bounded before it is built.

    Raises:
        Malformed: no JSON, a repeated key, NaN, a number out of range, too deep, too many values.
    """
    _scan(data, limits)
    try:
        return json.loads(
            data.decode(),
            object_pairs_hook=_unique,
            parse_int=_int,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError:
        raise Malformed("the file is not UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise Malformed("not valid JSON", got=f"{shown(error.msg)} at {where}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(key for key, after in pairwise(keys) if key == after)
        raise Malformed("a key stands twice in one object", got=shown(twice))
    return result


def _int(digits: str) -> int:
    # The range check is later; this one keeps the quadratic conversion away from long digits.
    if len(digits) > _MAX_DIGITS:
        raise Malformed("an integer is out of range", got=shown(digits))
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Malformed("a number is out of range", got=shown(digits))
    return number


def _constant(word: str) -> NoReturn:
    raise Malformed("not valid JSON", got=word, expected='{"$float": "nan"}')


class TreeReader:
    """Makes the tree of parsed JSON, whose tensors are there whole, or by name in ``named``."""

    def __init__(
        self, limits: Limits, version: int, named: Mapping[str, TensorEntry] | None = None
    ) -> None:
        """Read trees of a version of the format."""
        self.checksums = True  # whether every tensor that was read has one
        self._left = limits.tensors
        self._may_share = version > 1
        self._named = named
        self._used: set[str] = set()
        self._params: dict[int, ParamEntry] = {}
        self._next = 0

    def read(self, node: Any) -> Any:
        """Return the tree; every named tensor must be in it.

        Raises:
            Malformed: a wrong tag, a tensor that nothing refers to, or that two do.
        """
        tree = self.resolve(node, 0)
        left = sorted(set(self._named or ()) - self._used)
        if left:
            raise Malformed("tensors that nothing refers to", got=shown(", ".join(left[:4])))
        return tree

    def resolve(self, node: Any, depth: int) -> Any:
        """Return the value of a node."""
        if isinstance(node, dict):
            tag = next(iter(node), "")
            if len(node) == 1 and tag.startswith("$") and not tag.startswith("$$"):
                return self._tagged(tag, node[tag], depth)
            return self._dict(node, depth)
        if isinstance(node, list):
            check_depth(depth)
            return [self.resolve(child, depth + 1) for child in node]
        if isinstance(node, str):
            return _text(node)
        if type(node) is int and not INT_RANGE[0] <= node <= INT_RANGE[1]:
            raise Malformed("an integer is out of range", got=node, expected="[-2**63, 2**64)")
        return node

    def _dict(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        check_depth(depth)
        result = {}
        for key, child in node.items():
            if key.startswith("$") and not key.startswith("$$"):
                raise Malformed("unknown tag", got=shown(key), expected="one tag alone, or $$")
            plain = key[1:] if key.startswith("$") else key
            result[_text(plain)] = self.resolve(child, depth + 1)
        return result

    def _tagged(self, tag: str, value: Any, depth: int) -> Any:
        match tag:
            case "$tensor":
                return self._tensor(value)
            case "$param":
                if not _has(value, ["id", "tensor"]) or not isinstance(value["id"], str):
                    raise Malformed("a $param is wrong", expected='{"id": text, "tensor": {…}}')
                number = self._next
                made = ParamEntry(_text(value["id"]), self._tensor(value["tensor"]))
                self._params[number] = made
                return made
            case "$shared" if self._may_share:
                if type(value) is not int or value not in self._params:
                    raise Malformed("a parameter is shared before it is there", got=shown(value))
                return self._params[value]
            case "$keyed" if isinstance(value, dict):
                return Keyed(self._dict(value, depth))
            case "$bytes" if isinstance(value, str):
                return _base64(value)
            case "$float" if isinstance(value, str) and value in _WORDS:
                return _WORDS[value]
            case _:
                raise Malformed("unknown tag", got=shown(tag))

    def _tensor(self, value: Any) -> TensorEntry:
        self._next += 1
        if self._named is not None:
            return self._by_name(self._named, value)
        without = self._may_share and isinstance(value, dict) and "crc32" not in value
        if not _has(value, ["data", "dtype", "shape"] if without else _TENSOR):
            raise Malformed("a tensor is wrong", expected="dtype, shape, data, crc32")
        what = descriptor(value["dtype"], value["shape"])
        data, crc = value["data"], value.get("crc32")
        if not isinstance(data, str) or not (without or type(crc) is int):
            raise Malformed("a tensor is wrong", expected="data: text, crc32: integer")
        if len(data) != -(-what.nbytes // 3) * 4:
            got, expected = f"{len(data)} characters", f"{what.nbytes} bytes of base64"
            raise Malformed("a tensor's data has a wrong length", got=got, expected=expected)
        if self._left == 0:
            raise Malformed("too many tensors in the file", hint="limits=Limits(tensors=…)")
        self._left -= 1
        self.checksums = self.checksums and not without
        return _lazy(data, crc, what)

    def _by_name(self, named: Mapping[str, TensorEntry], name: Any) -> TensorEntry:
        if not isinstance(name, str) or name not in named:
            raise Malformed("a tensor of the tree is not in the file", got=shown(name))
        if name in self._used:
            raise Malformed("two places refer to one tensor", got=shown(name))
        self._used.add(name)
        return named[name]


def _lazy(data: str, crc: int | None, what: Descriptor) -> TensorEntry:
    def read() -> NDArray[Any]:
        raw = memoryview(_base64(data))
        if len(raw) != what.nbytes:
            raise Malformed("a tensor's data has a wrong length", got=len(raw))
        if crc is not None:
            check_sum(raw, crc)
        return as_array(raw, what)

    return TensorEntry(what.shape, what.dtype, read)


def _has(value: Any, fields: list[str]) -> bool:
    return isinstance(value, dict) and sorted(value) == fields


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Malformed("text with half a surrogate pair", got=ascii(text)[:60]) from None
    return text


def _base64(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise Malformed("damaged base64", got=str(error)) from None


JSON: Final = Form(
    write=_write,
    read=_read,
    recognizes=lambda head: head.lstrip().startswith(b"{") and b"\0" not in head,
    cap=lambda limits: limits.json_bytes,
)
