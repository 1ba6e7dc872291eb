"""A running mean of weights, which validates better than the weights of a moment."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from phlox_nn import Module, moving_average
from phlox_record import Record
from phlox_tensor import ArgumentError
from phlox_tensor.capture import Cell

M = TypeVar("M", bound=Module)


@final
class Ema(Generic[M]):
    """An exponential moving average of a model, which starts as the model itself.

    State of layers is not averaged: running statistics are means already. ``nn.moving_average`` is
    one step of it.

    ``update`` and ``load_record`` change the average itself.

    Example:
        >>> model = nn.Linear(1, 1, bias=False, initializer=nn.initializers.Zeros())
        >>> ema = Ema(model, 0.5)
        >>> weight = model.weight.with_value(px.asarray([[1.0]]))
        >>> for _ in range(2):
        ...     ema.update(model.with_params({weight.id: weight}))
        >>> ema.model.weight.value.tolist()
        [[0.75]]
    """

    def __init__(self, model: M, decay: float = 0.999) -> None:
        """Start as a model.

        Raises:
            ArgumentError: for a decay that is not from 0 to below 1.
        """
        if not 0.0 <= decay < 1.0:
            raise ArgumentError("Ema", "decay", got=decay, expected="0 <= decay < 1")
        self._decay = decay
        self._average = Cell(model.valid())

    @property
    def model(self) -> M:
        """The average, for inference."""
        return self._average.get()

    def update(self, model: M) -> None:
        """Take the weights of a model into the average."""
        self._average.set(moving_average(self._average.get(), model, self._decay))

    def into_record(self) -> Record:
        """Return the average as a tree."""
        record: Record = self.model.into_record()
        return record

    def load_record(self, record: Record) -> Ema[M]:
        """Take over the average of a record, and return the object itself.

        Raises:
            RecordError: when the record is of another model.
        """
        self._average.set(self.model.load_record(record))
        return self

    def __repr__(self) -> str:
        return f"Ema({type(self.model).__name__}, {self._decay})"
