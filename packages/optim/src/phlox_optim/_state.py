"""States of a rule: trees that move between devices, and go to records and back."""

from __future__ import annotations

from typing import Any, Final

from phlox_record import Record
from phlox_tensor import ArgumentError, Backend, RecordError, Tensor
from phlox_tensor import tree as trees
from phlox_tensor.capture import Number

from ._rule import State

# A record has lists and no tuples; a tuple is a map with this one key, which no state may have.
_TUPLE: Final = "()"
_PLAIN: Final = (bool, int, float, str, bytes, type(None), Number)


def check(state: State) -> None:
    """Refuse at the first step what could not be saved after the last.

    Raises:
        ArgumentError: for anything but dicts with text keys, lists, tuples, tensors, plain values.
    """
    for path, node in trees.nodes_with_paths(state):
        if type(node) not in (dict, list, tuple):
            raise _alien(path, node, "dict, list or tuple")
        odd = [k for k in node if type(k) is not str or k == _TUPLE] if type(node) is dict else []
        if odd:
            raise _alien(path, odd[0], "keys that are text")
    for path, leaf in trees.leaves_with_paths(state):
        if not isinstance(leaf, Tensor) and type(leaf) not in _PLAIN:
            raise _alien(path, leaf, "Tensor, number, text or None")


def _alien(path: str, got: object, expected: str) -> ArgumentError:
    return ArgumentError(
        "step",
        f"{path or 'the state'} cannot be kept in a state",
        got=f"{type(got).__name__} {got!r:.60}",
        expected=expected,
    )


def placed(state: State, device: Backend) -> State:
    """Return the state with all tensors on a device."""
    return trees.map(lambda x: x.to_device(device) if isinstance(x, Tensor) else x, state)


def alike(state: State, numbers: list[Number]) -> object:
    """Return what is equal for two states that differ in the numbers of their tensors alone.

    Args:
        state: the state.
        numbers: those of a recording that were met so far, which have no hash.
    """

    def key(leaf: Any) -> object:
        if isinstance(leaf, Tensor):
            return leaf.dtype
        if type(leaf) is not Number:
            return type(leaf), leaf
        for place, known in enumerate(numbers):
            if known == leaf:
                return Number, place
        numbers.append(leaf)
        return Number, len(numbers) - 1

    leaves, structure = trees.flatten(state)
    return structure, tuple(map(key, leaves))


def into_record(state: State) -> Record:
    """Return a state as a record."""
    if isinstance(state, dict):
        return {key: into_record(item) for key, item in state.items()}
    if isinstance(state, list):
        return [into_record(item) for item in state]
    if isinstance(state, tuple):
        return {_TUPLE: [into_record(item) for item in state]}
    plain: Record = state
    return plain


def from_record(record: Any) -> State:
    """Return the state that ``into_record`` wrote.

    Raises:
        RecordError: when a record holds what no state does.
    """
    if isinstance(record, dict):
        if list(record) == [_TUPLE] and isinstance(record[_TUPLE], list):
            return tuple(map(from_record, record[_TUPLE]))
        return {key: from_record(item) for key, item in record.items()}
    if isinstance(record, list):
        return list(map(from_record, record))
    if isinstance(record, Tensor) or type(record) in _PLAIN:
        return record
    raise RecordError(
        "load_record",
        "not a record of an optimizer",
        got=f"{type(record).__name__} in a state",
        expected="what optimizer.into_record() gave, loaded with its tensors",
    )


def some(names: list[str], most: int = 4) -> str:
    """Some of many names, to be shown."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
