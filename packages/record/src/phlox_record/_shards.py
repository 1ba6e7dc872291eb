"""Records in several files beside an index, as other programs lay them out too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from phlox_tensor import ArgumentError

from ._content import Content
from ._errors import Malformed, shown
from ._files import atomic_file
from ._json import parse
from ._layout import describe
from ._limits import Limits
from ._skeleton import PRECISION, TREE, WRITER, join, nested, split
from ._tree import TensorEntry, entries_with_paths

INDEX: Final = ".index.json"

WriteShard = Callable[[dict[str, TensorEntry], Path], None]
OpenShard = Callable[[Path], Content]


def write_shards(
    content: Content,
    place: Path,
    extension: str,
    most: int,
    limits: Limits,
    write: WriteShard,
) -> Path:
    """Write the tensors of a record to files of at most ``most`` bytes each, and their index last.

    Files have names of their own at each save, and the index takes its place when all are there:
    who reads meanwhile finds the old record or the new one.
    """
    if type(most) is not int or most < 1:
        raise ArgumentError(
            "record", "max_shard_size", got=most, expected="a number of bytes such as 10**9"
        )
    tree, named = split(content.tree, limits)
    groups: list[dict[str, TensorEntry]] = [{}]
    room = most
    for name, tensor in named.items():
        size = describe(tensor).nbytes
        if size > room and groups[-1]:
            groups.append({})
            room = most
        groups[-1][name] = tensor
        room -= size
    stem = place.name.removesuffix(extension)
    token = os.urandom(4).hex()
    weight_map: dict[str, str] = {}
    index = place.with_name(place.name + INDEX)
    before = _files_of(index, limits) | ({place.name} if place.exists() else set())
    try:
        for number, group in enumerate(groups, 1):
            name = f"{stem}-{token}-{number:05d}-of-{len(groups):05d}{extension}"
            weight_map |= dict.fromkeys(group, name)
            write(group, place.with_name(name))
    except BaseException:
        for name in set(weight_map.values()):
            place.with_name(name).unlink(missing_ok=True)
        raise
    total = sum(describe(tensor).nbytes for tensor in named.values())
    words = {**content.metadata, PRECISION: content.precision, WRITER: content.writer}
    about = {"metadata": {"total_size": total, **words, TREE: tree}, "weight_map": weight_map}
    with atomic_file(index) as file:
        file.write(json.dumps(about, ensure_ascii=False, indent=1).encode())
    for old in before - set(weight_map.values()):
        place.with_name(old).unlink(missing_ok=True)
    return index


def remove_shards(index: Path, limits: Limits) -> None:
    """Remove an index of ours and its files, in whose place a file stands now."""
    files = _files_of(index, limits)
    if files:
        index.unlink(missing_ok=True)
    for name in files:
        index.with_name(name).unlink(missing_ok=True)


def _files_of(index: Path, limits: Limits) -> set[str]:
    """The files of an index that is to be replaced; none, when it is not one of ours."""
    if not index.exists():
        return set()
    try:
        about, weight_map = _checked(index.read_bytes(), limits)
    except Malformed:
        return set()
    return set(weight_map.values()) if TREE in about else set()


def read_shards(index: Path, data: bytes, limits: Limits, read: OpenShard) -> Content:
    """Return the record of an index, its tensors unread.

    Raises:
        Malformed: no index; a file of another folder; tensors that are not where it says.
    """
    about, weight_map = _checked(data, limits)
    opened = {name: read(index.with_name(name)) for name in sorted(set(weight_map.values()))}
    shards = {name: dict(entries_with_paths(content.tree)) for name, content in opened.items()}
    named: dict[str, TensorEntry] = {}
    for key, name in weight_map.items():
        if key not in shards[name]:
            raise Malformed(f"{shown(key)} is not in its file", got=shown(name))
        named[key] = shards[name][key]
    tree = join(about[TREE], named, limits) if TREE in about else nested(named)
    own = (TREE, PRECISION, WRITER)
    notes = {k: v for k, v in about.items() if isinstance(v, str) and k not in own}
    precision, writer = str(about.get(PRECISION, "keep")), str(about.get(WRITER, ""))

    def check_ends() -> None:
        for content in opened.values():
            content.check_end()

    return Content(
        tree,
        precision,
        notes,
        writer=writer,
        checksums=all(content.checksums for content in opened.values()),
        check_end=check_ends,
    )


def _checked(data: bytes, limits: Limits) -> tuple[dict[str, Any], dict[str, str]]:
    if len(data) > limits.header_bytes:
        raise Malformed("the index is too large", got=f"{len(data):,} bytes")
    root = parse(data, limits)
    weight_map = root.get("weight_map") if isinstance(root, dict) else None
    about = root.get("metadata", {}) if isinstance(root, dict) else None
    if not isinstance(weight_map, dict) or not isinstance(about, dict):
        raise Malformed("not an index of shards", expected="metadata and weight_map")
    for name in weight_map.values():
        plain = isinstance(name, str) and name not in ("", ".", "..")
        if not plain or set(name) & set("/\\:\0"):
            raise Malformed("an index names a file of another folder", got=shown(name))
    if not isinstance(about.get(TREE, ""), str):
        raise Malformed("the tree of an index is no text")
    return about, weight_map
