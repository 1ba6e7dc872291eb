"""Records by PyTorch's names and layouts, where these differ from ours.

A layer says what differs: ``transposed_in_pytorch`` names weights that stand the other way round,
``names_in_pytorch`` the names of parts, empty where theirs are not named by it,
``fused_in_pytorch`` linear maps that are one there, ``beside_in_pytorch`` the names of what a
weight is made of, which stand beside it there, the newest first; ``hint_for_pytorch`` is what to
do with a part that has no form there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from phlox_record import ParamEntry, Record, TensorEntry
from phlox_tensor import RecordError, Tensor

from ..parts import fields as _fields
from ..parts import walk as _walk
from .report import Entry, Found, shape_of, tensor_of

# State that PyTorch always keeps, and we where a mean of all batches asks for it.
_UNKNOWN_HERE: Final = "num_batches_tracked"
_FUSED: Final = "in_proj"


def from_pytorch(parts: dict[str, Any], found: Found, known: Mapping[str, Any]) -> Found:
    """Return the entries of a ``state_dict`` as the layers of a module keep them.

    Args:
        parts: the module and those in it, by path.
        known: their parameters and tensors, by path.
    """
    naming = _naming(parts)
    names: dict[str, str] = {}
    places: dict[str, None] = {}  # what is around parameters, the outer before the inner
    for path in known:
        for theirs in _names_of(path, naming):
            names.setdefault(theirs, path)
        places |= dict.fromkeys(path[:at] for at, letter in enumerate(path) if letter == ".")
    around = {_names_of(path, naming)[0]: path for path in places}
    fused: dict[str, list[str]] = {}
    for path, part in parts.items():
        if maps := getattr(type(part), "fused_in_pytorch", ()):
            for name in maps:
                alone = _names_of(_fields.join(path, f"{name[0]}_proj_weight"), naming)[0]
                names[alone] = _fields.join(path, f"{name}.weight")
            for kind in ("weight", "bias"):
                whole = _names_of(_fields.join(path, f"{_FUSED}_{kind}"), naming)[0]
                fused[whole] = [_fields.join(path, f"{name}.{kind}") for name in maps]
    turned = {name for path, part in parts.items() for name in _turned(path, part)}
    result: Found = {}
    for path, entry in found.items():
        if path.rpartition(".")[2] == _UNKNOWN_HERE and path not in known:
            continue
        several = fused.get(path, [])
        if several and _rows(entry, len(several)):
            made: Found = {p: _rows_of(entry, i, len(several)) for i, p in enumerate(several)}
        else:
            made = {names.get(path) or _inside(path, around): entry}
        result |= {p: _transposed(e) if p in turned else e for p, e in made.items()}
    return result


def to_pytorch(module: _fields.ModuleNode, record: dict[str, Record]) -> dict[str, Record]:
    """Return a record as the ``state_dict`` of the same layers in PyTorch."""
    found = dict(_flat(record))
    seen: dict[int, Entry] = {}
    parts = dict(_walk.modules(module))
    for path, part in parts.items():
        if hasattr(type(part), "hint_for_pytorch"):
            raise RecordError(
                "into_record",
                f"{path} has no form in PyTorch",
                got=type(part).__name__,
                expected="parameters",
                hint=type(part).hint_for_pytorch,
            )
        for name in _turned(path, part) & found.keys():
            found[name] = seen.setdefault(id(found[name]), _transposed(found[name]))
    for path, part in parts.items():
        _join(found, path, getattr(type(part), "fused_in_pytorch", ()))
    naming = _naming(parts)
    result: dict[str, Any] = {}
    marked: dict[int, Entry] = {}
    for path, entry in found.items():
        value = marked.setdefault(id(entry), _marked(entry))
        *owners, last = _names_of(path, naming)[0].split(".")
        at = result
        for owner in owners:
            at = at.setdefault(owner, {})
        at[last] = value
    return result


def _naming(parts: dict[str, Any]) -> dict[str, Any]:
    said = ("beside_in_pytorch", "names_in_pytorch")
    return {path: part for path, part in parts.items() if any(hasattr(part, n) for n in said)}


def _names_of(path: str, parts: dict[str, Any]) -> list[str]:
    """What PyTorch may call what is at a path, the usual name first.

    Args:
        path: ours.
        parts: those modules by path that have a word in the names of what is inside.
    """
    found, names = [path], path.split(".")
    for count in range(len(names) - 1, -1, -1):  # the innermost first
        owner = ".".join(names[:count])
        part = parts.get(owner)
        if part is None:
            continue
        found = _beside(owner, part).get(path, found)
        for ours, theirs in getattr(part, "names_in_pytorch", {}).items():
            before, after = _fields.join(owner, ours), _fields.join(owner, theirs)
            other = [_moved(each, before, after) for each in found]
            found = other if theirs or other == found else [*other, *found]
    return found


def _moved(path: str, before: str, after: str) -> str:
    if path == before:
        return after
    inside = path.removeprefix(f"{before}.")
    return path if inside == path else _fields.join(after, inside)


def _inside(path: str, around: dict[str, str]) -> str:
    """Our path of an entry that no parameter has, inside of what is known around it."""
    ends = [at for at, letter in enumerate(path) if letter == "."]
    for end in reversed(ends):
        if path[:end] in around:
            return _fields.join(around[path[:end]], path[end + 1 :])
    return _fields.join(around.get("", ""), path)


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


def _join(found: dict[str, Any], path: str, maps: tuple[str, ...]) -> None:
    """Put weight and bias of several maps together, as those of one.

    PyTorch has no layer whose heads share keys and values: there they stay as they are.
    """
    names = {kind: [_fields.join(path, f"{n}.{kind}") for n in maps] for kind in ("weight", "bias")}
    weights = [found[name] for name in names["weight"] if name in found]
    if not maps or len(weights) < len(maps) or len({shape_of(w)[0] for w in weights}) > 1:
        return
    alone = len({shape_of(w) for w in weights}) > 1  # made from inputs of other sizes
    for kind, places in names.items():
        entries = [found.pop(place) for place in places if place in found]
        if kind == "weight" and alone:
            for name, entry in zip(maps, entries, strict=True):
                found[_fields.join(path, f"{name[0]}_proj_weight")] = entry
        elif entries:
            found[_fields.join(path, f"{_FUSED}_{kind}")] = _concatenated(entries)


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
