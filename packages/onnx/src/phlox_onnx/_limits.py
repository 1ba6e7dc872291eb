"""What a file may ask for before anything is believed or allocated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Limits:
    """Caps on what a file may hold; a file beyond one of them is refused.

    Attributes:
        file_bytes: size of the model file without external data.
        nodes: nodes of all graphs together, functions inlined.
        depth: how deep graphs and functions may nest.
        name: characters of a name.
        rank: axes of a tensor.
        attributes: attributes of a node.
    """

    file_bytes: int = 2 << 30  # what protobuf can hold
    nodes: int = 1_000_000
    depth: int = 64
    name: int = 1000
    rank: int = 32
    attributes: int = 1000
