"""Modules inside modules: found by path, walked, exchanged, averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from phlox_tensor import ArgumentError, tree

from . import _walk
from ._module import Module
from ._param import Param

M = TypeVar("M", bound=Module)
Around = Callable[[str, Module], object]


def modules(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Yield all modules with their paths, the outer before the inner, the module itself first.

    >>> import phlox_nn as nn
    >>> [path for path, _ in nn.modules(nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)))]
    ['', 'layers.0', 'layers.1']
    """
    yield path, module
    for name, inner in _inner(module):
        yield from modules(inner, _walk.join(path, name))


def _inner(module: Module) -> list[tuple[str, Any]]:
    """The modules in the fields of a module, by path, not those inside them."""
    fields = _walk.fields_of(module)
    found = tree.leaves_with_paths(fields, leaf=(Module, Param))
    return [(name, leaf) for name, leaf in found if isinstance(leaf, Module)]


def visit_modules(module: Module, enter: Around, exit: Around | None = None) -> None:
    """Call ``enter(path, module)`` before, and ``exit`` after the modules inside each module."""

    def visit(path: str, module: Module) -> None:
        enter(path, module)
        for name, inner in _inner(module):
            visit(_walk.join(path, name), inner)
        if exit is not None:
            exit(path, module)

    visit("", module)


def map_modules(module: M, function: Callable[[str, Module], Module]) -> M:
    """Return the module with ``function(path, inner)`` in place of all modules inside it.

    The inner ones are exchanged before the outer ones. One that stands at several places is given
    at the first, and stays one.
    """
    done: dict[int, Module] = {}

    def mapped(path: str, outer: Module) -> Module:
        changes: dict[str, Any] = {}
        for name, value in _walk.fields_of(outer).items():
            leaves, structure = tree.flatten(value, leaf=(Module, Param))
            paths = [p for p, _ in tree.leaves_with_paths(value, leaf=(Module, Param))]
            new = list(leaves)
            for i, leaf in enumerate(leaves):
                if isinstance(leaf, Module):
                    at = _walk.join(_walk.join(path, name), paths[i])
                    if id(leaf) not in done:
                        done[id(leaf)] = function(at, mapped(at, leaf))
                    new[i] = done[id(leaf)]
            if any(a is not b for a, b in zip(leaves, new, strict=True)):
                changes[name] = tree.rebuild(structure, new)
        return outer.replace(**changes) if changes else outer

    made: Any = mapped("", module)
    found: M = made
    return found


def moving_average(average: M, module: Module, decay: float) -> M:
    """Return ``average · decay + module · (1 - decay)`` for weights; state is taken over.

    Start from the module itself, ``average = model.valid()``. A copy that follows slowly, as in
    reinforcement learning, is the same with another decay. Polyak and Juditsky, 1992.

    Raises:
        ArgumentError: when a parameter of one has no partner in the other.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.Linear(2, 1)
        >>> nn.moving_average(model, model, 0.9).num_params()
        3
    """
    partners = {param.id: param for _, param in _walk.params(module)}

    def mixed(path: str, param: Param) -> Param:
        partner = partners.get(param.id)
        if partner is None or partner.shape != param.shape:
            raise ArgumentError(
                "moving_average",
                f"{path} has no partner",
                got=f"a parameter of shape {param.shape}",
                expected="the same parameters in both",
                hint="average = model.valid()",
            )
        value = partner.value.detach()
        while value.device is not param.device and value.device.records:
            value = value.inner()
        value = value.to_device(param.device)
        if param.role == "state" or param.dtype.kind != "Float":
            return param.with_value(value)
        old = param.value.detach()
        return param.with_value(old + (value - old) * (1.0 - decay))

    return average.map(mixed)
