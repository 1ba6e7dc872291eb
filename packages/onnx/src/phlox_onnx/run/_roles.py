"""What the constants of a file become: trained weights, state, or literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from .._graph import Array, Graph, Node, all_constants, walk
from ._program import bound
from ._table import row_of

# Of whole numbers and frozen values, so many stay among the literals of a program.
LITERAL_SIZE: Final = 16


@final
@dataclass(frozen=True)
class Roles:
    """Constants by name and by what becomes of them."""

    trained: dict[str, Array]
    state: dict[str, Array]
    literal: dict[str, Array]


def roles(graph: Graph) -> Roles:
    """Sort the constants of a graph and of those inside.

    A float of more than one element, or one that its row trains as a number, is trained where it
    reaches a weight's place: as it stands, or past ops that only move elements. What a row wants on
    the host is a literal; so is what is small. All else is state: on the device, saved with the
    model, never trained.
    """
    wanted, on_host, numbers = _places(graph)
    out = Roles({}, {}, {})
    for name, array in all_constants(graph).items():
        is_float = array.dtype.kind not in "iubO"
        if is_float and name in numbers and name not in on_host:
            out.trained[name] = array
        elif array.dtype == object or name in on_host or array.ndim == 0:
            out.literal[name] = array
        elif is_float and name in wanted and array.size > 1:
            out.trained[name] = array
        elif array.size > LITERAL_SIZE:
            out.state[name] = array
        else:
            out.literal[name] = array
    return out


def _places(graph: Graph) -> tuple[set[str], set[str], set[str]]:
    """Names that reach a weight's place, that a row wants on the host, or trains as numbers."""
    wanted: set[str] = set()
    on_host: set[str] = set()
    numbers: set[str] = set()
    for node in reversed(list(walk(graph))):
        row = row_of(node.key)
        if row is None:
            continue
        moves = row.movement and any(name in wanted for name in node.outputs)
        for name, parameter in bound(node, row):
            if not name:
                continue
            if parameter.takes in ("Host", "Ints", "Scalar"):
                on_host.add(name)
            elif parameter.name in row.trained or moves:
                wanted.add(name)
                numbers |= {name} if row.numbers else set()
        wanted |= _passed(node, wanted)
    return wanted, on_host, numbers


def _passed(node: Node, wanted: set[str]) -> set[str]:
    """What an inner graph gives is made there."""
    found: set[str] = set()
    for inner in node.graphs.values():
        for value, name in zip(inner.outputs, node.outputs, strict=False):
            if name in wanted:
                found.add(value.name)
    return found
