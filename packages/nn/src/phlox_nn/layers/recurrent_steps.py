"""Recurrences whose settings no op has: a loop over the steps, gates in the order of the ops."""

from __future__ import annotations

from typing import Any

from phlox_tensor import Float, Int, Tensor
from phlox_tensor.ops.recurrence import counted, last, projected, walk, within_steps

from .activation import FUNCTIONS

Hidden = tuple[Tensor[Float], ...]
Found = tuple[Tensor[Float], Hidden]


def rnn(
    settings: Any,
    part: Any,
    x: Tensor[Float],
    start: Hidden,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> Found:
    """A plain recurrence of any activation."""
    lengths = within_steps("rnn", x, lengths)
    weight_input, weight_hidden = part.weights()
    act, wide = FUNCTIONS[settings.activation], weight_hidden.to_full_precision()

    def step(parts: Tensor[Float], state: Hidden) -> Hidden:
        return (_held(act(parts + state[0] @ wide), settings.clip),)

    found = walk(step, projected(x, weight_input, part.bias()), start, lengths, reverse)
    return _ended(found, lengths, reverse)


def gru(
    settings: Any,
    part: Any,
    x: Tensor[Float],
    start: Hidden,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> Found:
    """A GRU, reset before its product with the weights or after."""
    lengths = within_steps("gru", x, lengths)
    (weight_input, weight_hidden), (bias_input, bias_hidden) = part.weights(), part.biases()
    gate, new = FUNCTIONS[settings.gate_activation], FUNCTIONS[settings.hidden_activation]
    size, wide = start[0].shape[1], weight_hidden.to_full_precision()
    shift = None if bias_hidden is None else bias_hidden.to_full_precision()

    def kept(state: Tensor[Float], columns: slice) -> Tensor[Float]:
        found = state @ wide[:, columns]
        return found if shift is None else found + shift[columns]

    def step(parts: Tensor[Float], state: Hidden) -> Hidden:
        (old,) = state
        gates, rest = slice(2 * size), slice(2 * size, None)
        both = gate(parts[:, gates] + kept(old, gates))
        reset, update = both[:, :size], both[:, size:]
        after = settings.reset_after
        seen = reset * kept(old, rest) if after else kept(reset * old, rest)
        fresh = new(parts[:, rest] + seen)
        return (_held(fresh + update * (old - fresh), settings.clip),)

    found = walk(step, projected(x, weight_input, bias_input), start, lengths, reverse)
    return _ended(found, lengths, reverse)


def lstm(
    settings: Any,
    part: Any,
    x: Tensor[Float],
    start: Hidden,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> Found:
    """An LSTM of any activations, whose gates may be coupled."""
    lengths = within_steps("lstm", x, lengths)
    weight_input, weight_hidden = part.weights()
    gate, taken = FUNCTIONS[settings.gate_activation], FUNCTIONS[settings.cell_activation]
    shown, size = FUNCTIONS[settings.hidden_activation], start[0].shape[1]
    wide = weight_hidden.to_full_precision()

    def step(parts: Tensor[Float], state: Hidden) -> Hidden:
        total = parts + state[0] @ wide
        both, out = gate(total[:, : 2 * size]), gate(total[:, 3 * size :])
        enters = both[:, :size]
        stays = 1.0 - enters if settings.input_forget else both[:, size:]
        cell = stays * state[1] + enters * taken(total[:, 2 * size : 3 * size])
        cell = _held(cell, settings.clip)
        return out * shown(cell), cell

    found = walk(step, projected(x, weight_input, part.bias()), start, lengths, reverse)
    return _ended(found, lengths, reverse)


def _held(state: Tensor[Float], bound: float | None) -> Tensor[Float]:
    return state if bound is None else state.clip(-bound, bound)


def _ended(found: Hidden, lengths: Tensor[Int] | None, reverse: bool) -> Found:
    """The states behind each step, 0 where none counts, and those behind the last."""
    return counted(found[0], lengths), tuple(last(each, reverse) for each in found)
