"""Walks over modules: every field is a module, a container, a parameter, a tensor or a constant.

Containers come apart by ``phlox_tensor.tree``; here stands what a module adds to it: its fields,
and that its constants are part of its structure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple, TypeVar

from phlox_tensor import ArgumentError, Tensor, tree
from phlox_tensor.no_operand import NoOperand

from . import _hidden
from ._param import Param, no_param

OnParam = Callable[[str, Param], Param]
OnTensor = Callable[[str, Tensor[Any]], Tensor[Any]]
OnFields = Callable[[dict[str, Any]], dict[str, Any]]
W = TypeVar("W", bound="Walked")


class _Known(NamedTuple):
    """What is known of a module once it is complete; the same for those of one structure.

    Attributes:
        names: the names of the fields.
        has_params: whether it holds parameters.
        undecided: whether a part does not know yet if it trains.
        changeable: whether it holds lists or dicts of constants.
        height: how many modules stand inside each other, itself included.
    """

    names: tuple[str, ...]
    has_params: bool
    undecided: bool
    changeable: bool
    height: int


class _Flat(NamedTuple):
    """The parameters of a module, each at each place, with their paths and what is around them.

    Attributes:
        by_id: filled when first asked for, once ids are found to be right.
    """

    params: list[Param]
    paths: list[str]
    structure: tree.Structure
    by_id: dict[str, Param]


class Walked(NoOperand):
    """What walks see of a module; the rest but ``_known`` is there once somebody asked."""

    __slots__ = ("__dict__", "__weakref__", "_flat", "_known", "_places", "_replayed")

    tensor_code = "model(x)"

    _known: _Known
    _flat: _Flat
    _places: dict[int, tuple[str, Any]]
    _replayed: Any


_set_known: Final[Any] = Walked.__dict__["_known"].__set__
_set_flat: Final[Any] = Walked.__dict__["_flat"].__set__
_set_places: Final[Any] = Walked.__dict__["_places"].__set__
# Attributes in a dict of the module's own, that ``vars`` of a new object is not, are read faster.
_set_values: Final[Any] = Walked.__dict__["__dict__"].__set__


PARTS: Final = (Walked, Param, Tensor)
# Values of these types hold nothing.
_SIMPLE: Final = frozenset({bool, bytes, complex, float, int, str, NoneType})


def fields_of(module: Walked) -> dict[str, Any]:
    """Return the fields of a module by name: its attributes when it was complete."""
    values = vars(module)
    return {name: values[name] for name in module._known.names}


def height(module: Walked) -> int:
    """Return how many modules stand inside each other, the module itself included."""
    return module._known.height


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of a module or container; none for a leaf."""
    if isinstance(value, Walked):
        return list(fields_of(value).items())
    return [] if isinstance(value, PARTS) else tree.children(value)


def modules(module: Walked, path: str = "") -> list[tuple[str, Any]]:
    """Return all modules with their paths, the outer before the inner, the module itself first."""
    found: list[tuple[str, Any]] = []
    work: list[tuple[str, Any]] = [(path, module)]
    while work:
        at, each = work.pop()
        found.append((at, each))
        work += [(join(at, name), inner) for name, inner in reversed(inner_modules(each))]
    return found


def inner_modules(module: Walked) -> list[tuple[str, Any]]:
    """Return the modules in the fields of a module, by path, not those inside them."""
    return [
        (join(name, path), leaf)
        for name, value in fields_of(module).items()
        if not tree.is_plain(value)
        for path, leaf in _held(value)
        if isinstance(leaf, Walked)
    ]


def place_of(module: object, outer: Sequence[tuple[object, str]]) -> str:
    """Return the path of a module inside the outermost of those that run; its class if it is none.

    Args:
        module: what is called.
        outer: the modules that run, the outermost first, with their paths.
    """
    root = outer[0][0] if outer else None
    found = _places(root).get(id(module)) if isinstance(root, Walked) else None
    return found[0] if found else type(module).__name__


def _places(module: Walked) -> dict[int, tuple[str, Any]]:
    """The modules inside a module by id, each with its nearest path."""
    found: dict[int, tuple[str, Any]] | None = getattr(module, "_places", None)
    if found is None or module._known.changeable:
        found = {}
        waiting: list[tuple[str, Any]] = parts(module)
        for path, value in waiting:  # which grows meanwhile: the nearest first
            if isinstance(value, Walked):
                found.setdefault(id(value), (path, value))
            waiting += [(join(path, name), item) for name, item in parts(value)]
        _set_places(module, found)
    return found


def part_at(module: Walked, path: Any) -> Any:
    """Return what is at a path.

    Raises:
        ArgumentError: when there is nothing.
    """
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


def join(path: str, name: str) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path and name else path or name


def complete(module: Walked) -> None:
    """Take the attributes of a module for its fields, for good, and check them.

    Raises:
        ArgumentError: for a tensor that wants a gradient and is no parameter.
        TreeError: for a value that does not come apart, and holds tensors, parameters or modules.
    """
    values = vars(module)
    has_params = undecided = changeable = False
    height = 1
    for name, value in values.items():
        if type(value) in _SIMPLE:
            continue
        _hidden.check(name, type(module).__name__, value, PARTS)
        held = _held(value)
        if _may_change(value):
            changeable = changeable or not any(isinstance(x, Walked | Param) for _, x in held)
        for path, leaf in held:
            if isinstance(leaf, Walked):
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
    _set_values(module, dict(values))
    _set_known(module, _Known(tuple(values), has_params, undecided, changeable, height))
    if undecided and has_params:
        first = tree.leaves(module, leaf=Param)[0]  # kept nowhere: the structure changes
        _decide(module, first.device.records)


def _held(value: Any) -> list[tuple[str, Any]]:
    """The modules, parameters, tensors and constants in a field, by path."""
    if isinstance(value, PARTS):
        return [("", value)]
    return tree.leaves_with_paths(value, leaf=PARTS)


def _may_change(value: Any) -> bool:
    """Whether a field is a list or dict, or a tuple with one inside."""
    if isinstance(value, tuple):
        return any(_may_change(item) for item in value)
    return isinstance(value, deque | dict | list)


def _decide(module: Walked, training: bool) -> None:
    """Give ``training`` to the layers that were made without a device."""

    def decide(values: dict[str, Any]) -> dict[str, Any]:
        undecided = "training" in values and values["training"] is None
        return {**values, "training": training} if undecided else values

    vars(module).update(vars(changed(module, on_fields=decide)))
    _set_known(module, module._known._replace(undecided=False))


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
    """Return the module with its parts replaced; shared parameters stay shared.

    Args:
        module: the module.
        on_param: gives the new parameter for a path and a parameter; once for a shared one.
        on_tensor: gives the new tensor for one that is a field, or in a container in one.
        on_fields: may change the new fields of each module, the inner before the outer.
    """
    seen: dict[int, Param] = {}
    done: list[Any] = []  # modules made again, those of the next outer one last

    def part(path: str, item: Any) -> Any:
        if isinstance(item, Walked):
            return done.pop()
        if isinstance(item, Param):
            if on_param is None:
                return item
            # By object: copies of one parameter share its id, and may differ in value.
            if id(item) not in seen:
                seen[id(item)] = on_param(path, item)
            return seen[id(item)]
        if isinstance(item, Tensor) and on_tensor is not None:
            return on_tensor(path, item)
        return item

    def field(path: str, value: Any) -> Any:
        if tree.is_plain(value):
            return value
        if isinstance(value, PARTS):
            return part(path, value)
        leaves, structure = tree.flatten(value, leaf=PARTS)
        if not any(isinstance(leaf, PARTS) for leaf in leaves):
            return structure.rebuild(leaves) if _may_change(value) else value
        named = tree.leaves_with_paths(value, leaf=PARTS)
        return structure.rebuild([part(join(path, name), item) for name, item in named])

    if on_param is not None:  # in the order of the fields
        for path, param in params(module):
            part(path, param)
    for path, each in reversed(modules(module)):
        fields = fields_of(each)
        values = {name: field(join(path, name), value) for name, value in fields.items()}
        done.append(remade(each, values if on_fields is None else on_fields(values)))
    made: W = done.pop()
    return made


def params(module: Walked) -> list[tuple[str, Param]]:
    """Return all parameters with their paths, in field order; a shared one at each place."""
    found = _flat(module)
    return list(zip(found.paths, found.params, strict=True))


def listed(module: Walked) -> list[Param]:
    """Return all parameters in field order, a shared one at each place."""
    return list(_flat(module).params)


def mapped(module: W, on_param: OnParam) -> W:
    """Return the module with its parameters replaced, once each."""
    found = _lasting(module)
    seen: dict[int, Param] = {}
    after = []
    for path, param in zip(found.paths, found.params, strict=True):
        new = seen.get(id(param))
        if new is None:
            new = seen[id(param)] = on_param(path, param)
            if not isinstance(new, Param):
                raise no_param(path, new)
        after.append(new)
    return _rebuilt(found, after)


def _flat(module: Walked) -> _Flat:
    found: _Flat | None = getattr(module, "_flat", None)
    if found is None:
        held, structure = tree.flatten(module, leaf=Param)
        paths = [path for path, _ in tree.leaves_with_paths(module, leaf=Param)]
        found = _Flat(held, paths, structure, {})
        _set_flat(module, found)
    return found


def _lasting(module: Walked) -> _Flat:
    """The same, from which modules are made again: lists of constants are looked at anew."""
    found = _flat(module)
    if not module._known.changeable:
        return found
    return found._replace(structure=tree.flatten(module, leaf=Param)[1])


def _rebuilt(found: _Flat, after: list[Param]) -> Any:
    made = found.structure.rebuild(after)
    _set_flat(made, _Flat(after, found.paths, found.structure, {}))
    return made


def by_id(module: Walked) -> dict[str, Param]:
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


def _two_of_one_id(module: Walked, one: Param, other: Param) -> ArgumentError:
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


def exchanged(module: W, new: Mapping[str, Param]) -> W:
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
    made: W = _rebuilt(found, after)
    return made


def _unfit(module: Walked, key: object, given: object) -> ArgumentError:
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
        got = f"a {type(given).__name__}"
    return ArgumentError(
        "with_params",
        f"{known[str(key)]} cannot become this",
        got=got,
        expected=f"a Param of shape {old.shape}",
        hint=f"{{param.id: {change}}}; model.replace(...) for one of another shape",
    )


# Modules as nodes of trees: parameters and modules are children, wherever in a field they stand;
# all else is part of the structure.


class _Held:
    """What stands in the place of a child among the constants of a module."""


_HELD: Final = _Held()


def flatten(module: Walked) -> tuple[dict[str, Any], Any]:
    """Return parameters and modules by path, and what is needed to make the module again."""
    children: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    containers: dict[str, tuple[tree.Structure, list[Any]]] = {}
    copied: list[str] = []  # so that no two modules share what could change
    for name, value in fields_of(module).items():
        constants[name] = value
        if tree.is_plain(value):
            continue
        if isinstance(value, Walked | Param):
            children[name] = value
            constants[name] = None
        elif tree.is_node(value):
            leaves, structure = tree.flatten(value, leaf=PARTS)
            held = [_HELD if isinstance(x, Walked | Param) else x for x in leaves]
            if any(x is _HELD for x in held):
                constants[name] = None
                containers[name] = structure, held
                for path, leaf in tree.leaves_with_paths(value, leaf=PARTS):
                    if isinstance(leaf, Walked | Param):
                        _hidden.add(children, join(name, path), leaf)
            elif _may_change(value):
                copied.append(name)
    return children, (type(module), constants, containers, copied, module._known)


def _itself(leaf: Any) -> Any:
    return leaf


def rebuild(children: Mapping[str, Any], rest: Any) -> Walked:
    """Make a module of other parameters and modules."""
    cls, constants, containers, copied, known = rest
    values = {**constants, **children} if not containers else dict(constants)
    for name in copied:
        values[name] = tree.map(_itself, values[name])
    if containers:
        given = dict(children)
        for name, (structure, held) in containers.items():
            paths = iter([path for path in children if path.startswith(f"{name}.")])
            leaves = [given.pop(next(paths)) if x is _HELD else x for x in held]
            values[name] = structure.rebuild(leaves)
        values.update(given)
    made: Walked = object.__new__(cls)
    _set_values(made, values)
    _set_known(made, known)
    return made


def _static(rest: Any) -> Any:
    """What tells modules apart whose parameters and parts are alike."""
    cls, constants, containers, _, _ = rest
    return cls, constants, containers


tree.register(Walked, flatten, rebuild, _static, slot="_replayed", whole=True)
