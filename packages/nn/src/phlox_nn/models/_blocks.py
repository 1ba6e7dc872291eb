"""Matrices that stay in the blocks of their file."""

from __future__ import annotations

from math import prod
from typing import Any, Final, TypeVar

import numpy as np

from phlox_record import Stored, TensorEntry
from phlox_tensor import Backend, int32, uint8

from ..module.module import Module
from ..weights.blocks import with_blocks

M = TypeVar("M", bound=Module)

_NARROW: Final = {"bfloat16": "BF16", "float16": "F16"}
# Those that are multiplied as they are.
_FORMS: Final = ("BF16", "F16", "Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")
# The same where there is no uint8, four bytes an int32.
_WORD_FORMS: Final = ("Q4_0", "Q4_K", "Q6_K", "Q8_0")


def in_blocks(
    model: M, record: dict[str, Any], matrices: list[str], device: Backend
) -> tuple[M, dict[str, Any]]:
    """Return the model with stored weights where a record has blocks of them, and its record so.

    Args:
        model: with lazy parameters.
        record: entries by path, weights with the outputs in front.
        matrices: paths of the weights that may be stored.
        device: where they go; without uint8 it has them as words, where rows are whole ones.
    """
    result, forms, has_bytes = dict(record), {}, uint8 in device.dtypes
    for path in matrices:
        entry = record.get(path)
        if not isinstance(entry, TensorEntry) or 0 in (entry.shape or (0,)):
            continue
        raw = _raw(entry)
        nbytes = raw.nbytes // entry.shape[0]
        if raw.name in _FORMS if has_bytes else raw.name in _WORD_FORMS and not nbytes % 4:
            del result[path]
            forms[path] = raw.name, nbytes
            result[f"{path}.blocks"] = _rows(entry, raw, words=not has_bytes)
    return (with_blocks(model, forms) if forms else model), result


def _raw(entry: TensorEntry) -> Stored:
    """The bytes of an entry; floats of 16 bits of a matrix are a form too."""
    form = _NARROW.get(entry.dtype.name, "") if len(entry.shape) == 2 else ""

    def read() -> Any:
        return np.ascontiguousarray(entry.numpy()).view(np.uint8)

    return entry.stored or Stored(form, 2 * prod(entry.shape), read)


def _rows(entry: TensorEntry, raw: Stored, *, words: bool) -> TensorEntry:
    """A row of bytes, or of words, for each output."""
    rows, nbytes = entry.shape[0], raw.nbytes // entry.shape[0]

    def read() -> Any:
        found = raw.read().reshape(rows, nbytes)
        return found.view("<i4") if words else found

    shape = (rows, nbytes // 4 if words else nbytes)
    return TensorEntry(shape, int32 if words else uint8, read, drop=entry.drop)
