"""States of a rule: trees that move between devices, and go to records and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, Final, cast

from phlox_record import Record
from phlox_tensor import ArgumentError, Backend, CompileError, Tensor
from phlox_tensor import tree as trees
from phlox_tensor.capture import Number, recording, refuse

from ._rule import State
from ._settled import no_record

# A record has lists and no tuples; a tuple is a map with this one key, which no state may have.
# Named tuples and dataclasses are one too, of their class and their parts by name.
_TUPLE: Final = "()"
_PLAIN: Final = (bool, int, float, str, bytes, type(None), Number)


def check(state: State, rule: object) -> None:
    """Refuse at the first step what could not be saved after the last."""
    for path, node in trees.nodes_with_paths(state):
        if type(node) not in (dict, list, tuple):
            if not _is_fields(type(node)):
                raise _alien(path, node, "dict, list, tuple, named tuple or dataclass")
            if _class_of(type(node).__qualname__, rule) is not type(node):
                raise _unfound(type(node), rule)
            continue
        odd = [k for k in node if type(k) is not str or k == _TUPLE] if type(node) is dict else []
        if odd:
            raise _alien(path, odd[0], "keys that are text")
    for path, leaf in trees.leaves_with_paths(state):
        if not isinstance(leaf, Tensor) and type(leaf) not in _PLAIN:
            raise _alien(path, leaf, "Tensor, number, text or None")


def _is_fields(cls: type) -> bool:
    """Whether the values of a class are fields by name, and nothing else."""
    return is_dataclass(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))


def _class_of(name: str, rule: object) -> type | None:
    """The class of this name beside a rule, or inside of its class; a record runs no other code."""
    found: Any = sys.modules.get(type(rule).__module__)
    for part in name.split("."):
        found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
    return found if isinstance(found, type) and _is_fields(found) else None


def _unfound(cls: type, rule: object) -> ArgumentError:
    return ArgumentError(
        "step",
        "a record could not find the class of the state again",
        got=f"{cls.__module__}.{cls.__qualname__}",
        expected=f"a class in the module of {type(rule).__name__}, {type(rule).__module__}",
        hint="define both at the top of one file",
    )


def _alien(path: str, got: object, expected: str) -> ArgumentError:
    return ArgumentError(
        "step",
        f"{path or 'the state'} cannot be kept in a state",
        got=f"{type(got).__name__} {got!r:.60}",
        expected=expected,
    )


def moved(state: State, device: Backend) -> State:
    """Return the state with all tensors on a device.

    Raises:
        CompileError: in a compiled function, where they are on another one: a move reads them.
    """

    def move(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.device is device:
            return x
        if recording() is not None and x.device.base is not device.base:
            got, expected = repr(x.device), f"{device!r}, as the parameters are"
            hint = "with px.use_device(device): record = recorder.load(path)"
            what = "states of a loaded record are on another device"
            refuse(CompileError("step", what, got=got, expected=expected, hint=hint))
        return x.to_device(device)

    return trees.map(move, state)


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
    if _is_fields(type(state)):
        parts = {name: into_record(item) for name, item in trees.children(state)}
        return {_TUPLE: {"class": type(state).__qualname__, "parts": parts}}
    if isinstance(state, tuple):
        return {_TUPLE: [into_record(item) for item in state]}
    return state


def from_record(record: Any, rules: Sequence[object]) -> State:
    """Return the state that ``into_record`` wrote, of one of the rules.

    Raises:
        RecordError: when a record holds what no state does.
    """
    if isinstance(record, dict):
        inner = record.get(_TUPLE) if list(record) == [_TUPLE] else None
        if isinstance(inner, list):
            return tuple(from_record(item, rules) for item in inner)
        if isinstance(inner, dict):
            return _fields_from(inner, rules)
        return {key: from_record(item, rules) for key, item in record.items()}
    if isinstance(record, list):
        return [from_record(item, rules) for item in record]
    if isinstance(record, Tensor) or type(record) in _PLAIN:
        return record
    raise no_record(
        "not a record of an optimizer",
        f"{type(record).__name__} in a state",
        "what optimizer.into_record() gave, loaded with its tensors",
    )


def _fields_from(record: dict[str, Any], rules: Sequence[object]) -> State:
    """A named tuple or a dataclass of what its record holds.

    Raises:
        RecordError: when no rule has such a class, or the class has other fields.
    """
    name, parts = record.get("class"), record.get("parts")
    found = [_class_of(name, rule) for rule in rules] if isinstance(name, str) else []
    cls: Any = next((each for each in found if each is not None), None)
    known = [f.name for f in fields(cls)] if is_dataclass(cls) else getattr(cls, "_fields", ())
    if cls is None or not isinstance(parts, dict) or set(parts) != set(known):
        raise no_record(
            "a state is of a class that the rule does not have",
            f"{name} of {', '.join(parts) if isinstance(parts, dict) else parts!r}",
            f"{name} of {', '.join(known)}" if cls else "a class beside the rule",
        )
    made = {each: from_record(parts[each], rules) for each in known}
    if not is_dataclass(cls):
        return cls._make(made.values())
    state: Any = object.__new__(
        cast("type", cls)
    )  # past the constructor, which a record does not call
    for each, value in made.items():
        object.__setattr__(state, each, value)
    return state
