"""Modules to records and back: the record of a module is the tree of its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from phlox_record import ParamEntry, Record, TensorEntry, layout_of, materialize
from phlox_tensor import Backend, DType, RecordError, Tensor, asarray

from ..ids import new_id
from ..param.param import Param
from ..parts import fields as _fields
from ..parts import walk as _walk
from ..parts.training import trained_there
from .foreign import from_pytorch, to_pytorch
from .meant import advice
from .report import (
    Entry,
    Found,
    Layout,
    LoadReport,
    Remap,
    check_alike,
    check_layout,
    compared,
    migrated,
    renamed,
    stated_layout,
    tensor_of,
    with_similar,
)

M = TypeVar("M", bound=_fields.ModuleNode)
_Parts: TypeAlias = list[tuple[str, Any]]
_Matched: TypeAlias = tuple[LoadReport, Found, dict[str, Any]]

VERSION: Final = "(version)"  # no field has such a name


def into_record(module: _fields.ModuleNode, layout: Layout) -> dict[str, Record]:
    """Return the tree of parameters and tensors; branches without any are left out.

    Raises:
        ArgumentError: for an unknown layout; when two parameters that are not the same have the
            same id.
        RecordError: for a dict whose keys make no paths.
    """
    check_layout(layout, "into_record")
    _walk.by_id(module)
    record = _record_of(module)
    return record if layout == "phlox" else to_pytorch(module, record)


def _record_of(module: _fields.ModuleNode) -> dict[str, Record]:
    """The record of a module; a shared parameter is one entry."""
    nodes: list[tuple[int, str, Any]] = [(-1, "", module)]
    for number, (_, _, value) in enumerate(nodes):  # which grows meanwhile
        nodes += [(number, name, part) for name, part in _fields.parts(value)]
    kept = set[int]()  # what is or holds a parameter or tensor
    for number in range(len(nodes) - 1, 0, -1):
        if number in kept or isinstance(nodes[number][2], Param | Tensor):
            kept |= {number, nodes[number][0]}
    made: dict[int, dict[str, Record]] = {0: _branch(module)}
    entries: dict[int, ParamEntry] = {}
    for number in sorted(kept - {0}):
        outer, name, value = nodes[number]
        if "." in name or name in made[outer]:
            raise _no_names(nodes[outer][2])
        if isinstance(value, Param):
            new = ParamEntry(value.id, _entry(value))
            made[outer][name] = entries.setdefault(id(value), new)
        elif isinstance(value, Tensor):
            made[outer][name] = value.detach()
        else:
            made[outer][name] = made[number] = _branch(value)
    return made[0]


def _branch(value: Any) -> dict[str, Record]:
    """The record of a module or container before its parts are there."""
    version = getattr(type(value), "record_version", 1)
    of_module = isinstance(value, _fields.ModuleNode) and version > 1
    return {VERSION: version} if of_module else {}


def _no_names(keys: Any) -> RecordError:
    return RecordError(
        "into_record",
        "keys of a dict are no names",
        got=", ".join(map(repr, keys)),
        expected="keys that differ as text, without dots",
    )


def _entry(param: Param) -> Tensor[Any] | TensorEntry:
    """A lazy parameter is described, and made only when its numbers are written."""
    if param.is_initialized:
        return param.value.detach()
    return TensorEntry(param.shape, param.dtype, lambda: param.value.numpy())  # noqa: PLW0108


def load_report(
    module: _fields.ModuleNode, record: Record, remap: Remap | None, layout: Layout | None
) -> LoadReport:
    """Return what loading would apply and what not."""
    report, found, paths = _matched(_walk.survey(module), record, remap, layout)
    return with_similar(report, paths, found)


def load_record(
    module: M,
    record: Record | Mapping[str, Any],
    device: Backend | None,
    *,
    partial: bool,
    remap: Remap | None,
    layout: Layout | None,
    file_at: tuple[str, ...] | None = None,
) -> M:
    """Return the module with the parameters and tensors of ``record``."""
    parts = _walk.survey(module)
    try:
        report, found, paths = _matched(parts, record, remap, layout)
        with_similar(report, paths, found).check(type(module).__name__, partial=partial)
    except RecordError as error:

        def fit(branch: Any, names: Remap | None, whose: Layout | None) -> LoadReport:
            return _matched(parts, branch, names, whose)[0]

        hint = advice(record, remap, layout, _paths(parts), fit, file_at)
        if hint is None:
            raise
        raise RecordError(
            error.op, error.what, got=error.got, expected=error.expected, hint=hint
        ) from None
    there = {path: item for path, item in paths.items() if path in found}
    ids = _ids(there, found)
    places = {id(item): path for path, item in reversed(there.items())}
    first = {id(item): path for path, item in reversed(paths.items())}

    def load(path: str, item: Param | Tensor[Any]) -> Param | Tensor[Any]:
        place = path if path in found else places.get(id(item))  # of a module at several places
        if place is None:
            return item if device is None else item.to_device(device)
        value = _tensor(place, found[place], item, device)
        if isinstance(item, Tensor):
            return value.detach()
        return Param(value, id=ids[id(item)], trainable=not item.frozen, role=item.role)

    new = {
        path: load(path, item)
        for path, item in paths.items()
        if isinstance(item, Tensor) or first[id(item)] == path
    }
    fields = None if device is None else trained_there(module, device)
    return _walk.exchanged(module, new, fields)


def _matched(
    parts: _Parts,
    record: Record | Mapping[str, Any],
    remap: Remap | None,
    layout: Layout | None,
) -> _Matched:
    """What fits what: the report, the entries by path, and the module's own."""
    if layout is not None:
        check_layout(layout, "load_record")
    found: Found = {}
    versions: dict[str, int] = {}
    _collect(record, found, versions)
    if remap:
        found = renamed(found, remap)
    layout = stated_layout(found) if layout is None else layout
    if layout is not None:
        return _in_layout(parts, found, versions, layout)
    ours = _in_layout(parts, found, versions, "phlox")
    theirs = _in_layout(parts, found, versions, "pytorch")
    fits = [(not report.wrong_shape, len(report.applied)) for report, _, _ in (ours, theirs)]
    has_ours = any(layout_of(entry) == "phlox" for entry in found.values())
    if fits[0] == fits[1] or has_ours:
        check_alike(ours[0].applied, ours[1], theirs[1])
    return theirs if fits[1] > fits[0] and not has_ours else ours


def _in_layout(parts: _Parts, found: Found, versions: dict[str, int], layout: Layout) -> _Matched:
    paths = _paths(parts)
    modules = {path: part for path, part in parts if path not in paths}
    if layout == "pytorch":
        found = from_pytorch(modules, found, paths)
    found = migrated(modules, found, versions)
    return compared(paths, found), found, paths


def _paths(parts: _Parts) -> dict[str, Any]:
    """Parameters by path, then tensors."""
    return {
        path: part for kind in (Param, Tensor) for path, part in parts if isinstance(part, kind)
    }


def _ids(paths: dict[str, Any], found: Found) -> dict[int, str]:
    """The id of each parameter: the record's, and a fresh one where the record has none or twice.

    Raises:
        RecordError: when the module shares a parameter and the record holds two.
    """
    ids: dict[int, str] = {}
    first: dict[int, str] = {}
    taken: set[str] = set()
    for path, param in paths.items():
        entry = found[path]
        if not isinstance(param, Param):
            if isinstance(entry, ParamEntry):
                raise _two_kinds(path, entry)
            continue
        id_of = entry.id if isinstance(entry, ParamEntry) else None
        before = first.setdefault(id(param), path)
        if before == path:
            ids[id(param)] = new_id() if id_of is None or id_of in taken else id_of
            taken.add(ids[id(param)])
        elif not _one(found[before], entry):
            raise RecordError(
                "load_record",
                "the module shares a parameter that is two in the record",
                got=f"{before} and {path}",
                expected="one id, or the same numbers",
                hint=f"load into a module that does not tie them; remap={{{re.escape(path)!r}: "
                f"None}} leaves {path} out",
            )
    return ids


def _two_kinds(path: str, entry: Entry) -> RecordError:
    return RecordError(
        "load_record", f"{path} is not of one kind", got=type(entry).__name__, expected="a tensor"
    )


def _one(a: Entry, b: Entry) -> bool:
    """Whether two entries are one parameter; of those of other programs the numbers tell."""
    if isinstance(a, ParamEntry) and isinstance(b, ParamEntry):
        return a.id == b.id
    if tensor_of(a) is tensor_of(b):
        return True
    x, y = (tensor_of(entry).numpy() for entry in (a, b))
    return bool(((x == y) | ((x != x) & (y != y))).all())  # noqa: PLR0124 - a nan is none


def _collect(record: Record | Mapping[str, Any], found: Found, versions: dict[str, int]) -> None:
    work: list[tuple[str, Any]] = [("", record)]
    while work:
        path, item = work.pop()
        if isinstance(item, ParamEntry | Tensor | TensorEntry) and path:
            found[path] = item
        elif isinstance(item, dict):
            version = item.get(VERSION)
            if type(version) is int:
                versions[path] = version
            inside = [name for name in item if name != VERSION or type(version) is not int]
            work += [(".".join(filter(None, (path, name))), item[name]) for name in inside[::-1]]
        elif path and hasattr(item, "__dlpack__"):  # a state_dict of PyTorch, arrays of NumPy
            found[path] = _foreign(asarray(item), type(item))
        else:
            raise RecordError(
                "load_record",
                f"not a record of a module at {path or 'the root'}",
                got=type(item).__name__,
                expected="a tree of parameters",
            )


def _foreign(tensor: Tensor[Any], kind: type) -> Entry:
    if kind.__module__.partition(".")[0] != "torch":
        return tensor
    return TensorEntry(tensor.shape, tensor.dtype, tensor.numpy, layout="pytorch")


def _tensor(
    path: str, entry: Entry, like: Param | Tensor[Any], device: Backend | None
) -> Tensor[Any]:
    """The tensor of an entry, of the element type that the module has there.

    Raises:
        RecordError: when that type cannot hold its numbers.
    """
    tensor = tensor_of(entry)
    target = device or like.device
    if isinstance(tensor, TensorEntry):
        chosen: DType | Literal["device"] = like.dtype if like.dtype.kind == "Float" else "device"
        # With its path, which errors name.
        tree = {path: tensor}
        tensor = materialize(tree, device=target, dtype=chosen, op="load_record")[path]
    value = tensor.to_device(target)
    return value if value.dtype.name == like.dtype.name else _cast(path, value, like.dtype)


def _cast(path: str, value: Tensor[Any], dtype: DType) -> Tensor[Any]:
    """The tensor in another type: floats may be rounded, nothing else may be lost."""
    value = value.detach()
    made = value.astype(dtype.name)
    if value.dtype.kind == dtype.kind == "Float":
        lost = value.isfinite() & ~made.isfinite()
    else:
        lost = made.astype(value.dtype.name) != value
        if value.dtype.kind == dtype.kind == "Int":  # -1 becomes 2**64 - 1, and -1 again
            lost = lost | ((made < 0) != (value < 0))
    if lost.any().item():
        first = value.reshape((-1,))[lost.reshape((-1,)).astype("int32").argmax()]
        raise RecordError(
            "load_record",
            f"{path} does not fit {dtype.name}",
            got=f"{value.dtype.name}, {first.item()} among it",
            expected=f"values of {dtype.name}",
            hint=f"keep what the module has there: partial=True, remap={{{path!r}: None}}",
        )
    return made
