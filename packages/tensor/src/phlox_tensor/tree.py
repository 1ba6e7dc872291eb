"""Trees of containers: take apart, map, rebuild; ``register`` makes a type of one's own a node."""

from ._tree.containers import Coming as Coming
from ._tree.containers import Node as Node
from ._tree.containers import attributes_of as attributes_of
from ._tree.containers import slots_of as slots_of
from ._tree.containers import takes_attributes as takes_attributes
from ._tree.nodes import is_closed as is_closed
from ._tree.nodes import is_node as is_node
from ._tree.nodes import is_plain as is_plain
from ._tree.nodes import node_of as node_of
from ._tree.nodes import register as register
from ._tree.nodes import register_leaf as register_leaf
from ._tree.walk import Structure as Structure
from ._tree.walk import children as children
from ._tree.walk import flatten as flatten
from ._tree.walk import leaves as leaves
from ._tree.walk import leaves_with_paths as leaves_with_paths
from ._tree.walk import map as map
from ._tree.walk import nodes_with_paths as nodes_with_paths
from ._tree.walk import rebuild as rebuild
