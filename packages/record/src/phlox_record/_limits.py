"""How much a file may ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ._errors import Malformed

MAX_DEPTH: Final = 128
MAX_RANK: Final = 32


def check_depth(depth: int) -> None:
    """Refuse to read a container at a level of a tree that is too deep."""
    if depth == MAX_DEPTH:
        raise Malformed("the tree is too deep", expected=f"at most {MAX_DEPTH} levels")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Caps that hold when reading and when writing, so what was written can be read.

    Attributes:
        header_bytes: largest header (names, scalars, tensor table) of a msgpack file.
        inflated_bytes: most bytes that a gzip file may unfold to.
        json_bytes: largest JSON text; it is held in memory whole.
        nodes: most values in a tree, table included; bounds memory of small values.
        tensors: most tensors in a file.
    """

    header_bytes: int = 64 << 20
    inflated_bytes: int = 4 << 30
    json_bytes: int = 1 << 30
    nodes: int = 2_000_000
    tensors: int = 100_000
