"""What fits what when a record is loaded: names, shapes, versions, and the report of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, get_args

from phlox_record import ParamEntry, TensorEntry, layout_of
from phlox_tensor import ArgumentError, RecordError, Tensor
from phlox_tensor.names import some

Entry: TypeAlias = "ParamEntry | Tensor[Any] | TensorEntry"
Found: TypeAlias = dict[str, Entry]
Layout: TypeAlias = Literal["phlox", "pytorch"]
Remap: TypeAlias = Mapping[str, str | None]
Migration: TypeAlias = Callable[[Found], Found]


_LEFT_OUT: Final = 8  # parameters that a hint names to leave them out


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What loading a record into a module does.

    Attributes:
        applied: paths that the record and the module share.
        missing: paths of the module that the record lacks.
        unused: paths of the record that the module lacks.
        wrong_shape: path, shape in the record and shape in the module, where these differ.
        similar: for missing paths, an unused one that reads alike and has the shape.
    """

    applied: tuple[str, ...]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    wrong_shape: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]
    similar: Mapping[str, str]

    @property
    def complete(self) -> bool:
        """Whether record and module are of one structure."""
        return not (self.missing or self.unused or self.wrong_shape)

    def __str__(self) -> str:
        lines = [f"{len(self.applied)} applied"]
        for word, paths in (("missing", self.missing), ("unused", self.unused)):
            lines += [f"{word}: {path}{self._alike(path)}" for path in paths]
        lines += [f"wrong shape: {p}: {a}, expected {b}" for p, a, b in self.wrong_shape]
        return "\n".join(lines)

    def _alike(self, path: str) -> str:
        return f" (did you mean {self.similar[path]}?)" if path in self.similar else ""

    def check(self, name: str, *, partial: bool) -> None:
        """Raise RecordError for what does not fit; ``partial`` lets names be missing or unused."""
        if self.wrong_shape:
            paths, before, wanted = zip(*self.wrong_shape, strict=True)
            one = len(paths) == 1
            names = "|".join(re.escape(path) for path in paths)
            left = f"partial=True, remap={{{names if one else f'^({names})$'!r}: None}}"
            usual = "load with the config that the record was saved with"
            few = len(paths) <= _LEFT_OUT
            raise RecordError(
                "load_record",
                f"shape of {paths[0]} differs" if one else f"shapes differ: {some(paths)}",
                got=", ".join(map(str, before[:4])),
                expected=", ".join(map(str, wanted[:4])),
                hint=f"{usual}, or leave {'it' if one else 'them'} out: {left}" if few else usual,
            )
        if partial and not self.applied:
            expected = some(list(self.missing)) or "parameters"
            raise RecordError(
                "load_record",
                "nothing in the record fits",
                got=some(list(self.unused)),
                expected=expected,
                hint='remap={r"^old\\.": "new."} changes names',
            )
        if partial or self.complete:
            return
        parts = [f"missing {some(list(self.missing))}"] if self.missing else []
        parts += [f"unknown {some(list(self.unused))}"] if self.unused else []
        alike = [f"{b} for {a}" for a, b in self.similar.items()]
        meant = f"did you mean {some(alike)}? remap=... changes names; " if alike else ""
        raise RecordError(
            "load_record",
            f"the record is of another module than {name}",
            got=", ".join(parts),
            expected=f"{len(self.applied) + len(self.missing)} parameters by the names of the "
            "module",
            hint=f"{meant}print(model) shows its names, `phlox record show FILE` those of a file",
        )


def check_layout(layout: object, op: str) -> None:
    """Refuse a word that is no layout."""
    if layout not in get_args(Layout):
        expected = " or ".join(map(repr, get_args(Layout)))
        hint = 'layout="pytorch" for the names and layouts of PyTorch'
        raise ArgumentError(op, "no such layout", got=repr(layout), expected=expected, hint=hint)


def stated_layout(found: Found) -> Layout | None:
    """Return the layout that entries say they are in; None where a file of others does not say.

    Raises:
        RecordError: some are in the layout of PyTorch, others are not.
    """
    said = {layout_of(entry): path for path, entry in found.items()}
    if "pytorch" in said and len(said) > 1:
        raise RecordError(
            "load_record",
            "entries are in two layouts",
            got=f"{said.pop('pytorch')} in that of PyTorch, {some(list(said.values()))} not",
            expected="all in one",
            hint='layout="pytorch", with linear weights the other way round',
        )
    if not said:
        return "phlox"
    return None if None in said else "pytorch" if "pytorch" in said else "phlox"


def check_alike(paths: Iterable[str], ours: Found, theirs: Found) -> None:
    """Refuse entries that fit in both layouts, and are other numbers in each."""
    for path in paths:
        alike = ours[path] is theirs.get(path) or max(shape_of(ours[path]), default=1) <= 1
        if not alike and layout_of(ours[path]) is None:
            raise RecordError(
                "load_record",
                "the file does not say in whose layout it is",
                got=f"{path} of {shape_of(ours[path])}, which fits either way round",
                expected="a layout",
                hint='layout="pytorch" if PyTorch wrote it, or layout="phlox"',
            )


_COMPARED: Final = 16  # missing names that all unused ones are compared with, letter by letter


def compared(paths: Mapping[str, Any], found: Found) -> LoadReport:
    """Return how entries fit the parameters of a module, by path."""
    shared = {id(item) for path, item in paths.items() if path in found}
    missing = sorted(p for p in paths if p not in found and id(paths[p]) not in shared)
    unused = [path for path in found if path not in paths]
    both = [path for path in paths if path in found]
    wrong = {p for p in both if shape_of(found[p]) != tuple(paths[p].shape)}
    return LoadReport(
        tuple(path for path in both if path not in wrong),
        tuple(missing),
        tuple(sorted(unused)),
        tuple((p, shape_of(found[p]), tuple(paths[p].shape)) for p in both if p in wrong),
        {},
    )


def with_similar(report: LoadReport, paths: Mapping[str, Any], found: Found) -> LoadReport:
    """Return the report with the unused names that read like missing ones."""
    near: dict[str, str] = {}
    for path in report.missing[:_COMPARED]:
        fits = [name for name in report.unused if shape_of(found[name]) == tuple(paths[path].shape)]
        near.update((path, alike) for alike in get_close_matches(path, fits, 1, 0.5))
    return replace(report, similar=near)


def tensor_of(entry: Entry) -> Tensor[Any] | TensorEntry:
    """Return the tensor of an entry."""
    return entry.tensor if isinstance(entry, ParamEntry) else entry


def shape_of(entry: Entry) -> tuple[int, ...]:
    """Return the shape of the tensor of an entry."""
    return tuple(tensor_of(entry).shape)


def renamed(found: Found, remap: Remap) -> Found:
    """Return the entries under names that the patterns make of theirs, one after the other."""
    names = {name: name for name in found}
    for pattern, new in remap.items():
        try:
            known = re.compile(pattern)
            hits = [old for old, name in names.items() if known.search(name)]
            for old in hits:
                if new is None:
                    del names[old]
                else:
                    names[old] = known.sub(new, names[old])
        except (re.error, IndexError) as error:
            raise RecordError("remap", f"{pattern!r} is no pattern", got=str(error)) from None
        if not hits:
            got, seen = repr(pattern), some(list(names.values()))
            raise RecordError("remap", "a pattern fits no name", got=got, expected=seen)
    result: Found = {}
    for old, name in names.items():
        if name in result:
            raise RecordError("remap", "two entries get one name", got=name, expected="two names")
        result[name] = found[old]
    return result


def migrated(modules: Mapping[str, Any], found: Found, versions: dict[str, int]) -> Found:
    """Return the entries as the modules of today have them, the outer before the inner.

    Raises:
        RecordError: a version that is newer than the module, or that no migration starts from.
    """
    for path, part in modules.items():
        found = _migrated(path, part, found, versions.get(path, 1))
    return found


def _migrated(path: str, module: Any, found: Found, version: int) -> Found:
    kind = type(module)
    known: int = kind.record_version
    steps: Mapping[int, Migration] = kind.migrations
    if version > known:
        raise RecordError(
            "load_record",
            f"the record of {path or kind.__name__} is newer than the module",
            got=f"version {version}",
            expected=f"version {known} or older of {kind.__name__}",
        )
    prefix = f"{path}." if path else ""
    for before in range(version, known):
        if before not in steps:
            raise RecordError(
                "load_record",
                f"no migration of {kind.__name__} starts from its version {before}",
                got=f"migrations from {sorted(steps)}",
                expected=f"one from each of {list(range(version, known))}",
                hint=f"migrations = {{{before}: lambda entries: ...}} in {kind.__name__}",
            )
        own = {k.removeprefix(prefix): v for k, v in found.items() if k.startswith(prefix)}
        rest = {k: v for k, v in found.items() if not k.startswith(prefix)}
        after = _after(kind, before, steps[before], own)
        found = {**rest, **{prefix + k: v for k, v in after.items()}}
    return found


def _after(kind: type, version: int, migration: Migration, own: Found) -> Found:
    """What a migration makes of the entries of its module."""
    name = f"the migration of {kind.__name__} from version {version}"
    try:
        after: Any = migration(own)
    except Exception as error:
        got = f"{type(error).__name__}: {error}, with entries {some(sorted(own))}"
        raise RecordError("load_record", f"{name} failed", got=got) from error
    if not isinstance(after, Mapping):
        raise RecordError(
            "load_record",
            f"{name} gave no entries",
            got=type(after).__name__,
            expected="a dict from paths to entries",
            hint="return entries",
        )
    return dict(after)
