"""Modules inside modules: found by path, walked, exchanged, averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from phlox_tensor import ArgumentError, WrongTypeError, tree

from ..param.param import Param
from ..parts import fields as _fields
from ..parts import walk as _walk
from ..parts.dropped import kept
from ..where import require_two
from .module import Module

M = TypeVar("M", bound=Module)
Around = Callable[[str, Module], object]


def modules(module: Module, path: str = "") -> Iterator[tuple[str, Module]]:
    """Yield all modules with their paths, the outer before the inner, the module itself first.

    >>> import phlox_nn as nn
    >>> [path for path, _ in nn.modules(nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)))]
    ['', 'layers.0', 'layers.1']
    """
    yield from _walk.modules(module, path)


def visit_modules(module: Module, enter: Around, exit: Around | None = None) -> None:
    """Call ``enter(path, module)`` before, and ``exit`` after the modules inside each module.

    Raises:
        WrongTypeError: for a function of other arguments.

    Example:
        >>> import phlox_nn as nn
        >>> seen = []
        >>> nn.visit_modules(nn.Sequential(nn.Linear(2, 3)), lambda path, part: seen.append(path))
        >>> seen
        ['', 'layers.0']
    """
    require_two("visit_modules", enter, "module")
    require_two("visit_modules", exit, "module")
    work: list[tuple[str, Any, bool]] = [("", module, False)]
    while work:
        path, each, left = work.pop()
        if left:
            if exit is not None:
                exit(path, each)
            continue
        enter(path, each)
        work.append((path, each, True))
        inside = [item for item in _walk.inner_parts(each) if isinstance(item[1], Module)]
        work += [(_fields.join(path, name), inner, False) for name, inner in inside[::-1]]


@kept("model = nn.map_modules(model, function)")
def map_modules(module: M, function: Callable[[str, Module], Module]) -> M:
    """Return the module with ``function(path, inner)`` in place of all modules inside it.

    The inner ones are exchanged before the outer ones. One that stands at several places is given
    at the first, and stays one.

    Raises:
        WrongTypeError: for a function of other arguments, or one that gives no module.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Activation("relu"))
        >>> gelu = nn.Activation("gelu")
        >>> swap = lambda path, part: gelu if isinstance(part, nn.Activation) else part
        >>> nn.map_modules(model, swap).layers[1].settings.name
        'gelu'
    """
    require_two("map_modules", function, "module")
    done: dict[int, Module] = {}

    def leave(path: str, each: Module) -> None:
        if id(each) not in done:
            new = _with_inner(each, done)
            found: object = new if each is module else function(path, new)
            if not isinstance(found, Module):
                raise WrongTypeError(
                    "map_modules",
                    f"{path} becomes no module",
                    got=type(found).__name__,
                    expected="a module for each",
                    hint="nn.map_modules(model, lambda path, module: module)",
                )
            done[id(each)] = found

    visit_modules(module, lambda path, each: None, leave)
    made: Any = done[id(module)]
    return made


def _with_inner(module: Module, new: dict[int, Module]) -> Module:
    """The module with others in the place of those in its fields."""
    changes: dict[str, Any] = {}
    for name, value in _fields.fields_of(module).items():
        if isinstance(value, Param) or _fields.holds_nothing(value):
            continue
        leaves, structure = tree.flatten(value, leaf=(Module, Param))
        after = [new[id(leaf)] if isinstance(leaf, Module) else leaf for leaf in leaves]
        if any(a is not b for a, b in zip(leaves, after, strict=True)):
            changes[name] = tree.rebuild(structure, after)
    return module.replace(**changes) if changes else module


@kept("average = nn.moving_average(average, model, 0.999)")
def moving_average(average: M, module: Module, decay: float) -> M:
    """Return ``average · decay + module · (1 - decay)`` for weights; state is taken over.

    Start from the module itself, ``average = model.valid()``. A copy that follows slowly, as in
    reinforcement learning, is the same with another decay; parameters of a copy by ``fork``, whose
    ids are its own, find their partners by path. Polyak and Juditsky, 1992.

    Raises:
        ArgumentError: when a parameter of one has no partner in the other, for weights that are
            stored as integers, and for a decay that is no share.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.Linear(2, 1)
        >>> nn.moving_average(model, model, 0.9).num_params()
        3
    """
    if not 0.0 <= decay <= 1.0:
        raise ArgumentError(
            "moving_average", "no share of the average", got=decay, expected="0 <= decay <= 1"
        )
    partners = {param.id: param for _, param in _walk.params(module)}
    places, slow = dict(_walk.params(module)), dict(_walk.params(average))
    if places.keys() != slow.keys() or any(param.id in partners for param in slow.values()):
        places = {}  # ids alone say which belong together

    def mixed(path: str, param: Param) -> Param:
        partner = partners.get(param.id, places.get(path))
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
        if param.role == "weight" and param.dtype.kind != "Float":
            raise ArgumentError(
                "moving_average",
                f"{path} has no average",
                got=f"{param.dtype}: a weight stored as integers",
                expected="floats",
                hint="average the model before nn.quantize_weights",
            )
        if param.role == "state":
            return param.with_value(value)
        old = param.value.detach()
        return param.with_value(old + (value - old) * (1.0 - decay))

    return average.map(mixed)
