"""Layers one after the other."""

from __future__ import annotations

from typing import Any, ClassVar, overload

from phlox_tensor import ArgumentError, Float, IndexOutOfRangeError, Tensor

from ..settings.config import Config
from .module import Module


class Sequential(Module):
    """Layers one after the other.

    Example:
        >>> import phlox_nn as nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Activation("relu"), nn.Linear(8, 2))
        >>> len(model), model.num_params()
        (3, 58)
    """

    names_in_pytorch: ClassVar = {"layers": ""}

    def __init__(self, *layers: Module) -> None:
        """Take the layers in order.

        Raises:
            ArgumentError: for what cannot be called, such as a list of layers.
        """
        given: tuple[object, ...] = layers
        odd = [x for x in given if not callable(x) or isinstance(x, type | Config)]
        if odd:
            first, kind = odd[0], type(odd[0]).__name__
            raise ArgumentError(
                "Sequential",
                "not a layer",
                got=f"the class {first.__name__}" if isinstance(first, type) else kind,
                expected="layers, each an argument",
                hint=_made(first),
            )
        self.layers: tuple[Module, ...] = layers

    def forward(self, x: Any) -> Tensor[Float]:
        """Return what the last layer gives; type checkers take it for a tensor."""
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        """Return a layer, or those of a slice one after the other.

        Raises:
            IndexOutOfRangeError: when there are not as many.
        """
        count = len(self.layers)
        if isinstance(index, int) and not -count <= index < count:
            what, hint = "no such layer", "nn.Sequential(*model.layers, layer) has one more"
            raise IndexOutOfRangeError(
                "Sequential", what, got=index, expected=f"{-count} to {count - 1}", hint=hint
            )
        found = self.layers[index]
        return Sequential(*found) if isinstance(found, tuple) else found


def _made(given: object) -> str:
    """What to type for what is no layer yet."""
    if isinstance(given, type):
        return f"{given.__name__}(...), a layer made of it"
    if isinstance(given, dict):
        return "nn.Sequential(*layers.values()), or a module with a field for each name"
    return "config.init()" if isinstance(given, Config) else "nn.Sequential(*layers)"
