"""Matrices that stay in the blocks of their file."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from phlox_record import TensorEntry
from phlox_tensor import uint8

from ..module.module import Module
from ..weights.blocks import with_blocks

M = TypeVar("M", bound=Module)

# Those that are multiplied as they are.
_FORMS: Final = ("Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")


def in_blocks(model: M, record: dict[str, Any], matrices: list[str]) -> tuple[M, dict[str, Any]]:
    """Return the model with stored weights where a record has blocks of them, and its record so.

    Args:
        model: with lazy parameters.
        record: entries by path, weights with the outputs in front.
        matrices: paths of the weights that may be stored.
    """
    result, forms = dict(record), {}
    for path in matrices:
        stored = getattr(record.get(path), "stored", None)
        if stored is not None and stored.name in _FORMS:
            entry = result.pop(path)
            forms[path] = stored.name, stored.nbytes // max(entry.shape[0], 1)
            result[f"{path}.blocks"] = _bytes(entry)
    return (with_blocks(model, forms) if forms else model), result


def _bytes(entry: TensorEntry) -> TensorEntry:
    """A row of bytes for each output."""
    stored = entry.stored
    assert stored is not None
    shape = (entry.shape[0], stored.nbytes // max(entry.shape[0], 1))
    return TensorEntry(shape, uint8, lambda: stored.read().reshape(shape), drop=entry.drop)
