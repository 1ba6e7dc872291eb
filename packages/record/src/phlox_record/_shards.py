"""Records in several files beside an index, as other programs lay them out too."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from phlox_tensor import ArgumentError

from ._content import Content
from ._errors import Malformed, shown
from ._files import TEMPORARY, atomic_file, held, let_go
from ._json import parse
from ._layout import describe
from ._limits import Limits
from ._skeleton import PRECISION, TREE, WRITER, join, nested, split
from ._tree import TensorEntry, entries_with_paths

INDEX: Final = ".index.json"

WriteShard = Callable[[dict[str, TensorEntry], Path], None]
OpenShard = Callable[[Path], Content]


def write_shards(
    content: Content, place: Path, extension: str, most: int, limits: Limits, write: WriteShard
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
    token = os.urandom(4).hex()
    weight_map: dict[str, str] = {}
    index = place.with_name(place.name + INDEX)
    before = _files_of(index, limits) | ({place.name} if place.exists() else set())
    with held(_mark(place, token)):
        try:
            for number, group in enumerate(groups, 1):
                rest = f"{token}-{number:05d}-of-{len(groups):05d}{extension}"
                name = f"{place.name.removesuffix(extension)}-{rest}"
                weight_map |= dict.fromkeys(group, name)
                write(group, place.with_name(name))
        except BaseException:
            for name in set(weight_map.values()):
                place.with_name(name).unlink(missing_ok=True)
            raise
        with atomic_file(index) as file:
            about = _about(content, tree, named)
            text = json.dumps({**about, "weight_map": weight_map}, ensure_ascii=False, indent=1)
            file.write(text.encode())
    for old in before - set(weight_map.values()):
        place.with_name(old).unlink(missing_ok=True)
    return index


def _about(content: Content, tree: str, named: dict[str, TensorEntry]) -> dict[str, Any]:
    total = sum(describe(tensor).nbytes for tensor in named.values())
    words = {**content.metadata, PRECISION: content.precision, WRITER: content.writer}
    return {"metadata": {"total_size": total, **words, TREE: tree}}


def _mark(place: Path, token: str) -> Path:
    """The file that is held while shards with this token are written."""
    return place.with_name(TEMPORARY.replace("*", f"shards-{token}"))


def remove_shards(index: Path, limits: Limits) -> None:
    """Remove an index of ours and its files, in whose place a file stands now."""
    files = _files_of(index, limits)
    if files:
        index.unlink(missing_ok=True)
    for name in files:
        index.with_name(name).unlink(missing_ok=True)


def remove_left_shards(place: Path, names: list[str], extension: str, limits: Limits) -> None:
    """Remove those of a folder's files that killed saves to a place left: no index names them."""
    stem = re.escape(place.name.removesuffix(extension))
    shard = re.compile(rf"{stem}-([0-9a-f]{{8}})-\d{{5}}-of-\d{{5}}{re.escape(extension)}")
    matches = filter(None, map(shard.fullmatch, names))
    found = {place.with_name(match[0]): match[1] for match in matches}
    if not found:
        return
    tokens = {token for token in set(found.values()) if let_go(_mark(place, token))}
    # Asked last: a save whose mark is gone has its index.
    named: set[str] = set()
    for index in place.parent.glob("*" + INDEX):
        with contextlib.suppress(Malformed, FileNotFoundError):  # no index of shards; gone by now
            named |= set(_checked(index.read_bytes(), limits)[1].values())
    for path, token in found.items():
        if token in tokens and path.name not in named:
            path.unlink(missing_ok=True)


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
