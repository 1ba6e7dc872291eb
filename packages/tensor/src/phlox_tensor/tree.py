"""Trees of containers: take apart, map, rebuild; ``register`` makes a type of one's own a node."""

from ._tree.containers import Coming, Node, attributes_of, slots_of, takes_attributes
from ._tree.nodes import is_closed, is_node, is_plain, node_of, register, register_leaf
from ._tree.walk import (
    Structure,
    children,
    flatten,
    leaves,
    leaves_with_paths,
    map,
    nodes_with_paths,
    rebuild,
)

__all__ = [
    "Coming",
    "Node",
    "Structure",
    "attributes_of",
    "children",
    "flatten",
    "is_closed",
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
    "slots_of",
    "takes_attributes",
]
