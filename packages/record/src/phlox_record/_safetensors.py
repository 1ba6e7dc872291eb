"""The safetensors format: a JSON table of names, then the elements. See FORMAT.md.

Source: github.com/huggingface/safetensors, README, "Format".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import as_dtype

from ._content import LAYOUT, Content, Form, check_writer, header_too_large
from ._errors import Malformed, shown
from ._json import parse
from ._layout import DTYPE_CODES, Descriptor, as_array, describe, descriptor
from ._limits import Limits
from ._skeleton import PRECISION, TREE, WRITER, join, nested, split
from ._source import Source, Write
from ._tree import Stored, TensorEntry, unsupported

_WORDS: Final = {"bfloat16": "BF16", "bool": "BOOL"}
_CODES: Final = {
    name: _WORDS.get(name, name[0].upper() + name.strip(ascii_lowercase)) for name in DTYPE_CODES
}
DTYPES: Final = {code: name for name, code in _CODES.items()}


def _widened_numbers() -> dict[str, NDArray[Any]]:
    """Types of 8 bits -> the numbers of all their bytes, in the type here that holds them."""
    byte = np.arange(256)
    # The least exponent of float16 is 256 times as small.
    finer = (byte << 8 & 0x8000 | (byte & 0x7F) << 7).astype(np.uint16).view(np.float16) * 256
    finer[[0x7F, 0xFF]] = np.nan, -np.nan
    powers = np.ldexp(np.float32(1), byte[:-1] - 127)
    powers = np.append(powers, np.float32(np.nan))
    upper = (byte << 8).astype(np.uint16).view(np.float16)
    return {"F8_E4M3": finer, "F8_E5M2": upper, "F8_E8M0": powers}


_WIDENED: Final = _widened_numbers()
_LENGTH: Final = 8
_ALIGNMENT: Final = 64
_FIELDS: Final = {"dtype": 0, "shape": 0, "data_offsets": 0}.keys()
_METADATA: Final = "__metadata__"
_OWN: Final = (PRECISION, TREE, WRITER)


def _write(content: Content, limits: Limits, write: Write) -> None:
    tree, named = split(content.tree, limits)
    taken = sorted(set(content.metadata) & set(_OWN))
    if taken:
        raise Malformed("metadata has a key of the format", got=taken[0])
    # What other programs call that layout.
    theirs = {"format": "pt"} if content.metadata.get(LAYOUT) == "pytorch" else {}
    words = {**theirs, **content.metadata, PRECISION: content.precision, WRITER: content.writer}
    header: dict[str, Any] = {_METADATA: {**words, TREE: tree}}
    # Wide elements first, so that each tensor is aligned to its own elements.
    ordered = sorted(named.items(), key=lambda item: -item[1].dtype.itemsize)
    end = 0
    for name, tensor in ordered:
        if name == _METADATA:
            raise Malformed("a tensor has the name of the metadata", got=name)
        what = describe(tensor)
        offsets = [end, end + what.nbytes]
        row = {"dtype": _CODES[what.dtype.name], "shape": list(what.shape), "data_offsets": offsets}
        header[name] = row
        end += what.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(_LENGTH + len(text)) % _ALIGNMENT)
    if len(text) > limits.header_bytes:
        raise header_too_large(len(text), limits)
    write(len(text).to_bytes(_LENGTH, "little") + text)
    for _, tensor in ordered:
        for piece in tensor.pieces():
            write(piece)


def _read(source: Source, limits: Limits) -> Content:
    """Read and check the header; tensors stay unread."""
    size = int.from_bytes(source.read(0, _LENGTH), "little")
    if size > limits.header_bytes:
        raise header_too_large(size, limits)
    text = bytes(source.read(_LENGTH, size))
    if not text.startswith(b"{"):
        raise Malformed("not a safetensors file", got=shown(text[:8]), expected="a JSON object")
    header = parse(text, limits)
    assert isinstance(header, dict)
    words = header.pop(_METADATA, {})
    if not isinstance(words, dict) or any(not isinstance(v, str) for v in words.values()):
        raise Malformed("metadata is not a map of text to text", got=shown(words))
    if len(header) > limits.tensors:
        raise Malformed("too many tensors in the file", got=len(header), expected=limits.tensors)
    base = _LENGTH + size
    found = list(_entries(source, header, base))
    named = {name: tensor for name, tensor, _ in found}
    end = max((stop for _, _, stop in found), default=base)
    source.check_end(end, now=False)
    tree = join(words[TREE], named, limits) if TREE in words else nested(named)
    return Content(
        tree,
        words.get(PRECISION, "keep"),
        {key: value for key, value in words.items() if key not in _OWN},
        writer=check_writer(words.get(WRITER, "")),
        checksums=False,
        layout="phlox" if TREE in words else "pytorch" if words.get("format") == "pt" else None,
        check_end=lambda: source.check_end(end, now=True),
    )


def _entries(
    source: Source, header: dict[str, Any], base: int
) -> Iterator[tuple[str, TensorEntry, int]]:
    """Yield the tensors in the order of the table, and where each ends, once places fit."""
    spans: list[tuple[int, int, str]] = []
    found: dict[str, Descriptor] = {}
    for name, row in header.items():
        if not isinstance(row, dict) or row.keys() != _FIELDS:
            raise Malformed(f"the row of {shown(name)} is wrong", expected=", ".join(_FIELDS))
        code, offsets = row["dtype"], row["data_offsets"]
        if not isinstance(code, str):
            raise Malformed(f"the dtype of {shown(name)} is no text", got=shown(code))
        if not isinstance(offsets, list) or [type(n) for n in offsets] != [int, int]:
            raise Malformed(f"the offsets of {shown(name)} are wrong", got=shown(offsets))
        what = found[name] = descriptor(DTYPES.get(code, "uint8"), row["shape"])
        got = offsets[1] - offsets[0]
        # Of a type that is not read, the size is what the offsets say.
        if got != what.nbytes if code in DTYPES or code in _WIDENED else got < 0:
            raise Malformed(f"the size of {shown(name)} is wrong", got=got, expected=what.nbytes)
        spans.append((offsets[0], offsets[1], name))
    end = 0
    for start, stop, name in sorted(spans):
        if start != end:
            raise Malformed(f"{shown(name)} is misplaced", got=start, expected=end)
        end = stop
    for start, stop, name in spans:
        code, what = header[name]["dtype"], found[name]
        if code in DTYPES:
            read = _lazy(source, what, base + start)
        elif code in _WIDENED:
            read = _widened(source, code, what, base + start)
        else:
            read = _unsupported(code, what, stop - start)
        yield name, read, base + stop


def _unsupported(code: str, what: Descriptor, size: int) -> TensorEntry:
    made = "torch.view_as_real(weights[name])" if code[0] == "C" else "weights[name].float()"
    hint = f"{made} before safetensors.torch.save_file, or here "
    hint += "px.record.SafetensorsRecorder().open(path), which reads all else"
    itemsize = size // max(1, math.prod(what.shape))
    return unsupported(code, what.shape, itemsize=itemsize, hint=hint)


def _widened(source: Source, code: str, what: Descriptor, start: int) -> TensorEntry:
    """A tensor of 8 bits an element, which no device has: its numbers in a wider type."""
    numbers = _WIDENED[code]

    def raw() -> NDArray[Any]:
        return np.frombuffer(source.read(start, what.nbytes), np.uint8)

    def read() -> NDArray[Any]:
        return numbers[raw()].reshape(what.shape)

    stored = Stored(code, what.nbytes, raw)
    drop = lambda: source.drop(start, what.nbytes)  # noqa: E731
    return TensorEntry(what.shape, as_dtype(numbers.dtype), read, drop=drop, stored=stored)


def _lazy(source: Source, what: Descriptor, start: int) -> TensorEntry:
    def read() -> NDArray[Any]:
        return as_array(source.read(start, what.nbytes), what)

    return TensorEntry(what.shape, what.dtype, read, drop=lambda: source.drop(start, what.nbytes))


SAFETENSORS: Final = Form(
    write=_write,
    read=_read,
    recognizes=lambda head: len(head) > _LENGTH and head[5:9] == b"\0\0\0{",
    cap=lambda limits: limits.inflated_bytes,
)
