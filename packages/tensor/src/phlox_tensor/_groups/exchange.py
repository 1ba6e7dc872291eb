"""A sum over ranks: each rank owns some elements, and adds up what all ranks have of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from .._errors.classes import ArgumentError
from .group import Group
from .sums import TreeSum, all_nodes

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Elements that a rank owns in one step of an exchange: few steps, and pieces that stay in caches.
CHUNK: Final = 1 << 20
# Elements of a piece in memory that ranks share, 16 MB of float32: few waits, and little memory.
_PIECE: Final = 1 << 22
# One thread moves a few GB/s, and memory more; _SPREAD is worth the waking of others.
_THREADS: Final = 4
_CORES: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
_SPREAD: Final = 1 << 18


def tree_sum(
    group: Group, leaves: int, held: NDArray[Any], out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return the sum over all leaves of the tree, the same bits for any number of ranks.

    Each rank has computed the leaves of its share, ``share_of``, and added them up to the nodes of
    ``nodes_of``. Pieces go to the ranks that own them, are added in the order of the tree, and come
    back, so a rank sends and receives about twice what it has.

    Args:
        group: the ranks; all of them call.
        leaves: how many the tree has.
        held: a row for each node of this rank; it may be overwritten.
        out: an array for the sum, where there is one from an earlier call: new memory costs time.

    Raises:
        ArgumentError: for rows of another number.

    Example:
        >>> from phlox_tensor.groups import Solo, tree_sum
        >>> tree_sum(Solo(), 6, np.array([[1.0, 2.0], [0.5, 0.5]])).tolist()
        [1.5, 2.5]
    """
    require_rows(group, leaves, held)
    nodes = all_nodes(leaves, group.size)
    if group.size == 1:
        return _added(held, nodes)
    total = np.empty(held.shape[1], held.dtype) if out is None else out
    if (window := _window(group, nodes, total)) is not None:
        _in_window(group, nodes, held, total, window)
        return total
    step = CHUNK * group.size
    for low in range(0, total.size, step):
        _exchange(group, nodes, held[:, low : low + step], total[low : low + step])
    return total


def require_rows(group: Group, leaves: int, held: NDArray[Any]) -> None:
    """Refuse what is not a row for each node of this rank.

    Raises:
        ArgumentError: for rows of another number.
    """
    count = len(all_nodes(leaves, group.size)[group.rank])
    if held.ndim != 2 or len(held) != count:
        got, expected = f"shape {held.shape}", f"({count}, elements)"
        raise ArgumentError("tree_sum", "not the sums of this rank", got=got, expected=expected)


def _window(group: Group, nodes: Any, out: NDArray[Any]) -> Any:
    """Memory for the sums of all ranks, and what waits for them; None where they have none."""
    asked = getattr(group, "window", None)
    if asked is None or not out.size:
        return None
    rows = max(map(len, nodes)) + 1
    piece = min(_PIECE, out.size)
    found = asked(rows * piece * out.itemsize)
    if found is None:
        return None
    views, meet = found
    size = rows * piece * out.itemsize
    return [view[:size].view(out.dtype).reshape(rows, piece) for view in views], meet


def _in_window(
    group: Group, nodes: Any, held: NDArray[Any], out: NDArray[Any], window: Any
) -> None:
    """Sum where all ranks see the memory of all: each adds up its share of a piece in place."""
    views, meet = window
    whole, piece = views[0][-1], views[0].shape[1]
    shares = [view[: len(each)] for view, each in zip(views, nodes, strict=True)]
    for low in range(0, out.size, piece):
        high = min(low + piece, out.size)
        _sum_piece(group, nodes, shares, whole, held[:, low:high], out[low:high], meet)
    meet()  # the next sum may have rows where this one is read


def _sum_piece(
    group: Group, nodes: Any, shares: Any, whole: Any, given: Any, out: Any, meet: Any
) -> None:
    mine, width = shares[group.rank], out.size
    own = slice(group.rank * width // group.size, (group.rank + 1) * width // group.size)
    pair = [len(share) for share in shares] == [1, 1]  # which adds own elements where they are
    sources = [given if pair and share is mine else share for share in shares]

    def give(at: slice) -> None:
        mine[:, at] = given[:, at]

    def add(at: slice) -> None:
        rows = [row[at] for share in sources for row in share]
        if pair:
            np.add(rows[0], rows[1], out=whole[at])
        else:
            whole[at] = _added(rows, nodes)

    def take(at: slice) -> None:
        out[at] = whole[at]

    threads = _threads(group.local_size)
    for each in (slice(own.start), slice(own.stop, width)) if pair else (slice(width),):
        _spread(threads, give, each)
    meet()
    _spread(threads, add, own)
    meet()
    _spread(threads, take, slice(width))


def _threads(ranks: int) -> int:
    """How many threads of a rank sum: those it may have, or its share of the cores of a machine.

    A rank that is bound to some cores has all of these.
    """
    said = os.environ.get("PHLOX_NUM_THREADS", "")
    bound = _CORES * ranks <= (os.cpu_count() or 1)
    own = int(said) if said.isdigit() else _CORES if bound else _CORES // ranks
    return max(1, min(_THREADS, own))


def _spread(threads: int, function: Callable[[slice], None], whole: slice) -> None:
    """Call a function for all elements, by several threads where they are many."""
    low, size = whole.start or 0, whole.stop - (whole.start or 0)
    if threads < 2 or size < _SPREAD:
        function(whole)
        return
    edges = [low + k * size // threads for k in range(threads + 1)]
    list(_pool().map(function, itertools.starmap(slice, itertools.pairwise(edges))))


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow, and rarely needed

    return ThreadPoolExecutor(_THREADS, "phlox-sum")


def _exchange(group: Group, nodes: Any, held: NDArray[Any], out: NDArray[Any]) -> None:
    """Sum some elements, of which each rank owns about as many."""
    size, count = group.size, out.size
    edges = [rank * count // size for rank in range(size + 1)]
    widths = [high - low for low, high in itertools.pairwise(edges)]
    own = widths[group.rank]
    rows = [len(each) for each in nodes]
    if len(held) == 1:
        send = held[0]
    else:  # the rows of a piece, one after the other
        pieces = [held[:, low:high].ravel() for low, high in itertools.pairwise(edges)]
        send = np.concatenate(pieces)
    receive = np.empty((sum(rows), own), out.dtype)
    group.all_to_all(
        send, [len(held) * width for width in widths], receive.ravel(), [n * own for n in rows]
    )
    group.all_gather(_added(receive, nodes), out, widths)


def _added(rows: Sequence[NDArray[Any]] | NDArray[Any], nodes: Any) -> NDArray[Any]:
    """The sum of rows, one for each node of each rank in order."""
    total: TreeSum[Any] = TreeSum(add=lambda left, right: np.add(left, right, out=left))
    for node, row in zip((node for each in nodes for node in each), rows, strict=True):
        total.join(node, row)
    return total.value()
