"""Records by PyTorch's names and layouts, where these differ from ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from phlox_record import ParamEntry, Record, TensorEntry
from phlox_tensor import Tensor

from . import _walk
from ._loading import Entry, Found

if TYPE_CHECKING:
    from ._module import Module

# State that PyTorch keeps and that we count nowhere.
_UNKNOWN_HERE = "num_batches_tracked"


def from_pytorch(module: Module, found: Found) -> Found:
    """Return the entries of a ``state_dict`` as the layers of ``module`` keep them."""
    turned = _turned(module)
    return {
        path: _transposed(entry) if path in turned else entry
        for path, entry in found.items()
        if path.rpartition(".")[2] != _UNKNOWN_HERE
    }


def to_pytorch(module: Module, record: dict[str, Record]) -> dict[str, Record]:
    """Return a record as the ``state_dict`` of the same layers in PyTorch."""
    turned = _turned(module)
    seen: dict[int, Entry] = {}

    def branch(path: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: branch(_walk.join(path, name), item) for name, item in value.items()}
        if path not in turned:
            return value
        return seen.setdefault(id(value), _transposed(value))

    return cast("dict[str, Record]", branch("", record))


def _turned(module: Module) -> set[str]:
    """The paths of weights that PyTorch keeps the other way round."""
    found: set[str] = set()
    places: list[tuple[str, Any]] = [("", module)]
    for path, value in places:  # which grows meanwhile
        places += [(_walk.join(path, name), part) for name, part in _walk.parts(value)]
        names = getattr(type(value), "transposed_in_pytorch", ())
        found |= {_walk.join(path, name) for name in names}
    return found


def _transposed(entry: Entry) -> Entry:
    if isinstance(entry, ParamEntry):
        return ParamEntry(entry.id, cast("TensorEntry", _transposed(entry.tensor)))
    if len(entry.shape) != 2:
        return entry  # of a wrong shape, which the report says
    if isinstance(entry, Tensor):
        return TensorEntry(entry.shape[::-1], entry.dtype, lambda: entry.numpy().T)
    return TensorEntry(entry.shape[::-1], entry.dtype, lambda: entry.numpy().T, drop=entry.drop)
