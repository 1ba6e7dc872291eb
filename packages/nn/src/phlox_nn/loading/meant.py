"""What somebody meant whose record does not fit: another branch of it, names, or layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from phlox_record import ParamEntry, TensorEntry
from phlox_tensor import RecordError, Tensor
from phlox_tensor.names import some

from .report import Layout, LoadReport, Remap

Fit = Callable[[Any, "Remap | None", "Layout | None"], "LoadReport"]

# A search takes this many times what a load takes, at most, and only where a load fails.
_BRANCHES: Final = 4
_MOST_ENTRIES: Final = 20_000


def branch_of(record: Any, at: str) -> Any:
    """Return the part of a record at a path such as ``"state_dict"`` or ``"models.0"``."""
    if isinstance(record, dict) and at in record:
        return record[at]
    branch = record
    for name in at.split("."):
        if isinstance(branch, list) and name.isdecimal() and int(name) < len(branch):
            branch = branch[int(name)]
        elif isinstance(branch, dict) and name in branch:
            branch = branch[name]
        else:
            known = list(branch) if isinstance(branch, dict) else []
            what = f"there is no {name!r} on the way to {at!r}"
            raise RecordError("load_file", what, got=at, expected=some(known) or "a dict")
    return branch


def advice(
    record: Any,
    remap: Remap | None,
    layout: Layout | None,
    paths: Mapping[str, Any],
    fit: Fit,
    file_at: tuple[str, ...] | None,
) -> str | None:
    """Return what to type where a record fits better in another way than the one asked for.

    Args:
        record: what was to be loaded.
        remap: as asked for.
        layout: as asked for.
        paths: the names of the module.
        fit: says how a record would fit with other names and in another layout.
        file_at: where in a file the record is, if ``load_file`` was called.
    """
    whose: tuple[Layout, ...] = ("phlox", "pytorch")
    asked = _score(fit, record, remap, layout)
    best, found = (asked[0] if asked else 0, 1), None  # only more names are better
    for at, branch in _branches(record):
        ways: list[tuple[tuple[str, str] | None, Layout | None]] = [(None, layout)]
        ways.extend((pattern, layout) for pattern in _patterns(branch, paths))
        # What could not be compared at all does not fit better in another layout.
        ways.extend((None, other) for other in whose if asked and not at)
        for pattern, other in ways:
            changed = remap if pattern is None else {**dict([pattern]), **(remap or {})}
            score = _score(fit, branch, changed, other)
            if score and score > best and 2 * score[0] >= len(paths):
                best, found = score, (at, pattern, other)
    if found is None:
        return None
    at, pattern, other = found
    place = ".".join([*(file_at or ()), *at])
    words = [f"at={place!r}".replace("'", '"')] if place and file_at is not None else []
    if pattern is not None:
        more = ", **remap" if remap else ""
        words.append(f'remap={{r"{pattern[0]}": "{pattern[1]}"{more}}}')
    if other != layout:
        words.append(f'layout="{other}"')
    if best[1] < 0:
        words.append("partial=True")
    if file_at is not None:
        return f"model.load_file({', '.join(['path', *words])})"
    keys = "".join(f'["{name}"]' for name in at)
    return f"model.load_record({', '.join([f'record{keys}', *words])})"


def _score(
    fit: Fit, record: Any, remap: Remap | None, layout: Layout | None
) -> tuple[int, int] | None:
    """How well a record fits: how many entries, and how few are left over."""
    try:
        report = fit(record, remap, layout)
    except RecordError:
        return None
    return len(report.applied), -len(report.missing) - len(report.unused)


def _branches(record: Any) -> list[tuple[tuple[str, ...], Any]]:
    """A record, and the dicts in it that hold most tensors, two levels deep."""
    found: list[tuple[tuple[str, ...], Any]] = [((), record)]
    for at, branch in found:
        if isinstance(branch, dict) and len(at) < 2:
            inside = [(key, part) for key, part in branch.items() if isinstance(part, dict)]
            found += [((*at, key), part) for key, part in inside if "." not in key]
    counts = {at: sum(1 for _ in _names(branch)) for at, branch in found}
    if counts[()] > _MOST_ENTRIES:
        return []
    return sorted(found, key=lambda each: -counts[each[0]])[:_BRANCHES]


def _patterns(branch: Any, paths: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What most names of a branch begin with, left out; and what those of the module do, added."""
    names = ["", *_names(branch)]
    for depth in (1, 2):
        starts = Counter(
            ".".join(name.split(".")[:depth]) for name in names if name.count(".") >= depth
        )
        for start, _ in starts.most_common(1):
            yield f"^{re.escape(start)}\\.", ""
    owners = Counter(path.split(".")[0] for path in paths if "." in path)
    for owner, _ in owners.most_common(1):
        yield "^", f"{owner}."


def _names(branch: Any) -> Iterator[str]:
    work: list[tuple[str, Any]] = [("", branch)]
    while work:
        path, node = work.pop()
        if isinstance(node, dict):
            work += [(f"{path}.{key}" if path else key, part) for key, part in node.items()]
        elif isinstance(node, ParamEntry | TensorEntry | Tensor) or hasattr(node, "__dlpack__"):
            yield path
