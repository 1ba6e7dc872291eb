"""Recurrent layers by their formulas, one sequence and one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._precision import wide64
from .indexing import within

Array = np.ndarray[Any, Any]
Step = Callable[[Array, Array], Array]


def _sigmoid(x: Array) -> Array:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def _walk(step: Step, inputs: Array, start: Array, lengths: Any, reverse: bool) -> Array:
    """The states (N, steps, parts, H) from those at the start (N, parts, H)."""
    n, steps = inputs.shape[:2]
    out = np.zeros((n, steps, *start.shape[1:]))
    for i in range(n):
        state, count = start[i], steps if lengths is None else int(lengths[i])
        for t in reversed(range(steps)) if reverse else range(steps):
            state = step(inputs[i, t], state) if t < count else state
            out[i, t] = state
    return out


def _start(*states: Array) -> Array:
    return np.stack([wide64(state) for state in states], axis=1)


def lstm_steps(
    inputs: Array, weight: Array, hidden: Array, cell: Array, lengths: Any, reverse: bool
) -> tuple[Array, Array]:
    wide = wide64(weight)

    def step(given: Array, state: Array) -> Array:
        i, f, g, o = np.split(given + state[0] @ wide, 4)
        new = _sigmoid(f) * state[1] + _sigmoid(i) * np.tanh(g)
        return np.stack([_sigmoid(o) * np.tanh(new), new])

    found = _walk(step, wide64(inputs), _start(hidden, cell), lengths, reverse)
    return found[:, :, 0].astype(inputs.dtype), found[:, :, 1].astype(inputs.dtype)


def lstm_steps_backward(  # noqa: PLR0913, PLR0917 - operands and results of the op
    inputs: Array, weight: Array, hidden: Array, cell: Array, lengths: Any, hiddens: Array,
    cells: Array, g_hiddens: Array | None, g_cells: Array | None, reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    n, steps, size = hiddens.shape
    wide, given = wide64(weight), wide64(inputs)
    out, first = np.zeros(inputs.shape), np.zeros((2, n, size))
    for b in range(n):
        count = steps if lengths is None else int(lengths[b])
        state, memory = np.zeros(size), np.zeros(size)
        for t in range(steps) if reverse else reversed(range(steps)):
            before = t + 1 if reverse else t - 1
            inside = 0 <= before < steps
            h = wide64(hiddens[b, before] if inside else hidden[b])
            c = wide64(cells[b, before] if inside else cell[b])
            state = state + (0.0 if g_hiddens is None else wide64(g_hiddens[b, t]))
            memory = memory + (0.0 if g_cells is None else wide64(g_cells[b, t]))
            if t >= count:
                continue
            i, f, g, o = np.split(given[b, t] + h @ wide, 4)
            i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
            seen = np.tanh(wide64(cells[b, t]))
            memory = memory + state * o * (1 - seen**2)
            parts = (memory * g * i * (1 - i), memory * c * f * (1 - f), memory * i * (1 - g**2))
            out[b, t] = np.concatenate([*parts, state * seen * o * (1 - o)])
            state, memory = wide @ out[b, t], memory * f
        first[:, b] = state, memory
    hidden_cell = first.astype(inputs.dtype)
    return out.astype(inputs.dtype), hidden_cell[0], hidden_cell[1]


def gru_steps(
    inputs: Array, weight: Array, bias: Array | None, hidden: Array, lengths: Any, reverse: bool
) -> Array:
    wide, shift = wide64(weight), 0.0 if bias is None else wide64(bias)

    def step(given: Array, state: Array) -> Array:
        a, b = np.split(given, 3), np.split(state[0] @ wide + shift, 3)
        r, z = _sigmoid(a[0] + b[0]), _sigmoid(a[1] + b[1])
        n = np.tanh(a[2] + r * b[2])
        return ((1 - z) * n + z * state[0])[None]

    found = _walk(step, wide64(inputs), _start(hidden), lengths, reverse)
    return found[:, :, 0].astype(inputs.dtype)


def rnn_steps(
    inputs: Array, weight: Array, hidden: Array, lengths: Any, activation: str, reverse: bool
) -> Array:
    wide = wide64(weight)

    def step(given: Array, state: Array) -> Array:
        total = given + state @ wide
        return np.tanh(total) if activation == "tanh" else np.maximum(total, 0)

    found = _walk(step, wide64(inputs), _start(hidden), lengths, reverse)
    return found[:, :, 0].astype(inputs.dtype)


def _projected(x: Array, weight: Array, bias: Array | None) -> Array:
    return wide64(x) @ wide64(weight) + (0.0 if bias is None else wide64(bias))


def _zeros(x: Array, weight: Array, state: Array | None) -> Array:
    return np.zeros((x.shape[0], weight.shape[0])) if state is None else state


def _ends(states: Array, lengths: Any, reverse: bool, dtype: Any) -> tuple[Array, Array]:
    """The states of steps that count, and the last one."""
    steps = np.arange(states.shape[1])
    real = True if lengths is None else (steps < np.asarray(lengths)[:, None])[..., None]
    last = states[:, 0] if reverse else states[:, -1]
    return np.where(real, states, 0.0).astype(dtype), last.astype(dtype)


def _within(op: str, x: Array, lengths: Any) -> None:
    if lengths is not None:
        within(op, lengths, x.shape[1] + 1, "lengths")


def lstm(
    x: Array, weight_input: Array, weight_hidden: Array, bias: Any, hidden: Any, cell: Any,
    lengths: Any, reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    _within("lstm", x, lengths)
    first, memory = (_zeros(x, weight_hidden, state) for state in (hidden, cell))
    inputs = _projected(x, weight_input, bias)
    hiddens, cells = lstm_steps(inputs, weight_hidden, first, memory, lengths, reverse)
    return (*_ends(hiddens, lengths, reverse, x.dtype), _ends(cells, lengths, reverse, x.dtype)[1])


def gru(
    x: Array, weight_input: Array, weight_hidden: Array, bias_input: Any, bias_hidden: Any,
    hidden: Any, lengths: Any, reverse: bool,
) -> tuple[Array, Array]:  # fmt: skip
    _within("gru", x, lengths)
    start, inputs = _zeros(x, weight_hidden, hidden), _projected(x, weight_input, bias_input)
    hiddens = gru_steps(inputs, weight_hidden, bias_hidden, start, lengths, reverse)
    return _ends(hiddens, lengths, reverse, x.dtype)


def rnn(
    x: Array, weight_input: Array, weight_hidden: Array, bias: Any, hidden: Any, lengths: Any,
    activation: str, reverse: bool,
) -> tuple[Array, Array]:  # fmt: skip
    _within("rnn", x, lengths)
    start, inputs = _zeros(x, weight_hidden, hidden), _projected(x, weight_input, bias)
    hiddens = rnn_steps(inputs, weight_hidden, start, lengths, activation, reverse)
    return _ends(hiddens, lengths, reverse, x.dtype)
