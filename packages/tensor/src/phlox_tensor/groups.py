"""Processes that work together: the protocol, values that travel, sums in one order.

``Group`` is what carries bytes, such as over MPI in a package above. Whoever has another
transport writes its four calls. Sums are made here, so that none depends on how many ranks there
are or how their messages travel.
"""

from ._groups.exchange import tree_sum
from ._groups.group import Group, Solo, gathered, told
from ._groups.meeting import Meeting, part_here
from ._groups.sums import TreeNode, TreeSum, absent_of, nodes_of, share_of

__all__ = [
    "Group",
    "Meeting",
    "Solo",
    "TreeNode",
    "TreeSum",
    "absent_of",
    "gathered",
    "nodes_of",
    "part_here",
    "share_of",
    "told",
    "tree_sum",
]
