"""Walks over modules: their parts by path, and modules with other parts.

Two ways lead to a module with other parts:
``changed`` goes through fields, which tensors and settings may follow, and completes each module
anew (devices, modes, records); ``mapped`` and ``with_params_by_id`` rebuild the tree of parameters
alone, at the cost of one step of training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from phlox_tensor import ArgumentError, PhloxError, Tensor, tree

from ..param.errors import no_param
from ..param.param import Param
from ..where import require_two
from . import hidden as _hidden
from .fields import (
    PARTS,
    ModuleNode,
    Structure,
    copy_of,
    fields_of,
    held_in,
    holds_nothing,
    join,
    may_change,
    parts,
    set_flat,
    set_known,
    set_places,
    set_values,
)

OnParam = Callable[[str, Param], Param]
OnTensor = Callable[[str, Tensor[Any]], Tensor[Any]]
OnFields = Callable[[dict[str, Any]], dict[str, Any]]
W = TypeVar("W", bound="ModuleNode")


class _Flat(NamedTuple):
    """The parameters of a module, their paths and what is around them; shared modules come once.

    Attributes:
        by_id: filled when first asked for, once ids are found to be right.
    """

    params: list[Param]
    paths: list[str]
    structure: tree.Structure
    by_id: dict[str, Param]


def survey(module: ModuleNode, path: str = "") -> list[tuple[str, Any]]:
    """Return all modules, parameters and tensors with their paths, in field order.

    The outer come before the inner, the module itself first; what is shared comes at each place.
    """
    found: list[tuple[str, Any]] = []
    work: list[tuple[str, Any]] = [(path, module)]
    while work:
        at, each = work.pop()
        found.append((at, each))
        if isinstance(each, ModuleNode):
            work += [(join(at, name), inner) for name, inner in reversed(inner_parts(each))]
    return found


def modules(module: ModuleNode, path: str = "") -> list[tuple[str, Any]]:
    """Return all modules with their paths, the outer before the inner, the module itself first."""
    return [item for item in survey(module, path) if isinstance(item[1], ModuleNode)]


def name_place(module: Any, error: Exception) -> None:
    """Add to an error of a call where the module that raised it is, seen from those around it."""
    inner = error.__dict__.setdefault("_raised_in", module)
    if inner is module or not isinstance(error, PhloxError):
        return
    path = next((path for path, part in modules(module) if part is inner), None)
    if path is not None:
        notes = error.__dict__.setdefault("__notes__", [])
        text = f"in {path}: {repr(inner).partition(' {')[0]}"
        notes[:] = [*(note for note in notes if not note.endswith(text.partition(": ")[2])), text]


def inner_parts(module: ModuleNode) -> list[tuple[str, Any]]:
    """Return modules, parameters and tensors in the fields of a module, by path."""
    return [
        (join(name, path), leaf)
        for name, value in fields_of(module).items()
        for path, leaf in held_in(value)
        if isinstance(leaf, PARTS)
    ]


def _first_places(module: ModuleNode) -> list[tuple[str, Any]]:
    """Each parameter and module once, at its first place: a module after all that is in it."""
    found: list[tuple[str, Any]] = []
    seen = set[int]()  # of objects that the module keeps
    work: list[tuple[str, Any, bool]] = [("", module, False)]
    while work:
        path, each, left = work.pop()
        if left:
            found.append((path, each))
        if left or id(each) in seen:
            continue
        seen.add(id(each))
        work.append((path, each, True))
        if isinstance(each, Param):
            continue
        inside = [
            (join(path, name), leaf, False)
            for name, leaf in inner_parts(each)
            if not isinstance(leaf, Tensor)
        ]
        work += inside[::-1]
    return found


def place_of(module: object, outer: Sequence[tuple[object, str]]) -> str:
    """Return the path of a module inside the outermost of those that run; its class if it is none.

    Args:
        module: what is called.
        outer: the modules that run, the outermost first, with their paths.
    """
    root = outer[0][0] if outer else None
    found = _places(root).get(id(module)) if isinstance(root, ModuleNode) else None
    return found[0] if found else type(module).__name__


def _places(module: ModuleNode) -> dict[int, tuple[str, Any]]:
    """The modules inside a module by id, each with its nearest path."""
    found: dict[int, tuple[str, Any]] | None = getattr(module, "_places", None)
    if found is None:
        found = {}
        waiting: list[tuple[str, Any]] = parts(module)
        for path, value in waiting:  # which grows meanwhile: the nearest first
            if id(value) in found or holds_nothing(value):
                continue
            if isinstance(value, ModuleNode):
                found[id(value)] = path, value
            waiting += [(join(path, name), item) for name, item in parts(value)]
        set_places(module, found)
    return found


def part_at(module: ModuleNode, path: Any) -> Any:
    """Return what is at a path."""
    if not isinstance(path, str):
        raise ArgumentError("path", "not a path", got=path, expected="text", hint='"layers.0"')
    found: Any = module
    for name in path.split(".") if path else ():
        inside = dict(parts(found))
        if name not in inside:
            there = ", ".join(list(inside)[:8]) or f"no path inside {type(found).__name__}"
            got = f"{name!r} of {path!r}"
            raise ArgumentError(
                "path", "nothing is there", got=got, expected=there, hint="print(model)"
            )
        found = inside[name]
    return found


def complete(module: ModuleNode) -> None:
    """Take the attributes of a module for its fields, for good, and check them.

    Raises:
        ArgumentError: for a tensor that wants a gradient and is no parameter.
        TreeError: for a value that does not come apart, and holds tensors, parameters or modules.
    """
    values = vars(module)
    has_params = undecided = changeable = False
    height = 1
    for name, value in values.items():
        if not name.isidentifier():
            raise _hidden.no_name(name, type(module).__name__)
        if isinstance(value, PARTS):
            held: list[tuple[str, Any]] = [("", value)]
        elif _hidden.is_simple(value):
            changeable = changeable or may_change(value)
            continue
        else:
            _hidden.check(name, type(module).__name__, value, PARTS)
            held = held_in(value)
            inside: dict[str, Any] = {}
            for path, leaf in held:
                if isinstance(leaf, ModuleNode | Param):
                    _hidden.add(inside, name, path, leaf)
            changeable = changeable or (may_change(value) and not inside)
        for path, leaf in held:
            if isinstance(leaf, ModuleNode):
                known = getattr(leaf, "_known", None)  # a module under construction has none
                changeable = changeable or (known is not None and known.changeable)
                has_params = has_params or (known is not None and known.has_params)
                undecided = undecided or (known is not None and known.undecided)
                height = max(height, 1 + (0 if known is None else known.height))
            elif isinstance(leaf, Param):
                has_params = True
            elif isinstance(leaf, Tensor) and leaf.requires_grad:
                raise _hidden.unseen(type(module).__name__, join(name, path))
    if "training" in values and values["training"] is None:
        undecided = True
    set_values(module, dict(values))
    set_known(module, Structure(tuple(values), has_params, undecided, changeable, height))
    if undecided and has_params:
        weights = tree.leaves(module, leaf=Param)  # kept nowhere: the structure changes
        _decide(module, any(param.device.records for param in weights))


def _decide(module: ModuleNode, training: bool) -> None:
    """Give ``training`` to the layers that were made without a device."""

    def decide(values: dict[str, Any]) -> dict[str, Any]:
        undecided = "training" in values and values["training"] is None
        return {**values, "training": training} if undecided else values

    vars(module).update(vars(changed(module, on_fields=decide)))
    set_known(module, module._known._replace(undecided=False))


def remade(module: W, values: Mapping[str, Any]) -> W:
    """Return a module like ``module`` with other fields: no constructor decides again."""
    made = object.__new__(type(module))
    vars(made).update(values)
    complete(made)
    return made


def changed(
    module: W,
    on_param: OnParam | None = None,
    *,
    on_tensor: OnTensor | None = None,
    on_fields: OnFields | None = None,
) -> W:
    """Return the module with its parts replaced; shared parameters and modules stay shared.

    Args:
        module: the module.
        on_param: gives the new parameter for a path and a parameter; once for a shared one.
        on_tensor: gives the new tensor for one that is a field, or in a container in one; once
            for one of a shared module.
        on_fields: may change the new fields of each module once, the inner before the outer.
    """
    made: dict[int, Any] = {}  # what modules and parameters become, by what they were

    def part(path: str, item: Any) -> Any:
        if isinstance(item, Tensor):
            return item if on_tensor is None else on_tensor(path, item)
        return made.get(id(item), item)

    def field(path: str, value: Any) -> Any:
        if isinstance(value, PARTS):
            return part(path, value)
        if holds_nothing(value):
            return copy_of(value) if may_change(value) else value
        leaves, structure = tree.flatten(value, leaf=PARTS)
        if not any(isinstance(leaf, PARTS) for leaf in leaves):
            return structure.rebuild(leaves) if may_change(value) else value
        named = tree.leaves_with_paths(value, leaf=PARTS)
        return structure.rebuild([part(join(path, name), item) for name, item in named])

    for path, each in _first_places(module):
        if isinstance(each, Param):
            # By object: copies of one parameter share its id, and may differ in value.
            made[id(each)] = each if on_param is None else on_param(path, each)
            continue
        fields = fields_of(each)
        values = {name: field(join(path, name), value) for name, value in fields.items()}
        made[id(each)] = remade(each, values if on_fields is None else on_fields(values))
    return made[id(module)]


def exchanged(module: W, new: Mapping[str, Any], on_fields: OnFields | None) -> W:
    """Return the module with other parameters and tensors, by their first paths."""
    return changed(
        module, lambda path, _: new[path], on_tensor=lambda path, _: new[path], on_fields=on_fields
    )


def params(module: ModuleNode) -> list[tuple[str, Param]]:
    """Return all parameters with their paths, in field order; a shared one at each place."""
    found = _flat(module)
    if not found.structure.shares:
        return list(zip(found.paths, found.params, strict=True))
    return [item for item in survey(module) if isinstance(item[1], Param)]


def listed(module: ModuleNode) -> list[Param]:
    """Return all parameters in field order, a shared one at each place."""
    return [param for _, param in params(module)]


def called(op: str, function: Callable[[str, Param], Any], path: str, param: Param) -> Any:
    """Return what a function gives for a parameter at a path.

    Raises:
        WrongTypeError: for a function of other arguments.
    """
    try:
        return function(path, param)
    except TypeError:
        require_two(op, function, "param")
        raise


def mapped(module: W, on_param: OnParam) -> W:
    """Return the module with its parameters replaced, once each."""
    found = _lasting(module)
    seen: dict[int, Param] = {}
    after = []
    for path, param in zip(found.paths, found.params, strict=True):
        new = seen.get(id(param))
        if new is None:
            new = seen[id(param)] = called("map", on_param, path, param)
            if not isinstance(new, Param):
                raise no_param(path, new)
        after.append(new)
    return _rebuilt(found, after)


def _flat(module: ModuleNode) -> _Flat:
    found: _Flat | None = getattr(module, "_flat", None)
    if found is not None:
        if len(vars(module)) != len(module._known.names):
            fields_of(module)  # looks at what came later
    else:
        held, structure = tree.flatten(module, leaf=Param)
        paths = [path for path, _ in tree.leaves_with_paths(module, leaf=Param)]
        found = _Flat(held, paths, structure, {})
        set_flat(module, found)
    return found


def _lasting(module: ModuleNode) -> _Flat:
    """The same, from which modules are made again: lists of constants are looked at anew."""
    found = _flat(module)
    if not module._known.changeable:
        return found
    return found._replace(structure=tree.flatten(module, leaf=Param)[1])


def _rebuilt(found: _Flat, after: list[Param]) -> Any:
    made = found.structure.rebuild(after)
    set_flat(made, _Flat(after, found.paths, found.structure, {}))
    return made


def by_id(module: ModuleNode) -> dict[str, Param]:
    """Return the parameters by id, in field order.

    Raises:
        ArgumentError: when two parameters that are not the same have the same id.
    """
    found = _flat(module)
    if not found.by_id:
        known: dict[str, Param] = {}
        for param in found.params:
            if known.setdefault(param.id, param) is not param:
                raise _two_of_one_id(module, known[param.id], param)
        found.by_id.update(known)
    return found.by_id


def _two_of_one_id(module: ModuleNode, one: Param, other: Param) -> ArgumentError:
    first = next(path for path, p in params(module) if p is one)
    second = next(path for path, p in params(module) if p is other)
    return ArgumentError(
        "module",
        "two parameters have one id",
        got=f"{first} and {second} as different objects",
        expected="an id of its own for each, or one object at both places",
        hint="copy.deepcopy(part) or part.fork(device) for a copy that trains by itself; "
        "the same seed twice gives the same ids twice",
    )


def with_params_by_id(module: W, new: Mapping[str, Param]) -> W:
    """Return the module with the parameters of ``new``, by id.

    Raises:
        ArgumentError: for a key that is no id of the module, and for a value that is no parameter
            of the same shape.
    """
    old = by_id(module)
    given: Mapping[str, Any] = new
    for key, param in given.items():
        before = old.get(key)
        if before is None or type(param) is not Param or param.shape != before.shape:
            raise _unfit(module, key, param)
    found = _lasting(module)
    after = [new.get(param.id, param) for param in found.params]
    if after == found.params:
        return module
    return _rebuilt(found, after)


def _unfit(module: ModuleNode, key: object, given: object) -> ArgumentError:
    """Why a parameter cannot be exchanged for what was given."""
    by_path = dict(params(module))
    known = {param.id: path for path, param in reversed(by_path.items())}
    if key not in known:
        path = key if key in by_path else next(iter(by_path), "weight")
        return ArgumentError(
            "with_params",
            "a key is no id of a parameter of the module",
            got=f"the path {key!r}" if key in by_path else repr(key),
            expected="ids of parameters",
            hint=f"model.with_params({{model.params()[{path!r}].id: param}})",
        )
    old = by_path[known[str(key)]]
    got, change = repr(given), f"model.params()[{known[str(key)]!r}].with_value(x)"
    if not isinstance(given, Param):
        got = type(given).__name__
    return ArgumentError(
        "with_params",
        f"{known[str(key)]} cannot become this",
        got=got,
        expected=f"a Param of shape {old.shape}",
        hint=f"{{param.id: {change}}}; model.replace(...) for one of another shape",
    )
