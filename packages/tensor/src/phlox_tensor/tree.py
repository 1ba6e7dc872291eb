"""Trees of containers: take apart, map, rebuild; ``register`` makes a type of one's own a node."""

from ._containers import Node
from ._tree import (
    Structure,
    children,
    flatten,
    is_node,
    is_plain,
    leaves,
    leaves_with_paths,
    map,
    node_of,
    nodes_with_paths,
    rebuild,
    register,
    register_leaf,
)

__all__ = [
    "Node",
    "Structure",
    "children",
    "flatten",
    "is_node",
    "is_plain",
    "leaves",
    "leaves_with_paths",
    "map",
    "node_of",
    "nodes_with_paths",
    "rebuild",
    "register",
    "register_leaf",
]
