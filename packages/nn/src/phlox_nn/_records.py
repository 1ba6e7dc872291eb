"""Modules to records and back: the record of a module is the tree of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from phlox_record import ParamEntry, Record, TensorEntry
from phlox_tensor import Backend, RecordError, Tensor, asarray

from . import _walk
from ._param import Param, new_id

if TYPE_CHECKING:
    from ._module import Module

M = TypeVar("M", bound="Module")
Found = dict[str, ParamEntry | Tensor[Any] | TensorEntry]


def into_record(module: Module) -> dict[str, Record]:
    """Return the tree of parameters and tensors; branches without any are left out.

    Raises:
        ArgumentError: when two parameters that are not the same have the same id.
        RecordError: for a dict whose keys make no paths.
    """
    _walk.by_id(module)
    record = _branch(module)
    assert isinstance(record, dict)
    return record


def _branch(value: Any) -> Record:
    if isinstance(value, Param):
        return ParamEntry(value.id, _entry(value))
    if isinstance(value, Tensor):
        return value.detach()
    out: dict[str, Record] = {}
    held = [(name, part) for name, part in _walk.parts(value) if _walk.tensors(part)]
    names = [name for name, _ in held]
    if len(set(names)) < len(names) or any("." in name for name in names):
        raise RecordError(
            "into_record",
            "keys of a dict are no names",
            got=", ".join(map(repr, value)),
            expected="keys that differ as text, without dots",
        )
    for name, part in held:
        out[name] = _branch(part)
    return out


def _entry(param: Param) -> Tensor[Any] | TensorEntry:
    """A lazy parameter is described, and made only when its numbers are written."""
    if param.is_initialized:
        return param.value.detach()
    return TensorEntry(param.shape, param.dtype, lambda: param.value.numpy())  # noqa: PLW0108


def load_record(module: M, record: Record, device: Backend | None) -> M:
    """Return the module with the parameters and tensors of ``record``."""
    found: Found = {}
    _collect(record, "", found)
    wanted: dict[str, Param | Tensor[Any]] = {}

    def note(path: str, item: Any) -> Any:
        wanted[path] = item
        return item

    _walk.changed(module, note, on_tensor=note)
    paths = {**wanted, **dict(_walk.params(module))}  # those of a shared parameter too
    _same_names(module, set(paths), set(found))
    ids = _ids(paths, found)

    def load(path: str, param: Param) -> Param:
        tensor = _fitting(path, found[path], param.shape)
        value = _tensor(tensor, param.dtype.name, device or param.device)
        return Param(value, id=ids[id(param)], trainable=not param.frozen, role=param.role)

    def load_tensor(path: str, old: Tensor[Any]) -> Tensor[Any]:
        tensor = _fitting(path, found[path], old.shape)
        return _tensor(tensor, old.dtype.name, device or old.device).detach()

    return _walk.changed(module, load, on_tensor=load_tensor)


def _fitting(path: str, entry: Any, shape: tuple[int, ...]) -> Tensor[Any] | TensorEntry:
    """The tensor of an entry, of the shape that the module has there."""
    tensor: Tensor[Any] | TensorEntry = entry.tensor if isinstance(entry, ParamEntry) else entry
    if tuple(tensor.shape) != shape:
        raise RecordError(
            "load_record",
            f"shape of {path} differs",
            got=tuple(tensor.shape),
            expected=shape,
            hint="load with the config that the record was saved with",
        )
    return tensor


def _ids(paths: dict[str, Any], found: Found) -> dict[int, str]:
    """The id of each parameter: the record's, and a fresh one where the record has it twice.

    Raises:
        RecordError: when the module shares a parameter and the record holds two.
    """
    ids: dict[int, str] = {}
    first: dict[int, str] = {}
    taken: set[str] = set()
    for path, param in paths.items():
        entry = found[path]
        if isinstance(param, Param) != isinstance(entry, ParamEntry):
            raise RecordError(
                "load_record",
                f"{path} is not of one kind",
                got=type(entry).__name__,
                expected="a parameter" if isinstance(param, Param) else "a tensor",
            )
        if not isinstance(entry, ParamEntry):
            continue
        before = first.setdefault(id(param), path)
        if before == path:
            ids[id(param)] = new_id() if entry.id in taken else entry.id
            taken.add(entry.id)
        elif _entry_id(found[before]) != entry.id:
            raise RecordError(
                "load_record",
                "the module shares a parameter that is two in the record",
                got=f"{before} and {path}",
                expected="one id",
                hint="load into a module that does not tie them",
            )
    return ids


def _entry_id(entry: Any) -> str:
    found: str = entry.id
    return found


def _collect(record: Record, path: str, found: Found) -> None:
    if isinstance(record, ParamEntry | Tensor | TensorEntry) and path:
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
