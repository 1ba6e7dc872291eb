"""RNN, GRU and LSTM with weights as layers of nn have them: what importing makes of such nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from phlox_tensor import Tensor

from ._row import Row, row
from .recurrent import both_ways, by_op

T = Tensor[Any]
_TRAINED: Final = "weight_input weight_hidden bias_input bias_hidden backwards"


def recurrent_layer(name: str) -> Callable[..., tuple[Any, ...]]:
    """The row of a layer by the op of a name; absent biases are None."""

    def run(
        X: T,
        sequence_lens: T | None,
        initial_h: T | None,
        initial_c: T | None,
        weight_input: T,
        weight_hidden: T,
        bias_input: T | None = None,
        bias_hidden: T | None = None,
        *backwards: T | None,
        activation: str = "tanh",
        direction: str = "forward",
        layout: int = 0,
    ) -> tuple[Any, ...]:
        ways: list[tuple[Any, ...]] = [(weight_input, weight_hidden, bias_input, bias_hidden)]
        ways += [(*backwards, None, None)[:4]] if backwards else []
        walks = [by_op(name, weights, sequence_lens, activation) for weights in ways]
        states = (initial_h, initial_c) if name == "lstm" else (initial_h,)
        return both_ways(X, states, walks, weight_hidden.shape[0], direction, layout)

    return run


OWN_ROWS: Final[dict[str, Row]] = {
    op: row(1, recurrent_layer(op.lower()), trained=_TRAINED) for op in ("GRU", "LSTM", "RNN")
}
