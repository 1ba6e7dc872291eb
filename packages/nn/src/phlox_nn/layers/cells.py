"""Recurrent cells: one step of RNN, GRU and LSTM, for loops of one's own."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from math import prod
from typing import Any, ClassVar, Literal

from phlox_tensor import Backend, Float, ShapeError, Tensor, full

from .. import _signatures as takes
from ..module.layer import C, L, Layer, LayerConfig
from .inputs import check_dtype
from .recurrent import LstmState, Recurrence, Walk, check_states, gru, lstm, recurrence, rnn
from .recurrent_steps import Hidden

_NAMES = {
    f"recurrence.{kind}_{ours}": f"{kind}_{theirs}"
    for kind in ("weight", "bias")
    for ours, theirs in (("input", "ih"), ("hidden", "hh"))
}


def _operands(
    layer: Any, x: Tensor[Float], states: Hidden | None, count: int
) -> tuple[Tensor[Float], Hidden]:
    """A sequence (N, 1, d_input) and the states (N, d_hidden) before it, of (…, size)."""
    s = layer.settings
    check_dtype(layer, x, layer.recurrence.weight_input)
    name = type(layer).__name__
    if not x.ndim or x.shape[-1] != s.d_input:
        expected = f"(…, {s.d_input})"
        raise ShapeError(name, "the input does not fit", got=x.shape, expected=expected)
    shape = (*x.shape[:-1], s.d_hidden)
    if states is None:
        states = (full(shape, 0.0, dtype=x.dtype, device=x.device),) * count
    check_states(name, states, count, shape)
    n = prod(x.shape[:-1])
    flat = tuple(state.reshape(n, s.d_hidden) for state in states)
    return x.reshape(n, 1, s.d_input), flat


class _CellSettings(LayerConfig[L]):
    """What the configs of the three cells have in common.

    Attributes:
        d_input: size of the last axis of the input.
        d_hidden: size of the state.
        bias: whether there are two biases.
    """

    _gates: ClassVar[int]

    d_input: int
    d_hidden: int
    bias: bool = True

    def validate(self) -> None:
        """Raise ConfigError for a state without numbers."""
        self.require("d_hidden", self.d_hidden > 0, "at least 1")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weights."""
        return {"recurrence": recurrence(self.d_input, self, device)}


class _Cell(Layer[C]):
    names_in_pytorch = _NAMES

    recurrence: Recurrence


class _OneStateCell(_Cell[C]):
    def forward(self, x: Tensor[Float], state: Tensor[Float] | None = None) -> Tensor[Float]:
        """Map (…, d_input) and a state (…, d_hidden), or zeros, to the next state.

        Raises:
            ShapeError: when something does not fit.
        """
        y, start = _operands(self, x, None if state is None else (state,), 1)
        _, (end,) = self._walk()(self.recurrence, y, start, None, False)
        return end.reshape(*x.shape[:-1], start[0].shape[-1])

    @abstractmethod
    def _walk(self) -> Walk: ...


class RnnCellConfig(_CellSettings["RnnCell"]):
    """Settings of ``RnnCell``.

    Attributes:
        activation: what makes the state.
    """

    activation: Literal["tanh", "relu"] = "tanh"

    _gates = 1


class RnnCell(takes.RnnCell, _OneStateCell[RnnCellConfig], init=False):
    """One step of ``Rnn``; a whole sequence is one call of that."""

    def _walk(self) -> Walk:
        return partial(rnn, self.settings.activation)


class GruCellConfig(_CellSettings["GruCell"]):
    """Settings of ``GruCell``."""

    _gates = 3


class GruCell(takes.GruCell, _OneStateCell[GruCellConfig], init=False):
    """One step of ``Gru``; a whole sequence is one call of that."""

    def _walk(self) -> Walk:
        return gru


class LstmCellConfig(_CellSettings["LstmCell"]):
    """Settings of ``LstmCell``."""

    _gates = 4


class LstmCell(takes.LstmCell, _Cell[LstmCellConfig], init=False):
    """One step of ``Lstm``; a whole sequence is one call of that."""

    def forward(self, x: Tensor[Float], state: LstmState | None = None) -> LstmState:
        """Map (…, d_input) and a state of two (…, d_hidden), or zeros, to the next state.

        Raises:
            ShapeError: when something does not fit.
        """
        y, start = _operands(self, x, state, 2)
        _, ends = lstm(self.recurrence, y, start, None, False)
        return LstmState(*(end.reshape(*x.shape[:-1], self.settings.d_hidden) for end in ends))
