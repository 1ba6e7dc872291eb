"""RNN, GRU and LSTM with weights as layers of nn have them: what importing makes of such nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import phlox_tensor as px
from phlox_tensor import Tensor

from ._row import Row, since
from .recurrent import bias_sum

T = Tensor[Any]
# One direction: x (batch, time, size), what it multiplies with and adds, state, whether backwards.
OneWay = Callable[[T, tuple[Any, ...], list[T], bool], tuple[Any, ...]]
_TRAINED: Final = "weight_input weight_hidden bias_input bias_hidden"


def _both_ways(
    X: T,
    states: list[T | None],
    directions: list[tuple[Any, ...]],
    walk: OneWay,
    direction: str,
    layout: int,
) -> tuple[Any, ...]:
    """All outputs and the last states, of both directions where there are weights for them."""
    x = X if layout else X.permute_dims((1, 0, 2))
    size = directions[0][1].shape[0]
    zeros = px.full((x.shape[0], size), 0.0, dtype=X.dtype, device=X.device)
    outputs, last = [], []
    for d, weights in enumerate(directions):
        start = [zeros if v is None else (v[:, d] if layout else v[d]) for v in states]
        y, *end = walk(x, weights, start, direction == "reverse" or d == 1)
        outputs.append(y)
        last.append(end)
    y = px.stack(outputs, axis=2)
    y = y if layout else y.permute_dims((1, 2, 0, 3))
    ends = [px.stack([e[i] for e in last], axis=1 if layout else 0) for i in range(len(states))]
    return y, *ends


def rnn_layer(
    X: T,
    sequence_lens: T | None,
    initial_h: T | None,
    initial_c: T | None,
    weight_input: T,
    weight_hidden: T,
    bias_input: T | None = None,
    bias_hidden: T | None = None,
    *backwards: T | None,
    activation: Literal["tanh", "relu"] = "tanh",
    direction: str = "forward",
    layout: int = 0,
) -> tuple[Any, ...]:
    def walk(x: T, weights: tuple[Any, ...], start: list[T], back: bool) -> tuple[Any, ...]:
        w, r, *biases = weights
        return tuple(
            px.ops.rnn(
                x, w, r, bias_sum((biases[0], biases[1])), *start, sequence_lens, activation, back
            )
        )

    own = (weight_input, weight_hidden, bias_input, bias_hidden)
    return _both_ways(X, [initial_h], _ways(own, backwards), walk, direction, layout)


def gru_layer(
    X: T,
    sequence_lens: T | None,
    initial_h: T | None,
    initial_c: T | None,
    weight_input: T,
    weight_hidden: T,
    bias_input: T | None = None,
    bias_hidden: T | None = None,
    *backwards: T | None,
    direction: str = "forward",
    layout: int = 0,
) -> tuple[Any, ...]:
    def walk(x: T, weights: tuple[Any, ...], start: list[T], back: bool) -> tuple[Any, ...]:
        return tuple(px.ops.gru(x, *weights, *start, sequence_lens, back))

    own = (weight_input, weight_hidden, bias_input, bias_hidden)
    return _both_ways(X, [initial_h], _ways(own, backwards), walk, direction, layout)


def lstm_layer(
    X: T,
    sequence_lens: T | None,
    initial_h: T | None,
    initial_c: T | None,
    weight_input: T,
    weight_hidden: T,
    bias_input: T | None = None,
    bias_hidden: T | None = None,
    *backwards: T | None,
    direction: str = "forward",
    layout: int = 0,
) -> tuple[Any, ...]:
    def walk(x: T, weights: tuple[Any, ...], start: list[T], back: bool) -> tuple[Any, ...]:
        w, r, *biases = weights
        return tuple(
            px.ops.lstm(x, w, r, bias_sum((biases[0], biases[1])), *start, sequence_lens, back)
        )

    own = (weight_input, weight_hidden, bias_input, bias_hidden)
    return _both_ways(X, [initial_h, initial_c], _ways(own, backwards), walk, direction, layout)


def _ways(own: tuple[Any, ...], backwards: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The weights of one direction, or of both; absent biases are None."""
    return [own, (*backwards, None, None)[:4]] if backwards else [own]


OWN_ROWS: Final[dict[str, Row]] = {
    "GRU": since(1, gru_layer, trained=f"{_TRAINED} backwards"),
    "LSTM": since(1, lstm_layer, trained=f"{_TRAINED} backwards"),
    "RNN": since(1, rnn_layer, trained=f"{_TRAINED} backwards"),
}
