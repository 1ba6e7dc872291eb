"""Layers of a decoder that map the next token by compiled functions, which all of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from phlox_tensor import Float, Tensor

from ..layers.attention import KeyValues
from ..models._causal import CausalModel
from ..models._experts import LlamaExperts
from ..models._llama import Llama, LlamaLayer
from ..models._views import AnyView
from ..module.module import Module
from ..param.param import Param

M = TypeVar("M", bound=CausalModel)

_FEW: Final = 16  # tokens that take about as long as two recordings of a layer


class Later:
    """A function that is compiled when it was called often, since recording takes a while."""

    def __init__(self, function: Any, compiled: Callable[[Any], Any], calls: int) -> None:
        """Call the function itself so many times."""
        self._now, self._compiled, self._left = function, compiled, calls

    def __call__(self, *args: Any) -> Any:
        """Return what the function gives."""
        if self._left >= 0:
            self._left -= 1
            if self._left < 0:
                self._now = self._compiled(self._now)
        return self._now(*args)


class CompiledLayer(Module):
    """A layer whose maps of the next token of each text are functions given from outside."""

    layer: LlamaLayer
    asks: Any
    gives: Any

    def forward(self, x: Tensor[Float], cache: Any, view: AnyView) -> tuple[Tensor[Float], Any]:
        """Do as the layer does."""
        if x.shape[1] > 1:
            return self.layer(x, cache, view)
        query, key, value = self.asks(self.layer, x, view.cosines, view.sines)
        found, seen = self.layer.finds(query, KeyValues(key, value), cache, view)
        return self.gives(self.layer, x, found), seen


def with_compiled_layers(model: M, compiled: Callable[[Any], Any]) -> M:
    """Return the model for inference, whose layers are compiled after some tokens.

    Attention stays outside, so that no shape changes with the length. Parameters of each layer
    have the same ids, so that one recording serves all layers. Those with experts read which ones
    are taken, and models other than ``Llama`` have no such layers: both stay as they are.

    Args:
        model: which; nothing of it is changed.
        compiled: such as ``px.compile``.
    """
    if not isinstance(model, Llama):
        return model
    body = model.model
    calls = _FEW * len(body.layers)
    asks, gives = (Later(f, compiled, calls) for f in (LlamaLayer.asks, LlamaLayer.gives))
    layers = tuple(
        each
        if isinstance(each.mlp, LlamaExperts)
        else CompiledLayer(each.map(_by_place), asks, gives)
        for each in body.layers
    )
    return model.replace(model=body.replace(layers=layers))


def _by_place(path: str, param: Param) -> Param:
    return Param(param.value, id=path, trainable=False)
