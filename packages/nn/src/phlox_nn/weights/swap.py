"""What fields of modules hold, map_fields with its path and its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from phlox_tensor import ArgumentError, tree

from ..module.module import Module
from ..module.visit import map_modules
from ..param.param import Param
from ..parts import fields as _fields
from .computed import ComputedWeight

M = TypeVar("M", bound=Module)


def map_fields(model: M, function: Callable[[str, Any, Module], Any]) -> M:
    """Return the model with ``function(path, part, owner)`` for modules and parameters in it."""

    def inside(path: str, module: Module) -> Module:
        changes: dict[str, Any] = {}
        for name, value in _fields.fields_of(module).items():
            if _fields.holds_nothing(value):
                continue
            if isinstance(value, Module | Param):
                new = function(_fields.join(path, name), value, module)
                changes |= {} if new is value else {name: new}
                continue
            named = tree.leaves_with_paths(value, leaf=(Module, Param))
            after = [
                function(_fields.join(_fields.join(path, name), at), leaf, module)
                for at, leaf in named
            ]
            if any(a is not b for a, (_, b) in zip(after, named, strict=True)):
                changes[name] = tree.flatten(value, leaf=(Module, Param))[1].rebuild(after)
        return module.replace(**changes) if changes else module

    inner: Any = inside("", map_modules(model, inside))
    return inner


def is_conv_transposed(layer: Module) -> bool:
    """Whether a layer is a transposed convolution, whose weight has the inputs first."""
    return getattr(type(layer)._config, "_transposed", False)


def inputs_first(path: str, owner: Module) -> bool:
    """Whether the weight at a path of a layer has the inputs in front of the outputs."""
    name = path.rpartition(".")[2]
    turned = name in getattr(type(owner), "transposed_in_pytorch", ())
    return turned or (name == "weight" and is_conv_transposed(owner))


def plain_again(
    model: M,
    kind: type[ComputedWeight] | tuple[type[ComputedWeight], ...],
    op: str,
    what: str,
    maker: str,
) -> M:
    """Return the model with parameters in the place of weights of a kind that are made of others.

    Raises:
        ArgumentError: when the model has none.
    """
    plain: dict[int, Param] = {}

    def one(path: str, leaf: Any, owner: Module) -> Any:
        del path, owner
        if not isinstance(leaf, kind):
            return leaf
        key = id(leaf.source)  # which is one where the weight is shared
        if key not in plain:
            plain[key] = leaf.into_param()
        return plain[key]

    out = map_fields(model, one)
    if not plain:
        raise ArgumentError(
            op,
            f"no weight is {what}",
            got=type(model).__name__,
            expected=f"what nn.{maker}(model) gave",
        )
    return out
