"""Matrices that stay in the blocks of their file."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from phlox_record import TensorEntry
from phlox_tensor import Backend, int32, uint8

from ..module.module import Module
from ..weights.blocks import with_blocks

M = TypeVar("M", bound=Module)

# Those that are multiplied as they are.
_FORMS: Final = ("Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")


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
        stored = getattr(record.get(path), "stored", None)
        if stored is None:
            continue
        entry = result[path]
        nbytes = stored.nbytes // max(entry.shape[0], 1)
        if stored.name in _FORMS if has_bytes else stored.name in _WORD_FORMS and not nbytes % 4:
            del result[path]
            forms[path] = stored.name, nbytes
            result[f"{path}.blocks"] = _rows(entry, nbytes, words=not has_bytes)
    return (with_blocks(model, forms) if forms else model), result


def _rows(entry: TensorEntry, nbytes: int, *, words: bool) -> TensorEntry:
    """A row of bytes, or of words, for each output."""
    stored = entry.stored
    assert stored is not None
    shape = (entry.shape[0], nbytes // 4 if words else nbytes)

    def read() -> Any:
        found = stored.read().reshape(entry.shape[0], nbytes)
        return found.view("<i4") if words else found

    return TensorEntry(shape, int32 if words else uint8, read, drop=entry.drop)
