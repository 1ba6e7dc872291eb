"""Writing GGUF files: typed values, a table of tensors, then elements or blocks of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import numpy as np

from ._content import Content, header_too_large
from ._errors import Malformed, shown
from ._gguf import ALIGNED, ALIGNMENT, BOOL, LIST, MAGIC, MAX_AXES, OWN, SCALARS, TEXT, VERSION
from ._gguf_blocks import PLAIN, WRITTEN, Blocks, form_of, narrowed
from ._layout import describe
from ._limits import Limits
from ._skeleton import PRECISION, TREE, WRITER, split
from ._source import Write
from ._tree import TensorEntry

_CODES: Final = {name: code for code, name in PLAIN.items()}
_TYPES: Final = {kind: code for code, kind in SCALARS.items() if code != BOOL}
_WIDEST: Final = float(np.finfo(np.float32).max)
_ROWS: Final = 1 << 16  # numbers that are narrowed at a time


class _Placed(NamedTuple):
    """A tensor, the number of its type, its form of blocks if it has one, and its bytes."""

    tensor: TensorEntry
    code: int
    form: Blocks | None
    nbytes: int


def check_blocks(blocks: Mapping[str, str]) -> None:
    """Refuse forms that are not written."""
    for pattern, name in blocks.items():
        if form_of(name) is None:
            expected = ", ".join(WRITTEN)
            raise Malformed(
                f"a form that is not written, of {pattern!r}", got=repr(name), expected=expected
            )


def write(
    content: Content,
    limits: Limits,
    give: Write,
    blocks: Mapping[str, str],
    values: Mapping[str, Any],
) -> None:
    """Give the bytes of a file.

    Args:
        content: what to write.
        limits: caps on the header.
        give: takes the bytes.
        blocks: patterns of names, and the form of the matrices that they fit.
        values: what else the header says.

    Raises:
        Malformed: what the format has no place for.
    """
    tree, named = split(content.tree, limits)
    placed = {name: _placed(name, tensor, blocks) for name, tensor in named.items()}
    words = {**content.metadata, **values}
    taken = sorted(set(words) & {*OWN, ALIGNED})
    if taken:
        raise Malformed("a key of the header is that of the format", got=taken[0])
    words |= {PRECISION: content.precision, TREE: tree, WRITER: content.writer}
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(placed), len(words))]
    head += [_text(key) + _value(key, value) for key, value in words.items()]
    end = 0
    for name, row in placed.items():
        sizes = row.tensor.shape[::-1]
        head.append(_text(name) + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes))
        head.append(struct.pack("<IQ", row.code, end))
        end += row.nbytes + -row.nbytes % ALIGNMENT
    text = b"".join(head)
    if len(text) > limits.header_bytes:
        raise header_too_large(len(text), limits)
    give(text + bytes(-len(text) % ALIGNMENT))
    for row in placed.values():
        for piece in _pieces(row):
            give(piece)
        give(bytes(-row.nbytes % ALIGNMENT))


def _placed(name: str, tensor: TensorEntry, blocks: Mapping[str, str]) -> _Placed:
    """How a tensor is written."""
    what = describe(tensor)
    if len(what.shape) > MAX_AXES:
        raise Malformed(f"{name} has too many axes", got=len(what.shape), expected=MAX_AXES)
    asked = next((form for pattern, form in blocks.items() if fnmatchcase(name, pattern)), None)
    if asked is not None and len(what.shape) > 1 and what.dtype.kind == "Float":
        found = form_of(asked)
        assert found is not None
        code, form = found
        if what.shape[-1] % form.size:
            raise Malformed(
                f"{name} does not come apart into blocks of {form.name}",
                got=f"rows of {what.shape[-1]}",
                expected=f"a multiple of {form.size}",
                hint=f"blocks={{{name!r}: …}} of another form before the pattern, or none",
            )
        return _Placed(tensor, code, form, math.prod(what.shape) // form.size * form.nbytes)
    if what.dtype.name not in _CODES:
        raise Malformed(
            f"{name} is of a type that GGUF does not have",
            got=what.dtype.name,
            expected=", ".join(_CODES),
            hint='x.astype("int32")',
        )
    return _Placed(tensor, _CODES[what.dtype.name], None, what.nbytes)


def _pieces(row: _Placed) -> Iterator[memoryview]:
    """The bytes of a tensor, some at a time."""
    if row.form is None:
        yield from row.tensor.pieces()
        return
    flat = np.ascontiguousarray(row.tensor.numpy()).reshape(-1)
    step = _ROWS // row.form.size * row.form.size
    for start in range(0, flat.size, step):
        part = flat[start : start + step].astype(np.float32)
        if not np.isfinite(part).all():
            raise Malformed(
                f"numbers that blocks of {row.form.name} do not hold",
                got="an infinity or NaN",
                expected="finite numbers",
            )
        yield memoryview(np.ascontiguousarray(narrowed(part, row.form)).reshape(-1).data)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(key: str, value: Any) -> bytes:
    """A value behind the number of its type."""
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + _text(value)
    if isinstance(value, list | tuple):
        kinds = {type(each) for each in value}
        if kinds <= {str}:
            head = struct.pack("<IIQ", LIST, TEXT, len(value))
            return head + b"".join(map(_text, value))
        if len(kinds) > 1:
            raise _no_value(key, value)
        # Lists have signs, as gguf writes them: llama.cpp reads kinds of tokens in no other type.
        code = _kind(key, *value, order=("<i", "<I", "<q", "<Q"))
        form = f"<{len(value)}{SCALARS[code][1]}"
        return struct.pack("<IIQ", LIST, code, len(value)) + struct.pack(form, *value)
    code = _kind(key, value)
    return struct.pack("<I", code) + struct.pack(SCALARS[code], value)


def _kind(key: str, *values: Any, order: tuple[str, ...] = ("<I", "<i", "<Q", "<q")) -> int:
    """The number of the type that holds values of one type: 32 bits, where that is enough."""
    first = values[0]
    if type(first) is bool:
        return BOOL
    if type(first) is float:
        wide = any(_WIDEST < abs(each) < math.inf for each in values)
        return _TYPES["<d" if wide else "<f"]
    if type(first) is int:
        for kind in order:
            half = 1 << (8 * struct.calcsize(kind) - 1)
            low, high = (-half, half) if kind.islower() else (0, 2 * half)
            if all(low <= each < high for each in values):
                return _TYPES[kind]
    raise _no_value(key, values if len(values) > 1 else first)


def _no_value(key: str, value: Any) -> Malformed:
    return Malformed(
        f"a header has no place for {shown(key)}",
        got=shown(value),
        expected="a bool, a number, text, or a list of one of them",
    )
