"""Records by PyTorch's names and layouts, where these differ from ours.

A layer says what differs: ``transposed_in_pytorch`` names weights that stand the other way round,
``names_in_pytorch`` the names of parts, empty where theirs are not named by it,
``fused_in_pytorch`` linear maps that are one there, ``beside_in_pytorch`` the names of what a
weight is made of, which stand beside it there, the newest first; ``hint_for_pytorch`` is what to
do with a part that has no form there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from phlox_record import ParamEntry, Record, TensorEntry
from phlox_tensor import RecordError, Tensor

from ..parts import fields as _fields
from ..parts import walk as _walk
from .branches import Branches
from .report import Entry, Found, shape_of, tensor_of

# State that PyTorch always keeps, and we where a mean of all batches asks for it.
_UNKNOWN_HERE: Final = "num_batches_tracked"
_FUSED: Final = "in_proj"


def from_pytorch(module: _fields.ModuleNode, found: Found) -> Found:
    """Return the entries of a ``state_dict`` as the layers of ``module`` keep them."""
    known = {path for path, _ in _walk.params(module)}
    found = {
        path: entry
        for path, entry in found.items()
        if path in known or path.rpartition(".")[2] != _UNKNOWN_HERE
    }
    branches, turned = Branches(found.items()), set[str]()
    for path, part in _walk.modules(module):
        for ours, theirs in getattr(part, "names_in_pytorch", {}).items():
            if theirs or not branches.holds_below(_fields.join(path, ours)):
                branches.move(_fields.join(path, theirs), _fields.join(path, ours))
        for inside, forms in _beside(path, part).items():
            for form in forms:
                branches.move(form, inside)
        _part(branches, path, getattr(type(part), "fused_in_pytorch", ()))
        turned |= _turned(path, part)
    entries = branches.entries()
    return {path: _transposed(e) if path in turned else e for path, e in entries.items()}


def to_pytorch(module: _fields.ModuleNode, record: dict[str, Record]) -> dict[str, Record]:
    """Return a record as the ``state_dict`` of the same layers in PyTorch."""
    found = dict(_flat(record))
    seen: dict[int, Entry] = {}
    for path, part in _walk.modules(module):
        for name in _turned(path, part) & found.keys():
            found[name] = seen.setdefault(id(found[name]), _transposed(found[name]))
    branches = Branches(found.items())
    for path, part in reversed(_walk.modules(module)):
        if hasattr(type(part), "hint_for_pytorch"):
            raise RecordError(
                "into_record",
                f"{path} has no form in PyTorch",
                got=type(part).__name__,
                expected="parameters",
                hint=type(part).hint_for_pytorch,
            )
        for inside, (form, *_) in _beside(path, part).items():
            branches.move(inside, form)
        _join(branches, path, getattr(type(part), "fused_in_pytorch", ()))
        for ours, theirs in getattr(part, "names_in_pytorch", {}).items():
            branches.move(_fields.join(path, ours), _fields.join(path, theirs))
    result: dict[str, Any] = {}
    marked: dict[int, Entry] = {}
    for path, entry in branches.entries().items():
        value = marked.setdefault(id(entry), _marked(entry))
        *owners, last = path.split(".")
        at = result
        for owner in owners:
            at = at.setdefault(owner, {})
        at[last] = value
    return result


def _flat(record: dict[str, Record]) -> Iterator[tuple[str, Any]]:
    work: list[tuple[str, Any]] = [("", record)]
    while work:
        path, value = work.pop()
        if isinstance(value, dict):
            work += [(_fields.join(path, name), value[name]) for name in reversed(value)]
        else:
            yield path, value


def _turned(path: str, part: Any) -> set[str]:
    """The paths of weights that PyTorch keeps the other way round."""
    names = getattr(type(part), "transposed_in_pytorch", ())
    made = {n: getattr(type(getattr(part, n)), "beside_in_pytorch", ()) for n in names}
    inside = {_fields.join(name, of) for name, parts in made.items() for of in parts}
    return {_fields.join(path, name) for name in {*names, *inside}}


def _beside(path: str, part: Any) -> dict[str, list[str]]:
    """What the parts of a weight are called there, by their paths."""
    owner, _, name = path.rpartition(".")
    return {
        _fields.join(path, of): [_fields.join(owner, form.format(name)) for form in forms]
        for of, forms in getattr(type(part), "beside_in_pytorch", {}).items()
    }


def _part(branches: Branches, path: str, maps: tuple[str, ...]) -> None:
    """Take weight and bias of several maps out of those of the one in PyTorch."""
    for name in maps:
        alone = branches.pop(_fields.join(path, f"{name[0]}_proj_weight"))
        if alone is not None:
            branches.add(_fields.join(path, f"{name}.weight"), *alone)
    for kind in ("weight", "bias") if maps else ():
        place = _fields.join(path, f"{_FUSED}_{kind}")
        taken = branches.pop(place)
        if taken is None:
            continue
        entry, before = taken
        if not _rows(entry, len(maps)):
            branches.add(place, entry, before)
            continue
        for i, name in enumerate(maps):
            part = _rows_of(entry, i, len(maps))
            branches.add(_fields.join(path, f"{name}.{kind}"), part, (*before, i))


def _join(branches: Branches, path: str, maps: tuple[str, ...]) -> None:
    """Put weight and bias of several maps together, as those of one.

    PyTorch has no layer whose heads share keys and values: there they stay as they are.
    """
    names = {kind: [_fields.join(path, f"{n}.{kind}") for n in maps] for kind in ("weight", "bias")}
    weights = [w for w in map(branches.get, names["weight"]) if w is not None]
    if not maps or len(weights) < len(maps) or len({shape_of(w)[0] for w in weights}) > 1:
        return
    alone = len({shape_of(w) for w in weights}) > 1  # made from inputs of other sizes
    for kind, places in names.items():
        entries = [taken[0] for taken in map(branches.pop, places) if taken is not None]
        if kind == "weight" and alone:
            for name, entry in zip(maps, entries, strict=True):
                branches.add(_fields.join(path, f"{name[0]}_proj_weight"), entry)
        elif entries:
            branches.add(_fields.join(path, f"{_FUSED}_{kind}"), _concatenated(entries))


def _rows(entry: Entry, count: int) -> bool:
    shape = shape_of(entry)
    return bool(shape) and shape[0] % count == 0


def _rows_of(entry: Entry, place: int, count: int) -> TensorEntry:
    """One of several parts of equal size, read when it is needed."""
    tensor = tensor_of(entry)
    size = tensor.shape[0] // count
    rows = slice(place * size, (place + 1) * size)
    return TensorEntry((size, *tensor.shape[1:]), tensor.dtype, lambda: tensor.numpy()[rows])


def _concatenated(entries: list[Entry]) -> TensorEntry:
    tensors = [tensor_of(entry) for entry in entries]
    shape = (sum(t.shape[0] for t in tensors), *tensors[0].shape[1:])

    def read() -> Any:
        arrays = [tensor.numpy() for tensor in tensors]
        return arrays[0].__array_namespace__().concat(arrays)

    return TensorEntry(shape, tensors[0].dtype, read)


def _marked(entry: Entry) -> Entry:
    """An entry that says that it is in PyTorch's layout, to which files keep."""
    if isinstance(entry, ParamEntry):
        return ParamEntry(entry.id, cast("TensorEntry", _marked(entry.tensor)))
    return TensorEntry(entry.shape, entry.dtype, entry.numpy, layout="pytorch")


def _transposed(entry: Entry) -> Entry:
    if isinstance(entry, ParamEntry):
        return ParamEntry(entry.id, cast("TensorEntry", _transposed(entry.tensor)))
    if len(entry.shape) != 2:
        return entry  # of a wrong shape, which the report says
    if isinstance(entry, Tensor):
        return TensorEntry(entry.shape[::-1], entry.dtype, lambda: entry.numpy().T)
    return TensorEntry(entry.shape[::-1], entry.dtype, lambda: entry.numpy().T, drop=entry.drop)
