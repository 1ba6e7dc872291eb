"""A running mean of weights, which validates better than the weights of a moment."""

from __future__ import annotations

from typing import Any, TypeVar, final

from phlox_nn import Module, Param
from phlox_record import Record
from phlox_tensor import ArgumentError, RecordError, Tensor
from phlox_tensor.capture import Cell, wrap

M = TypeVar("M", bound=Module)


@final
class Ema:
    """An exponential moving average of a model's weights. Polyak and Juditsky, 1992.

    It starts as the weights of the first update. Statistics of layers are not averaged: they are
    means already.

    ``update`` and ``load_record`` change the average itself.

    Example:
        >>> model, ema = nn.Linear(1, 1, bias=False), Ema(0.5)
        >>> for value in (0.0, 1.0, 1.0):
        ...     weight = model.weight.with_value(px.asarray([[value]]))
        ...     ema.update(model.with_params({weight.id: weight}))
        >>> ema.applied(model).weight.value.tolist()
        [[0.75]]
    """

    def __init__(self, decay: float = 0.999) -> None:
        """Start without weights.

        Raises:
            ArgumentError: for a decay that is not from 0 to below 1.
        """
        if not 0.0 <= decay < 1.0:
            raise ArgumentError("Ema", "decay", got=decay, expected="0 <= decay < 1")
        self._decay = float(decay)
        self._means: Cell[dict[str, Tensor[Any]]] = Cell({})

    @property
    def decay(self) -> float:
        """The share of the average that a step keeps."""
        return self._decay

    def update(self, model: Module) -> None:
        """Take the weights of a model into the average."""
        means = self._means.get()
        new = {}
        for param in _averaged(model):
            value, mean = _plain(param), means.get(param.id)
            new[param.id] = value if mean is None else mean + (value - mean) * (1.0 - self._decay)
        self._means.set(new)

    def applied(self, model: M) -> M:
        """Return the model with the averaged weights; before the first update it is as given."""
        means = self._means.get()
        found = [param for param in _averaged(model) if param.id in means]
        return model.with_params(
            {p.id: p.with_value(means[p.id].to_device(p.device)) for p in found}
        )

    def into_record(self) -> dict[str, Record]:
        """Return the averages as a tree."""
        return dict(self._means.get())

    def load_record(self, record: Record) -> Ema:
        """Take over the averages of a record, and return the average itself.

        Raises:
            RecordError: when the record is not one of an average.
        """
        known = record if isinstance(record, dict) else {"": record}
        if not all(isinstance(value, Tensor) for value in known.values()):
            got, expected = repr(record)[:60], "what ema.into_record() gave"
            raise RecordError("load_record", "not a record of Ema", got=got, expected=expected)
        self._means.set({str(k): v for k, v in known.items() if isinstance(v, Tensor)})
        return self

    def __repr__(self) -> str:
        return f"Ema({self._decay})"


def _averaged(model: Module) -> list[Param]:
    return [p for p in dict.fromkeys(model.param_list()) if p.trainable]


def _plain(param: Param) -> Tensor[Any]:
    """A value without history, on the device inside of one that records."""
    value, device = param.value.detach(), param.device
    inner = device.inner if device.records else None
    return value if inner is None else wrap(device.lower(value.primitive), inner)
