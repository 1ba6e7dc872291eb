"""Where things are in files that ``torch.save`` wrote before version 1.6, which are no zip files.

Five pickles stand one after the other: a magic number, a version, the machine, the value, the names
of the storages; then each storage behind the number of its elements. Source: PyTorch's
``torch/serialization.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phlox_tensor import DType

from ._errors import Malformed, shown
from ._limits import Limits
from ._pickle import Global, Machine, Opaque
from ._zip import Member

MAGIC: Final = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # as a pickle
_VERSION: Final = 1001
_COUNT_BYTES: Final = 8
_STORED: Final = 0


def old_file(
    data: memoryview, kinds: Mapping[str, DType], limits: Limits
) -> tuple[bytes, dict[str, Member]]:
    """Return the pickle of the value, and the storages by name.

    Args:
        data: the file.
        kinds: the element type of each class of storages.
        limits: of the file.

    Raises:
        Malformed: cut short, damaged, or of a big-endian machine.
    """
    head = bytes(data[: limits.header_bytes])
    steps = 8 * limits.nodes
    version, at = _run(head, len(MAGIC), steps)
    machine, start = _run(head, at, steps)
    if version != _VERSION or not isinstance(machine, dict):
        raise Malformed("an unknown form of a PyTorch file", got=shown(version), expected=_VERSION)
    if machine.get("little_endian") is not True:
        raise Malformed("a PyTorch file of a big-endian machine")
    types: dict[str, DType] = {}

    def noted(key: Any) -> Any:
        """What kind a storage is, for its size; all else is asked when the value is made."""
        if isinstance(key, tuple) and len(key) > 2 and isinstance(key[1], Global):
            kind = kinds.get(key[1].name)
            if kind is not None and isinstance(key[2], str):
                types[key[2]] = kind
        return module_of(key)

    first = Machine(head, lambda name, arguments: Opaque(name), noted, steps, start)
    first.run()
    names, end = _run(head, first.at, steps)
    return head[start : first.at], _storages(data, names, types, end)


def module_of(key: Any) -> Global | None:
    """The name of a class whose source lies in the file too, which is left alone."""
    if isinstance(key, tuple) and len(key) == 4 and key[0] == "module":
        return key[1] if isinstance(key[1], Global) else None
    return None


def _run(head: bytes, at: int, steps: int) -> tuple[Any, int]:
    """The value of a pickle that asks for nothing, and where the next one starts."""

    def refused(*asked: Any) -> Any:
        raise Malformed("the head of a PyTorch file asks for more than numbers", got=shown(asked))

    machine = Machine(head, refused, refused, steps, at)
    return machine.run(), machine.at


def _storages(
    data: memoryview, names: Any, types: Mapping[str, DType], at: int
) -> dict[str, Member]:
    if not isinstance(names, list) or any(name not in types for name in names if name is not None):
        raise Malformed("the storages of a PyTorch file are wrong", got=shown(names))
    found: dict[str, Member] = {}
    for name in names:
        count = int.from_bytes(data[at : at + _COUNT_BYTES], "little")
        at += _COUNT_BYTES
        size = count * types[name].itemsize
        if at + size > len(data):
            got = f"{len(data) - at:,} bytes"
            raise Malformed(f"storage {shown(name)} is cut short", got=got, expected=f"{size:,}")
        found[f"data/{name}"] = Member(f"data/{name}", at, size, size, 0, _STORED)
        at += size
    if at != len(data):
        raise Malformed("bytes behind the storages of a PyTorch file", got=len(data) - at)
    return found
