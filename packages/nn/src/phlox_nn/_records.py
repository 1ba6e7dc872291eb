"""Modules to records and back: the record of a module is the tree of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from phlox_record import ParamEntry, Record, TensorEntry
from phlox_tensor import Backend, RecordError, Tensor, asarray

from . import _walk
from ._param import Param

if TYPE_CHECKING:
    from ._module import Module

M = TypeVar("M", bound="Module")


def into_record(module: Module) -> dict[str, Record]:
    """Return the tree of parameters; branches without any are left out.

    Raises:
        RecordError: for a dict whose keys make no paths.
    """
    record = _branch(module)
    assert isinstance(record, dict)
    return record


def _branch(value: Any) -> Record:
    if isinstance(value, Param):
        return ParamEntry(value.id, _entry(value))
    out: dict[str, Record] = {}
    names = [name for name, _ in _walk.items(value)]
    if len(set(names)) < len(names) or any("." in name for name in names):
        raise RecordError(
            "into_record",
            "keys of a dict are no names",
            got=", ".join(map(repr, value)),
            expected="keys that differ as text, without dots",
        )
    for name, item in _walk.items(value):
        if next(_walk.params(item), None) is not None:
            out[name] = _branch(item)
    return out


def _entry(param: Param) -> Tensor[Any] | TensorEntry:
    """A lazy parameter is described, and made only when its numbers are written."""
    if param.is_initialized:
        return param.value.detach()
    return TensorEntry(param.shape, param.dtype, lambda: param.value.numpy())  # noqa: PLW0108


def load_record(module: M, record: Record, device: Backend | None) -> M:
    """Return the module with the parameters of ``record``."""
    found: dict[str, ParamEntry] = {}
    _collect(record, "", found)
    wanted = dict(_walk.params(module))
    _same_names(module, set(wanted), set(found))

    def load(path: str, param: Param) -> Param:
        entry = found[path]
        if tuple(entry.tensor.shape) != param.shape:
            raise RecordError(
                "load_record",
                f"shape of {path} differs",
                got=tuple(entry.tensor.shape),
                expected=param.shape,
                hint="load with the config that the record was saved with",
            )
        value = _tensor(entry.tensor, param.dtype.name, device or param.device)
        return Param(value, id=entry.id, trainable=param.trainable)

    made: M = _walk.rebuild(module, load)
    return made


def _collect(record: Record, path: str, found: dict[str, ParamEntry]) -> None:
    if isinstance(record, ParamEntry):
        found[path] = record
    elif isinstance(record, dict):
        for name, item in record.items():
            _collect(item, _walk.join(path, name), found)
    else:
        raise RecordError(
            "load_record",
            f"not a record of a module at {path or 'the root'}",
            got=type(record).__name__,
            expected="a tree of parameters",
        )


def _same_names(module: Module, wanted: set[str], found: set[str]) -> None:
    missing, unknown = sorted(wanted - found), sorted(found - wanted)
    if not missing and not unknown:
        return
    parts = []
    if missing:
        parts.append(f"missing {_some(missing)}")
    if unknown:
        parts.append(f"unknown {_some(unknown)}")
    raise RecordError(
        "load_record",
        f"the record is of another module than {type(module).__name__}",
        got=", ".join(parts),
        expected=f"{len(wanted)} parameters by the names of the module",
        hint="print(model) shows its names, `phlox record show FILE` those of a file",
    )


def _some(names: list[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _tensor(entry: Tensor[Any] | TensorEntry, dtype: str, device: Backend) -> Tensor[Any]:
    if isinstance(entry, Tensor):
        value = entry.to_device(device)
        return value if value.dtype.name == dtype else value.astype(dtype)
    return asarray(entry.numpy(), dtype=dtype, device=device)
