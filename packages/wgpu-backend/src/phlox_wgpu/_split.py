"""Chains that take more arrays than an adapter can bind, cut into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .wgsl.chain import Chain, Node, reporting_op


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a chain as a chain of its own: the values of the whole that it takes and gives."""

    chain: Chain
    takes: tuple[int, ...]
    gives: tuple[int, ...]


def bindings(chain: Chain, arrays: int) -> int:
    """How many storage buffers a chain over `arrays` arrays binds."""
    return arrays + len(chain.outputs) + bool(reporting_op(chain))


def pieces(chain: Chain, is_array: Sequence[bool], limit: int) -> list[Piece]:
    """Cut a chain, in order, into the longest pieces that bind at most `limit` buffers each."""
    count = len(chain.inputs)
    found: list[Piece] = []
    first = 0
    while first < len(chain.nodes):
        piece = _piece(chain, first, first + 1)
        for end in range(first + 2, len(chain.nodes) + 1):
            longer = _piece(chain, first, end)
            arrays = sum(value >= count or is_array[value] for value in longer.takes)
            if bindings(longer.chain, arrays) <= limit:
                piece = longer
        found.append(piece)
        first += len(piece.chain.nodes)
    return found


def _piece(chain: Chain, first: int, end: int) -> Piece:
    """Nodes first to end - 1: what later nodes or the results use of theirs is stored."""
    count = len(chain.inputs)
    nodes = chain.nodes[first:end]
    own = range(count + first, count + end)
    takes = sorted({value for node in nodes for value in node.args if value not in own})
    later = {value for node in chain.nodes[end:] for value in node.args} | {*chain.outputs}
    gives = [value for value in own if value in later]
    place = {value: position for position, value in enumerate([*takes, *own])}
    part = Chain(
        tuple(chain.dtype(value) for value in takes),
        tuple(Node(node.op, tuple(place[v] for v in node.args), node.dtype) for node in nodes),
        tuple(place[value] for value in gives),
    )
    return Piece(part, tuple(takes), tuple(gives))
