"""Trees of containers: take apart, map, rebuild; ``register`` makes a type of one's own a node."""

from ._tree import (
    Structure,
    flatten,
    leaves,
    leaves_with_paths,
    map,
    nodes_with_paths,
    rebuild,
    register,
)

__all__ = [
    "Structure",
    "flatten",
    "leaves",
    "leaves_with_paths",
    "map",
    "nodes_with_paths",
    "rebuild",
    "register",
]
