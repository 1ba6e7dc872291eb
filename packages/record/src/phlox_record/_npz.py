"""NumPy's archive of arrays: a zip file of ``.npy`` members. See FORMAT.md."""

from __future__ import annotations

import ast
import io
import json
import re
import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ._content import Content, Form, check_metadata, check_writer
from ._errors import Malformed, shown
from ._json import parse
from ._layout import DTYPE_CODES, as_array, descriptor
from ._limits import MAX_RANK, Limits
from ._skeleton import join, nested, split
from ._source import Source, Write
from ._tree import TensorEntry, unsupported
from ._zip import Member, contents, members

if TYPE_CHECKING:
    import zipfile

_MAGIC: Final = b"\x93NUMPY"
_ABOUT: Final = "__phlox__"
# By the code of NumPy, little-endian.
_TYPES: Final = {
    np.dtype(name).newbyteorder("<").str: name for name in DTYPE_CODES if name != "bfloat16"
}
_CODES: Final = {name: code for code, name in _TYPES.items()} | {"bfloat16": "<u2"}
_MOST_HEADER: Final = 4096
_ALIGNMENT: Final = 64
_PADDING_FIELD: Final = 0xD935  # the extra field of zip files that aligns what follows
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f%/\\:]")
_LOCAL_SIZE: Final = 30
_ZIP64_SIZE: Final = 20  # what zipfile adds to a local header when it may not go back


class _Sink(io.RawIOBase):
    """A file that is only written, for zipfile."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._write(bytes(data) if isinstance(data, bytearray) else data)
        return len(data)


def _write(content: Content, limits: Limits, write: Write) -> None:
    tree, named = split(content.tree, limits, _safe)
    narrow = [name for name, tensor in named.items() if tensor.dtype.name == "bfloat16"]
    about = {
        "precision": content.precision,
        "metadata": content.metadata,
        "writer": content.writer,
        "bfloat16": narrow,
        "tree": tree,
    }
    text = json.dumps(about, ensure_ascii=False).encode()
    if len(text) > limits.header_bytes:
        raise Malformed("the tree is too large", got=f"{len(text):,} bytes")
    import zipfile  # noqa: PLC0415 - slow, and writing alone needs it

    with zipfile.ZipFile(_Sink(write), "w", zipfile.ZIP_STORED) as archive:
        _put(archive, _ABOUT, TensorEntry.from_numpy(np.frombuffer(text, np.uint8)))
        for name, tensor in named.items():
            _put(archive, name, tensor)


def _safe(path: str) -> str:
    """A path as a name in a zip file: what would climb or end it is written as in an address."""
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", path)


def _put(archive: zipfile.ZipFile, name: str, tensor: TensorEntry) -> None:
    """Write one array, its elements aligned in the file."""
    import zipfile  # noqa: PLC0415 - as above

    info = zipfile.ZipInfo(f"{name}.npy")  # of 1980: the same tree gives the same bytes
    before = archive.fp.tell() + _LOCAL_SIZE + len(info.filename.encode()) + _ZIP64_SIZE + 4  # type: ignore[union-attr]
    info.extra = struct.pack("<HH", _PADDING_FIELD, -before % _ALIGNMENT) + bytes(-before % 64)
    with archive.open(info, "w", force_zip64=True) as member:
        member.write(_header(tensor))
        for piece in tensor.pieces():
            member.write(piece)


def _header(tensor: TensorEntry) -> bytes:
    shape = f"({', '.join(map(str, tensor.shape))}{',' if len(tensor.shape) == 1 else ''})"
    code = _CODES[tensor.dtype.name]
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(_MAGIC) + 5 + len(text)) % _ALIGNMENT) + "\n"
    return _MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text.encode("ascii")


def _read(source: Source, limits: Limits) -> Content:
    """Read the directory and the header of each array; elements stay unread.

    Raises:
        Malformed: no such archive; arrays of objects, which only a pickle could hold.
    """
    data = source.read_all()
    found = members(data, limits.tensors + 1)
    about: dict[str, Any] = {}
    named: dict[str, TensorEntry] = {}
    note = found.pop(f"{_ABOUT}.npy", None)
    if note is not None:
        about = _about(_entry(source, note, limits, narrow=False).numpy(), limits)
    narrow = set(about.get("bfloat16", ()))
    for name, member in found.items():
        if not name.endswith(".npy"):
            raise Malformed("a member is no array", got=shown(name), expected="names like a.npy")
        key = name.removesuffix(".npy")
        named[key] = _entry(source, member, limits, narrow=key in narrow)
    if not about:
        return Content(nested(named), layout=None)
    precision, metadata = check_metadata(about["precision"], about["metadata"])
    tree = join(about["tree"], named, limits)
    return Content(tree, precision, metadata, writer=check_writer(about["writer"]))


def _about(array: NDArray[Any], limits: Limits) -> dict[str, Any]:
    if array.dtype != np.uint8 or array.ndim != 1 or array.size > limits.header_bytes:
        raise Malformed(f"{_ABOUT} is no text")
    about = parse(array.tobytes(), limits)
    wanted = ["bfloat16", "metadata", "precision", "tree", "writer"]
    if not isinstance(about, dict) or sorted(about) != wanted:
        raise Malformed(f"{_ABOUT} has wrong fields", expected=", ".join(wanted))
    names = about["bfloat16"]
    if not isinstance(about["tree"], str) or not isinstance(names, list):
        raise Malformed(f"{_ABOUT} has wrong fields", expected="tree: text, bfloat16: names")
    if any(not isinstance(name, str) for name in names):
        raise Malformed(f"{_ABOUT} has wrong fields", expected="bfloat16: names")
    return about


def _entry(source: Source, member: Member, limits: Limits, *, narrow: bool) -> TensorEntry:
    """The array of a member; only its header is read, where it is not compressed."""
    where = shown(member.name)
    data = source.read_all()
    head = _start(data, member, limits)
    if head[:6] != _MAGIC or len(head) < 12 or head[6] not in (1, 2, 3):
        raise Malformed(f"{where} is no array", got=shown(head[:8]))
    width = 2 if head[6] == 1 else 4
    length = int.from_bytes(head[8 : 8 + width], "little")
    start = 8 + width + length
    if length > _MOST_HEADER or start > len(head):
        raise Malformed(f"the header of {where} is too long", got=length, expected=_MOST_HEADER)
    code, shape, fortran = _described(head[8 + width : start], where)
    little = code.replace(">", "<", 1) if isinstance(code, str) else ""
    if little not in _TYPES:
        return unsupported(
            f"an array of {shown(code)}",
            descriptor("uint8", list(shape)).shape,
            hint="arrays of one of the types of phlox, before np.savez",
        )
    name = "bfloat16" if narrow and little == _CODES["bfloat16"] else _TYPES[little]
    what, swapped = descriptor(name, list(shape)), little != code
    if member.size - start != what.nbytes:
        got = member.size - start
        raise Malformed(f"the size of {where} is wrong", got=got, expected=what.nbytes)

    def read() -> NDArray[Any]:
        raw = contents(data, member, limits.inflated_bytes if member.method else member.size)
        array = as_array(raw[start:], what)
        if swapped:
            array = array.byteswap()
        return array.reshape(what.shape[::-1]).T if fortran else array

    def drop() -> None:
        source.drop(member.start, member.packed)

    return TensorEntry(what.shape, what.dtype, read, drop=drop)


def _start(data: memoryview, member: Member, limits: Limits) -> bytes:
    if member.method:
        return bytes(contents(data, member, limits.inflated_bytes)[: _MOST_HEADER + 12])
    return bytes(data[member.start : member.start + min(member.size, _MOST_HEADER + 12)])


def _described(text: bytes, where: str) -> tuple[Any, tuple[Any, ...], bool]:
    """What the literal in a header says: the code, the shape, whether in Fortran's order."""
    try:
        said = ast.literal_eval(text.decode("latin-1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise Malformed(f"the header of {where} is wrong", got=shown(text[:80])) from None
    if not isinstance(said, dict) or set(said) != {"descr", "fortran_order", "shape"}:
        raise Malformed(f"the header of {where} is wrong", got=shown(text[:80]))
    code, fortran, shape = said["descr"], said["fortran_order"], said["shape"]
    if not isinstance(shape, tuple) or len(shape) > MAX_RANK or not isinstance(fortran, bool):
        raise Malformed(f"the header of {where} is wrong", got=shown(text[:80]))
    return code, shape, fortran


NPZ: Final = Form(
    write=_write,
    read=_read,
    # Without any array there is the end of a zip file alone.
    recognizes=lambda head: (
        (head.startswith(b"PK\3\4") and b".npy" in head) or head.startswith(b"PK\5\6")
    ),
    cap=lambda limits: limits.inflated_bytes,
)
