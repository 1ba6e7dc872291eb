"""First values of chosen weights of a model, drawn anew."""

from __future__ import annotations

from math import prod
from typing import Any, TypeVar

from ..initializers import Fans, Initializer
from ..module.module import Module
from ..param.param import Param
from ..parts import walk as _walk
from ..parts.dropped import kept
from ..where import Where, chosen, no_weight
from .swap import map_fields

M = TypeVar("M", bound=Module)


@kept('model = nn.initialize(model, nn.initializers.Zeros(), "*.bias")')
def initialize(model: M, initializer: Initializer, *where: Where) -> M:
    """Return the model with other first values of weights; all else stays, biases too.

    Values are made when they are first needed, as those of a new layer. Identities and what is
    frozen stay. How many inputs and outputs a weight has (``Fans``) is counted as PyTorch does: the
    first axis has the outputs, the second the inputs, in PyTorch's layout, each times the size of a
    kernel.

    Args:
        model: any module.
        initializer: of ``nn.initializers``.
        where: paths of weights or layers, in which ``*`` stands for anything, or functions of path
            and parameter; none for all weights of two axes or more.

    Raises:
        ArgumentError: when a path is that of no weight of floats.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Activation("relu"), nn.Linear(8, 2))
        >>> he = nn.initializers.KaimingNormal()
        >>> model = nn.initialize(model, he, "layers.0.weight")
    """
    able = {
        path: param
        for path, param in _walk.params(model)
        if param.role == "weight" and param.dtype.kind == "Float"
    }
    lacking = "a model with weights"
    paths = chosen("initialize", where, able, lacking)
    if not where:
        paths = {path for path in paths if len(able[path].shape) > 1}
    if not paths:
        raise no_weight("initialize", "none", able, lacking)
    shared = {id(able[path]) for path in paths}
    made: dict[int, Param] = {}

    def one(path: str, leaf: Any, owner: Module) -> Any:
        if not isinstance(leaf, Param) or id(leaf) not in shared:
            return leaf
        if id(leaf) not in made:
            made[id(leaf)] = _drawn(leaf, initializer, _fans(path, leaf, owner))
        return made[id(leaf)]

    return map_fields(model, one)


def _fans(path: str, param: Param, owner: Module) -> Fans:
    """The inputs and outputs of a weight by its layout in PyTorch."""
    shape = param.shape
    if len(shape) < 2:
        return Fans(prod(shape), prod(shape))
    if path.rpartition(".")[2] in getattr(type(owner), "transposed_in_pytorch", ()):
        shape = shape[::-1]
    kernel = prod(shape[2:])
    return Fans(shape[1] * kernel, shape[0] * kernel)


def _drawn(param: Param, initializer: Initializer, fans: Fans) -> Param:
    """A lazy parameter of the same identity, in the type of the one before."""
    dtype, device = param.dtype, param.device
    fresh = initializer.param(param.shape, device, fans)
    return Param.lazy(
        lambda: fresh.value.detach().astype(dtype),
        param.shape,
        dtype,
        device,
        id=param.id,
        trainable=not param.frozen,
    )
