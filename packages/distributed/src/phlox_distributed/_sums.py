"""Sums of a user's own arrays, over the tree."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phlox_tensor import ArgumentError, groups
from phlox_tensor.groups import Group


def tree_sum(group: Group, leaves: int, held: ArrayLike) -> NDArray[Any]:
    """Return the sum over all leaves of the tree, the same bits for any number of ranks.

    Each rank has computed leaves ``rank * leaves // size`` up to those of the next, and added them
    up to as few nodes of the tree as there can be. A rank sends about twice what it has.

    Args:
        group: the ranks; all of them call.
        leaves: how many the tree has.
        held: a row for each node of this rank.

    Raises:
        ArgumentError: for rows of another number; on all ranks, where their rows differ.

    Example:
        >>> from phlox_distributed import Solo, tree_sum
        >>> tree_sum(Solo(), 6, [[1.0, 2.0], [0.5, 0.5]]).tolist()
        [1.5, 2.5]
    """
    groups.require_group("tree_sum", group)
    rows, error = np.empty((0, 0)), cast("ArgumentError | None", None)
    try:
        rows = np.array(held)  # a copy, which sums may overwrite
        groups.require_rows(group, leaves, rows)
    except ArgumentError as found:
        error = found
    except ValueError:
        what, expected = "rows differ in length", "a row for each node, of as many elements"
        error = ArgumentError("tree_sum", what, got=f"{held!r:.60}", expected=expected)
    told = (leaves, *["fails"] * (error is not None))  # so that others do not wait for its rows
    try:
        groups.require_same(group, "tree_sum", np.empty(rows.shape[1:], rows.dtype), told)
    except ArgumentError:
        if error is None:
            raise
    if error is not None:
        raise error
    return groups.tree_sum(group, leaves, rows)
