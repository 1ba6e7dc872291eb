"""Processes that work together: the protocol, exchange of values, sums in one order.

``Group`` is what carries bytes, such as over MPI in a package above. Whoever has another
transport writes its four calls. Sums are made here, so that none depends on how many ranks there
are or how their messages travel.
"""

from ._groups.collect import differing as differing
from ._groups.collect import notes_in_step as notes_in_step
from ._groups.collect import require_same as require_same
from ._groups.exchange import require_rows as require_rows
from ._groups.exchange import tree_sum as tree_sum
from ._groups.group import Group as Group
from ._groups.group import NamedGroup as NamedGroup
from ._groups.group import Solo as Solo
from ._groups.group import all_gather_object as all_gather_object
from ._groups.group import broadcast_object as broadcast_object
from ._groups.group import first_size as first_size
from ._groups.group import joined as joined
from ._groups.group import ranks_said as ranks_said
from ._groups.group import require_group as require_group
from ._groups.meeting import Meeting as Meeting
from ._groups.meeting import part_here as part_here
from ._groups.sums import TreeNode as TreeNode
from ._groups.sums import TreeSum as TreeSum
from ._groups.sums import absent_of as absent_of
from ._groups.sums import all_nodes as all_nodes
from ._groups.sums import nodes_of as nodes_of
from ._groups.sums import share_of as share_of
