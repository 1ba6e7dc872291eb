"""Batches of items: trees whose leaves are stacked, padded to one shape where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import ArgumentError, ShapeError, Tensor, TreeError, tree
from phlox_tensor import stack as _stack_tensors

_Array = NDArray[Any]
Empty = Callable[[tuple[int, ...], np.dtype[Any]], _Array]
_LEAVES: Final = (np.ndarray, np.generic, int, float, str, bytes, list)
_HINT: Final = "DataLoader(..., collate=data.pad(0))"


class RaggedError(ShapeError):
    """Items of a batch do not stack.

    Attributes:
        place: that of the item in the batch.
    """

    place: int = 0


def stack(items: Sequence[Any]) -> Any:
    """Return one tree for many: numbers and arrays are stacked, all other leaves become lists.

    Whole numbers become int64 and others float32; a list of numbers in an item is an array.
    Arrays and tensors keep their types.

    Raises:
        RaggedError: for shapes or types that differ, naming item and path.
        TreeError: for items of different structures.

    Example:
        >>> batch = stack([{"x": [1.0, 2.0], "name": "a"}, {"x": [3.0, 4.0], "name": "b"}])
        >>> batch["x"].shape, batch["name"]
        ((2, 2), ['a', 'b'])
    """
    return _combined(items, "stack", lambda path: None)


def pad(
    value: float | Mapping[str, float] = 0, *, multiple: int = 1
) -> Callable[[Sequence[Any]], Any]:
    """Return a ``collate`` that stacks arrays of different shapes, filled up to the largest.

    Lengths are lost: map a function that keeps ``len`` beside what is padded, where a model needs
    it.

    Args:
        value: what fills; a mapping pads the paths that it names, and all others have to stack.
        multiple: the first axis becomes a multiple of it, so that fewer shapes occur.

    Example:
        >>> collate = pad({"tokens": -1})
        >>> collate([{"tokens": [1, 2, 3]}, {"tokens": [4]}])["tokens"].tolist()
        [[1, 2, 3], [4, -1, -1]]
    """
    if multiple < 1:
        raise ArgumentError("pad", "no multiple", got=multiple, expected="1 or more")

    def fill(path: str) -> tuple[float, int] | None:
        if not isinstance(value, Mapping):
            return value, multiple
        return (value[path], multiple) if path in value else None

    def collate(items: Sequence[Any]) -> Any:
        if isinstance(value, Mapping):
            _known(value, items)
        return _combined(items, "pad", fill)

    return collate


def _known(value: Mapping[str, float], items: Sequence[Any]) -> None:
    paths = [path for path, _ in tree.leaves_with_paths(items[0], leaf=list)]
    unknown = sorted(set(value) - set(paths))
    if unknown:
        got, expected = ", ".join(unknown), ", ".join(path or "(the item)" for path in paths)
        raise ArgumentError("pad", "items have no such leaf", got=got, expected=expected)


def stacked(items: Sequence[Any], empty: Empty) -> Any:
    """Return what ``stack`` does, in memory that a function hands out."""
    return _combined(items, "stack", lambda path: None, empty)


def _combined(
    items: Sequence[Any],
    op: str,
    fill: Callable[[str], tuple[float, int] | None],
    empty: Empty = np.empty,
) -> Any:
    if not items:
        raise ArgumentError(op, "a batch of nothing has no structure", got="no items")
    leaves, structure = tree.flatten(items[0], leaf=list)
    columns = _alike(items, leaves) or _walked(items, leaves, structure, op)
    paths = [path for path, _ in tree.leaves_with_paths(items[0], leaf=list)]
    rows = zip(paths, columns, strict=True)
    return structure.rebuild([_column(c, op, path, fill(path), empty) for path, c in rows])


def _alike(items: Sequence[Any], leaves: list[Any]) -> list[list[Any]] | None:
    """The columns of flat tuples and dicts, half of the time of a walk; None for other items."""
    first = items[0]
    kind, size = type(first), len(leaves)
    if kind not in (dict, tuple) or any(type(x) is not kind or len(x) != size for x in items):
        return None
    try:
        columns = [
            [item[key] for item in items] for key in (first if kind is dict else range(size))
        ]
    except KeyError:
        return None
    for column, leaf in zip(columns, leaves, strict=True):
        if column[0] is not leaf or not isinstance(leaf, _LEAVES) or len({*map(type, column)}) > 1:
            return None
    return columns


def _walked(
    items: Sequence[Any], leaves: list[Any], structure: tree.Structure, op: str
) -> list[list[Any]]:
    columns: list[list[Any]] = [[leaf] for leaf in leaves]
    for place, item in enumerate(items[1:], 1):
        leaves, own = tree.flatten(item, leaf=list)
        if own != structure:
            leaves = _reordered(op, place, item, items[0])
        for column, leaf in zip(columns, leaves, strict=True):
            column.append(leaf)
    return columns


def _reordered(op: str, place: int, item: Any, first: Any) -> list[Any]:
    """The leaves of an item in the order of the first one, which may name its parts otherwise."""
    got, wanted = (dict(tree.leaves_with_paths(each, leaf=list)) for each in (item, first))
    if type(item) is type(first) and set(got) == set(wanted):
        return [got[path] for path in wanted]
    raise _structure(op, place, got, wanted)


def _structure(
    op: str, place: int, found: Mapping[str, Any], first: Mapping[str, Any]
) -> TreeError:
    got, expected = (", ".join(path or "(the item)" for path in each) for each in (found, first))
    what = f"item {place} of the batch has other parts than the first"
    return TreeError(op, what, got=got, expected=expected)


def _column(
    leaves: list[Any], op: str, path: str, fill: tuple[float, int] | None, empty: Empty
) -> Any:
    """One leaf of all items as one."""
    if type(leaves[0]) is Tensor:
        for place, leaf in enumerate(leaves):
            if type(leaf) is not Tensor or leaf.shape != leaves[0].shape:
                raise _ragged(op, path, place, leaf, leaves[0])
        return _stack_tensors(leaves)
    arrays: list[Any] = [array_of(leaves[0])]
    if arrays[0] is None:
        return leaves
    arrays += map(array_of, leaves[1:])
    if fill is not None:
        arrays = _empty_as_others(arrays)
    first: _Array = arrays[0]
    for place, (leaf, array) in enumerate(zip(leaves, arrays, strict=True)):
        if array is None or array.dtype != first.dtype or array.ndim != first.ndim:
            raise _ragged(op, path, place, leaf if array is None else array, first)
        if fill is None and array.shape != first.shape:
            raise _ragged(op, path, place, array, first)
    if fill is None or not first.ndim:
        return np.stack(arrays, out=empty((len(arrays), *first.shape), first.dtype))
    return _padded(arrays, *fill)


def _empty_as_others(arrays: list[Any]) -> list[Any]:
    """Arrays of which those without elements, such as of ``[]``, have the type of the others."""
    kinds = {each.dtype for each in arrays if each is not None and each.size}
    if len(kinds) != 1:
        return arrays
    (kind,) = kinds
    return [each if each is None or each.size else each.astype(kind) for each in arrays]


def _padded(arrays: list[_Array], value: float, multiple: int) -> _Array:
    first, *rest = (max(sizes) for sizes in zip(*(each.shape for each in arrays), strict=True))
    shape, kind = (len(arrays), -(-first // multiple) * multiple, *rest), arrays[0].dtype
    with np.errstate(invalid="ignore"):  # nan among whole numbers is told here
        if kind.kind in "biu" and np.asarray(value).astype(kind) != value:
            raise ArgumentError("pad", "the items hold no such value", got=value, expected=kind)
    out = np.full(shape, value, kind)
    for row, array in zip(out, arrays, strict=True):
        row[tuple(slice(size) for size in array.shape)] = array
    return out


def array_of(leaf: Any) -> _Array | None:
    """A leaf that stacks as an array; None for any other."""
    kind = type(leaf)
    if kind is float:
        return np.asarray(leaf, np.float32)
    if kind is int:
        try:
            return np.asarray(leaf, np.int64)
        except OverflowError as error:
            hint = "dataset.map(function), which makes floats or text of such numbers"
            what = "a whole number is out of range"
            raise ArgumentError("stack", what, got=leaf, expected="int64", hint=hint) from error
    if kind is list:
        return _numbers(leaf)
    if isinstance(leaf, (np.ndarray, np.generic, bool)) or hasattr(leaf, "__array_interface__"):
        array = np.asarray(leaf)
        return array if array.dtype.kind in "biufcV" else None
    return None


def _numbers(leaf: list[Any]) -> _Array | None:
    if not leaf:
        return np.zeros(0, np.int64)
    if not all(type(each) in (int, float, bool, list) for each in leaf):
        return None
    try:
        array = np.asarray(leaf)
    except ValueError:  # lists of different lengths
        return None
    if array.dtype.kind not in "biuf":
        return None
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _ragged(op: str, path: str, place: int, got: Any, expected: Any) -> RaggedError:
    where = f"at {path!r} " if path else ""
    error = RaggedError(
        op,
        f"items do not stack {where}(item {place} of the batch against the first)",
        got=_shown(got),
        expected=_shown(expected),
        hint=_ragged_hint(path, got, expected),
    )
    error.place = place
    return error


def _ragged_hint(path: str, got: Any, expected: Any) -> str | None:
    if not (isinstance(got, np.ndarray) and isinstance(expected, np.ndarray)):
        return None
    if got.dtype == expected.dtype:
        return _HINT if got.ndim == expected.ndim else None
    if {got.dtype.kind, expected.dtype.kind} != {"i", "f"} or got.ndim or not path.isidentifier():
        return None
    return f'dataset.map(lambda item: {{**item, "{path}": float(item["{path}"])}})'


def _shown(value: Any) -> str:
    if isinstance(value, (np.ndarray, Tensor)):
        return f"{value.dtype} {tuple(value.shape)}"
    return f"{type(value).__name__} {value!r:.40}"
