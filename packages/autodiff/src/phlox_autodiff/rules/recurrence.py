"""Derivatives of recurrent layers: a walk back over the steps, and one product for all weights."""

from __future__ import annotations

from typing import Final

from phlox_tensor import Int, Tensor
from phlox_tensor.ops.recurrence_backward import (
    gru_steps_backward,
    lstm_steps_backward,
    rnn_steps_backward,
    states_before,
)

from .._rule import Joint, Rule

Cotangents = tuple["Tensor | None", ...]


def _weights(hidden: Tensor, states: Tensor, pulls: Tensor, reverse: bool) -> Tensor:
    """The cotangent of the weights: the sum of the products of all steps."""
    before = states_before(hidden, states, reverse).to_full_precision()
    size, columns = before.shape[2], pulls.shape[2]
    wide = pulls.to_full_precision().reshape((-1, columns))
    return (before.reshape((-1, size)).mT @ wide).astype(pulls.dtype)


def _rnn_steps(
    g: Tensor,
    weight: Tensor,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    y: Tensor,
    activation: str,
    reverse: bool,
) -> Cotangents:
    pulls, first = rnn_steps_backward(y, weight, hidden, lengths, g, activation, reverse)
    return pulls, _weights(hidden, y, pulls, reverse), first, None


def _gru_steps(
    g: Tensor,
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    y: Tensor,
    reverse: bool,
) -> Cotangents:
    operands = (inputs, weight, bias, hidden, lengths, y, g)
    outer, pulls, first = gru_steps_backward(*operands, reverse)
    total = None if bias is None else pulls.sum(axis=(0, 1))
    return outer, _weights(hidden, y, pulls, reverse), total, first, None


def _lstm_steps(  # noqa: PLR0913, PLR0917 - operands and results of the op
    g_hiddens: Tensor | None,
    g_cells: Tensor | None,
    inputs: Tensor,
    weight: Tensor,
    hidden: Tensor,
    cell: Tensor,
    lengths: Tensor[Int] | None,
    hiddens: Tensor,
    cells: Tensor,
    reverse: bool,
) -> Cotangents:
    operands = (inputs, weight, hidden, cell, lengths, hiddens, cells, g_hiddens, g_cells)
    pulls, first, remembered = lstm_steps_backward(*operands, reverse)
    return pulls, _weights(hidden, hiddens, pulls, reverse), first, remembered, None


RULES: Final[dict[str, Rule]] = {
    "gru_steps": Joint(_gru_steps),
    "lstm_steps": Joint(_lstm_steps),
    "rnn_steps": Joint(_rnn_steps),
}
