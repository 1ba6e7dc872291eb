"""Walks over modules: every field value is a module, a container, a parameter or a constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from phlox_tensor import Tensor

from ._param import Param

if TYPE_CHECKING:
    from ._module import Module

Rebuild = Callable[[str, Param], Param]
OnTensor = Callable[[Tensor[Any]], Tensor[Any]]
OnModule = Callable[["Module", dict[str, Any]], dict[str, Any]]


class Walked:
    """What walks see of a module. Its class is looked at once, not at each walk.

    Attributes:
        _names: the names of the fields.
        _plain: modules are made from their fields and from nothing else.
    """

    _names: ClassVar[tuple[str, ...]] = ()
    _plain: ClassVar[bool] = True


# What may hold parameters.
_SEQUENCES: Final = (list, tuple)
_HOLDERS: Final = (Walked, *_SEQUENCES, dict)


def items(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the named parts of a module or container; none for a constant."""
    if isinstance(value, Walked):
        yield from ((name, getattr(value, name)) for name in value._names)
    elif isinstance(value, dict):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from zip(_names(value), value, strict=True)


def _names(value: list[Any] | tuple[Any, ...]) -> Sequence[str]:
    """What the parts of a list or tuple are called; a named tuple has names of its own."""
    names: Sequence[str] | None = getattr(value, "_fields", None)
    return [str(i) for i in range(len(value))] if names is None else names


def join(path: str, name: str) -> str:
    """Return the path of a part."""
    return f"{path}.{name}" if path else name


def params(value: Any, path: str = "") -> Iterator[tuple[str, Param]]:
    """Return all parameters with their paths, in field order; a shared one at each place."""
    if isinstance(value, Param):
        yield path, value
    else:
        for name, item in items(value):
            yield from params(item, join(path, name))


def param_list(value: Any) -> list[Param]:
    """Return all parameters in field order, without their paths."""
    out: list[Param] = []
    _gather([value], out)
    return out


def _gather(values: Iterable[Any], out: list[Param]) -> None:
    for value in values:
        if type(value) is Param:
            out.append(value)
        elif isinstance(value, Walked):
            _gather([getattr(value, name) for name in value._names], out)
        elif isinstance(value, _SEQUENCES):
            _gather(value, out)
        elif isinstance(value, dict):
            _gather(value.values(), out)


def modules(value: Any, path: str = "") -> Iterator[tuple[str, Module]]:
    """Return all modules with their paths, the outer before the inner."""
    if isinstance(value, Walked):
        module: Any = value
        yield path, module
    for name, item in items(value):
        yield from modules(item, join(path, name))


def rebuild(
    value: Any,
    on_param: Rebuild,
    *,
    on_tensor: OnTensor | None = None,
    on_module: OnModule | None = None,
) -> Any:
    """Return ``value`` made anew with each parameter replaced; shared ones stay shared.

    Args:
        value: a module or a container.
        on_param: gives the new parameter for a path and a parameter.
        on_tensor: replaces plain tensors, which are constants otherwise.
        on_module: may change the new fields of a module before it is made.
    """
    seen: dict[int, Param] = {}

    def visit(item: Any, path: str) -> Any:
        if isinstance(item, Param):
            # By object: copies of one parameter share its id, and may differ in value.
            if id(item) not in seen:
                seen[id(item)] = on_param(path, item)
            return seen[id(item)]
        if isinstance(item, Tensor):
            return item if on_tensor is None else on_tensor(item)
        if isinstance(item, Walked):
            module: Any = item
            new = {name: visit(getattr(item, name), join(path, name)) for name in item._names}
            if on_module is not None:
                return type(module).from_fields(**on_module(module, new))
            return _remade(module, new)
        if isinstance(item, dict):
            return type(item)(
                (key, visit(part, join(path, str(key)))) for key, part in item.items()
            )
        if isinstance(item, list):
            return [visit(part, join(path, name)) for name, part in items(item)]
        if isinstance(item, tuple):
            parts = [visit(part, join(path, name)) for name, part in items(item)]
            return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
        return item

    return visit(value, "")


def exchanged(value: Any, new: Mapping[str, Param]) -> Any:
    """Return ``value`` with the parameters of ``new``, by id; what holds none of them is shared."""
    if isinstance(value, Walked):
        module: Any = value
        changed = _exchanged_parts(vars(module).items(), new)
        return _remade(module, changed) if changed else value
    if isinstance(value, dict):
        changed = _exchanged_parts(value.items(), new)
        return type(value)({**value, **changed}) if changed else value
    if isinstance(value, _SEQUENCES):
        changed = _exchanged_parts(enumerate(value), new)
        if not changed:
            return value
        items = [changed.get(i, part) for i, part in enumerate(value)]
        if isinstance(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return new.get(value.id, value) if isinstance(value, Param) else value


def _exchanged_parts(parts: Iterable[tuple[Any, Any]], new: Mapping[str, Param]) -> dict[Any, Any]:
    out = {}
    for name, part in parts:
        if type(part) is Param:
            made: Any = new.get(part.id, part)
        elif isinstance(part, _HOLDERS):
            made = exchanged(part, new)
        else:
            continue
        if made is not part:
            out[name] = made
    return out


def _remade(module: Module, changed: dict[str, Any]) -> Module:
    """A module with some fields changed; what constructors decide is decided already."""
    if not module._plain:
        values = {name: getattr(module, name) for name in module._names}
        return type(module).from_fields(**{n: changed.get(n, v) for n, v in values.items()})
    made = object.__new__(type(module))
    fields: dict[str, Any] = vars(made)
    fields.update(vars(module))
    fields.update(changed)
    return made
