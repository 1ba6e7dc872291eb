"""Arrays as a dataset: their rows are items, and a batch is one gather."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError, ShapeError, Tensor, tree

from ._dataset import Dataset
from ._items import Draw, Indices, Items


@final
class Rows(Items):
    """A tree of arrays whose first axes are equally long."""

    gathers = True

    def __init__(self, columns: list[NDArray[Any]], structure: tree.Structure, count: int) -> None:
        self._columns, self._structure, self._count = columns, structure, count

    def __getstate__(self) -> dict[str, Any]:
        # A structure holds functions, which do not go to other processes; a tree of numbers does.
        return vars(self) | {"_structure": self._structure.rebuild(range(len(self._columns)))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        _, self._structure = tree.flatten(state["_structure"], leaf=list)
        for column in self._columns:
            column.flags.writeable = False

    def __len__(self) -> int:
        return self._count

    def get(self, index: int, key: int, draw: Draw) -> Any:
        del key, draw
        return self._structure.rebuild([column[index] for column in self._columns])

    def gather(self, indices: Indices) -> Any:
        found = [column.take(indices, axis=0) for column in self._columns]
        return self._structure.rebuild([_plain(column) for column in found])


def _plain(column: NDArray[Any]) -> Any:
    return column.tolist() if column.dtype.kind in "OUS" else column


def arrays(tree_of_arrays: Any = None, /, **named: Any) -> Dataset[Any]:
    """Return the rows of arrays as a dataset: NumPy arrays, memory maps, tensors, lists of text.

    Nothing is copied. Items are read-only views; batches are copies.

    Args:
        tree_of_arrays: an array, or any tree of them, such as a tuple; items have its structure.
        named: arrays by name instead; items are dicts.

    Raises:
        ShapeError: for arrays of different lengths, and for numbers.

    Example:
        >>> pairs = arrays(x=np.eye(3), y=np.arange(3))
        >>> len(pairs), pairs[2]["x"].tolist(), int(pairs[2]["y"])
        (3, [0.0, 0.0, 1.0], 2)
    """
    if (tree_of_arrays is None) == (not named):
        hint = "data.arrays(x=features, y=labels)"
        raise ArgumentError("arrays", "arrays by place or by name, not both or none", hint=hint)
    whole = named if tree_of_arrays is None else tree_of_arrays
    leaves, structure = tree.flatten(whole, leaf=list)
    paths = [path for path, _ in tree.leaves_with_paths(whole, leaf=list)]
    columns = [_column(leaf, path) for path, leaf in zip(paths, leaves, strict=True)]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ShapeError(
                "arrays",
                "the first axes differ, which count the items",
                got=f"{len(column)} of {path or 'the array'}",
                expected=f"{len(columns[0])} of {paths[0]}",
            )
    return Dataset(Rows(columns, structure, len(columns[0])))


def _column(leaf: Any, path: str) -> NDArray[Any]:
    if isinstance(leaf, Tensor):
        leaf = leaf.numpy()
    elif isinstance(leaf, list) and any(isinstance(each, str) for each in leaf):
        leaf = np.array(leaf, object)
    array = np.asarray(leaf)
    if not array.ndim:
        where = f"{path or 'it'} has no first axis, which counts the items"
        raise ShapeError("arrays", where, got=f"{leaf!r:.40}", expected="an array")
    view = array.view()
    view.flags.writeable = False  # an item changed in place would change the dataset
    return view
