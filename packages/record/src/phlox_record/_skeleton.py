"""The tree of a record beside tensors that a foreign format keeps by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ._errors import Malformed
from ._json import VERSION, TreeReader, TreeWriter, parse
from ._limits import Limits
from ._tree import TensorEntry, entries_with_paths

# What a foreign format keeps in its notes for us.
PRECISION: Final = "phlox.precision"
TREE: Final = "phlox.tree"
WRITER: Final = "phlox.writer"

_ROOT: Final = "tensor"


def split(
    tree: Any, limits: Limits, safe: Callable[[str], str] = str
) -> tuple[str, dict[str, TensorEntry]]:
    """Return the tree as JSON that names its tensors, and the tensors by name.

    Names are dotted paths, made ``safe``; where two would read alike, the later one gets a number.
    """
    named: dict[str, TensorEntry] = {}
    names: dict[int, str] = {}
    for path, tensor in entries_with_paths(tree):
        first, count = safe(path or _ROOT), 1
        name = first
        while name in named:
            count += 1
            name = f"{first}#{count}"
        names[id(tensor)] = name
        named[name] = tensor
    text: list[bytes] = []
    writer = TreeWriter(
        limits, lambda data: text.append(bytes(data)), name=lambda tensor: names[id(tensor)]
    )
    writer.node(tree, "")
    return b"".join(text).decode(), named


def join(text: str, named: Mapping[str, TensorEntry], limits: Limits) -> Any:
    """Return the tree that ``split`` wrote.

    Raises:
        Malformed: no such JSON; a tensor that nothing refers to, or that is not there.
    """
    if len(text) > limits.header_bytes:
        raise Malformed("the tree is too large", got=f"{len(text):,} characters")
    return TreeReader(limits, VERSION, named).read(parse(text.encode(), limits))


def nested(named: Mapping[str, TensorEntry]) -> dict[str, Any]:
    """Return tensors by dotted name as a tree; flat, where a name is also the start of another.

    Files of other programs have no tree. To modules a flat record is the same.
    """
    result: dict[str, Any] = {}
    for name, tensor in named.items():
        *branches, last = name.split(".")
        at = result
        for branch in branches:
            below = at.setdefault(branch, {})
            if not isinstance(below, dict):
                return dict(named)
            at = below
        if last in at or not all((*branches, last)) or len(branches) > _DEEPEST:
            return dict(named)
        at[last] = tensor
    return result


_DEEPEST: Final = 100
