"""Walks over modules: every field is a module, a container, a parameter, a tensor or a constant.

Containers come apart by ``phlox_tensor.tree``; here stands what a module adds to it: its fields,
and that its constants are part of its structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from phlox_tensor import ArgumentError, Backend, Tensor, tree

from ._param import Param

if TYPE_CHECKING:
    pass

OnParam = Callable[[str, Param], Param]
OnTensor = Callable[[str, Tensor[Any]], Tensor[Any]]
OnFields = Callable[[dict[str, Any]], dict[str, Any]]
W = TypeVar("W", bound="Walked")


class Walked:
    """What walks see of a module.

    Attributes:
        _names: the names of the fields, once the module is complete.
        _device: where its first parameter is, if it has any.
        _undecided: whether a part does not know yet if it trains.
        _flat: parameters in field order, and the structure around them, once asked for.
    """

    __slots__ = ("__dict__", "__weakref__", "_device", "_flat", "_names", "_undecided")

    _names: tuple[str, ...]
    _device: Backend | None
    _undecided: bool
    _flat: tuple[list[Any], tree.Structure] | None


_PARTS: Final = (Walked, Param, Tensor)


def fields_of(module: Walked) -> dict[str, Any]:
    """Return the fields of a module by name: its attributes when it was complete."""
    values = vars(module)
    return {name: values[name] for name in module._names}


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of a module or container; none for a leaf."""
    if isinstance(value, Walked):
        return list(fields_of(value).items())
    return [] if isinstance(value, _PARTS) else tree.children(value)


def place_of(module: object, outer: Sequence[tuple[object, str]]) -> str:
    """Return the path of a module inside the outermost of those that run; its class if it is none.

    Args:
        module: what is called.
        outer: the modules that run, the outermost first, with their paths.
    """
    if outer and isinstance(outer[0][0], Walked):
        waiting: list[tuple[str, Any]] = parts(outer[0][0])
        for path, value in waiting:  # which grows meanwhile: the nearest first
            if value is module:
                return path
            waiting += [(join(path, name), item) for name, item in parts(value)]
    return type(module).__name__


def join(path: str, name: str) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path and name else path or name


def complete(module: Walked) -> None:
    """Take the attributes of a module for its fields, for good, and check them.

    Raises:
        ArgumentError: for a tensor that wants a gradient and is no parameter.
        TreeError: for a container of an unknown type that holds tensors, parameters or modules.
    """
    module._names = tuple(vars(module))
    module._flat = None
    device, undecided = None, False
    for path, leaf in tree.leaves_with_paths(vars(module), leaf=(Walked, Param)):
        if isinstance(leaf, Tensor) and leaf.requires_grad:
            raise _unseen(module, path)
        if isinstance(leaf, Walked):
            undecided = undecided or getattr(leaf, "_undecided", False)
            device = device or getattr(leaf, "_device", None)
        elif isinstance(leaf, Param):
            device = device or leaf.device
    own = "training" in module._names and vars(module)["training"] is None
    module._device, module._undecided = device, undecided or own
    if module._undecided and device is not None:
        _decide(module, device.records)


def _unseen(module: Walked, path: str) -> ArgumentError:
    return ArgumentError(
        "module",
        f"{path} of {type(module).__name__} is not seen as a parameter",
        got="a tensor that wants a gradient",
        expected="a parameter, or a constant",
        hint="nn.Param(x) to train it, x.detach() for a constant",
    )


def _decide(module: Walked, training: bool) -> None:
    """Give ``training`` to the layers that were made without a device."""

    def decide(values: dict[str, Any]) -> dict[str, Any]:
        undecided = "training" in values and values["training"] is None
        return {**values, "training": training} if undecided else values

    vars(module).update(vars(changed(module, on_fields=decide)))
    module._undecided = False


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

    def part(path: str, item: Any) -> Any:
        if isinstance(item, Walked):
            return visit(path, item)
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

    def visit(path: str, module: Any) -> Any:
        fields = fields_of(module)
        _, structure = tree.flatten(fields, leaf=_PARTS)
        named = tree.leaves_with_paths(fields, leaf=_PARTS)
        values = structure.rebuild([part(join(path, name), item) for name, item in named])
        return remade(module, values if on_fields is None else on_fields(values))

    made: W = visit("", module)
    return made


def params(module: Walked) -> Iterator[tuple[str, Param]]:
    """Return all parameters with their paths, in field order; a shared one at each place."""
    return iter(tree.leaves_with_paths(module, leaf=Param))


def tensors(value: Any) -> bool:
    """Whether a module, container or leaf is or holds a parameter or a tensor."""
    work = [value]
    while work:
        item = work.pop()
        if isinstance(item, Param | Tensor):
            return True
        work.extend(part for _, part in parts(item))
    return False


def flat(module: Walked) -> tuple[list[Param], tree.Structure]:
    """Return the parameters in field order, each at each place, and the structure around them.

    Raises:
        ArgumentError: when two parameters that are not the same have the same id.
    """
    if module._flat is None:
        found, structure = tree.flatten(module, leaf=Param)
        _one_per_id(module, found)
        module._flat = found, structure
    return module._flat


def _one_per_id(module: Walked, found: Sequence[Param]) -> None:
    known: dict[str, Param] = {}
    for param in found:
        other = known.setdefault(param.id, param)
        if other is not param:
            first = next(path for path, p in params(module) if p is other)
            second = next(path for path, p in params(module) if p is param)
            raise ArgumentError(
                "module",
                "two parameters have one id",
                got=f"{first} and {second} as different objects",
                expected="an id of its own for each, or one object at both places",
                hint="copy.deepcopy(part) or part.fork(device) for a copy that trains by itself; "
                "the same seed twice gives the same ids twice",
            )


def exchanged(module: W, new: Mapping[str, Param]) -> W:
    """Return the module with the parameters of ``new``, by id."""
    found, structure = flat(module)
    after = [new.get(param.id, param) for param in found]
    if after == found:
        return module
    made: W = structure.rebuild(after)
    _set(made, "_flat", (after, structure))
    return made


# Modules as nodes of trees: parameters and modules are children, wherever in a field they stand;
# all else is part of the structure.


class _Held:
    """What stands in the place of a child among the constants of a module."""


_HELD: Final = _Held()
_set: Final = object.__setattr__


def flatten(module: Walked) -> tuple[dict[str, Any], Any]:
    """Return parameters and modules by path, and what is needed to make the module again."""
    children: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    containers: dict[str, tuple[tree.Structure, list[Any]]] = {}
    for name, value in fields_of(module).items():
        if isinstance(value, Walked | Param):
            children[name] = value
            constants[name] = _HELD
        elif tree.is_node(value):
            leaves, structure = tree.flatten(value, leaf=_PARTS)
            held = [_HELD if isinstance(x, Walked | Param) else x for x in leaves]
            if any(x is _HELD for x in held):
                constants[name] = _HELD
                containers[name] = structure, held
                for path, leaf in tree.leaves_with_paths(value, leaf=_PARTS):
                    if isinstance(leaf, Walked | Param):
                        children[join(name, path)] = leaf
                continue
            constants[name] = value
        else:
            constants[name] = value
    return children, (type(module), constants, containers, module._undecided, module._names)


def rebuild(children: Mapping[str, Any], rest: Any) -> Walked:
    """Make a module of other parameters and modules."""
    cls, constants, containers, undecided, names = rest
    if containers:
        values = dict(constants)
        given = iter(children.values())
        for name, value in constants.items():
            if name in containers:
                structure, held = containers[name]
                values[name] = structure.rebuild([next(given) if x is _HELD else x for x in held])
            elif value is _HELD:
                values[name] = next(given)
    else:
        values = {**constants, **children}
    device = None
    for child in children.values():
        if isinstance(child, Param):
            device = child.device
        elif isinstance(child, Walked):
            device = child._device
        if device is not None:
            break
    made: Walked = object.__new__(cls)
    vars(made).update(values)
    # Past the refusal to change: every step of an optimizer comes here.
    _set(made, "_device", device)
    _set(made, "_undecided", undecided)
    _set(made, "_names", names)
    _set(made, "_flat", None)
    return made


tree.register(Walked, flatten, rebuild)
