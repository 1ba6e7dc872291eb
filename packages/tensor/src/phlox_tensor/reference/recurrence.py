"""Recurrent layers by their formulas, one sequence and one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..shapes.recurrence import TRACES
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


def _before(start: Array, states: Array, reverse: bool) -> Array:
    """The state in front of each step."""
    first, rest = wide64(start)[:, None], wide64(states)
    parts = [rest[:, 1:], first] if reverse else [first, rest[:, :-1]]
    return np.concatenate(parts, axis=1)


def _walk_back(
    step: Callable[[int, int, Array], tuple[Array, Array]],
    wanted: list[Array],
    lengths: Any,
    reverse: bool,
    columns: int,
) -> tuple[Array, Array]:
    """What each step gives (N, steps, columns), and cotangents of the first states (parts, N, H).

    ``wanted`` are those of the states behind each step. ``step`` maps a sequence, its step and the
    cotangents of the states after it to what it gives and to those of the states before it.
    """
    n, steps, size = wanted[0].shape
    trace = TRACES[wanted[0].dtype.itemsize]
    out, first = np.zeros((n, steps, columns)), np.zeros((len(wanted), n, size))
    for i in range(n):
        state, count = first[:, i], steps if lengths is None else int(lengths[i])
        for t in range(steps) if reverse else reversed(range(steps)):
            state = state + np.stack([wide64(each[i, t]) for each in wanted])
            if t < count:
                out[i, t], state = step(i, t, state)
            state = np.where(np.abs(state) < trace, 0.0, state)
        first[:, i] = state
    return out, first


def lstm_steps_backward(  # noqa: PLR0913, PLR0917 - operands and results of the op
    inputs: Array, weight: Array, hidden: Array, cell: Array, lengths: Any, hiddens: Array,
    cells: Array, g_hiddens: Array | None, g_cells: Array | None, reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    wide, given, seen = wide64(weight), wide64(inputs), np.tanh(wide64(cells))
    before, old = _before(hidden, hiddens, reverse), _before(cell, cells, reverse)

    def step(b: int, t: int, states: Array) -> tuple[Array, Array]:
        i, f, g, o = np.split(given[b, t] + before[b, t] @ wide, 4)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        state, c = states[0], seen[b, t]
        memory = states[1] + state * o * (1 - c**2)
        parts = [
            memory * g * i * (1 - i),
            memory * old[b, t] * f * (1 - f),
            memory * i * (1 - g**2),
        ]
        pull = np.concatenate([*parts, state * c * o * (1 - o)])
        return pull, np.stack([wide @ pull, memory * f])

    wanted = [np.zeros_like(hiddens) if g is None else g for g in (g_hiddens, g_cells)]
    pulls, first = _walk_back(step, wanted, lengths, reverse, inputs.shape[2])
    dtype = inputs.dtype
    return pulls.astype(dtype), first[0].astype(dtype), first[1].astype(dtype)


def gru_steps_backward(
    inputs: Array, weight: Array, bias: Array | None, hidden: Array, lengths: Any, hiddens: Array,
    g_hiddens: Array, reverse: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    wide, given, before = wide64(weight), wide64(inputs), _before(hidden, hiddens, reverse)
    kept = before @ wide + (0.0 if bias is None else wide64(bias))

    def step(i: int, t: int, states: Array) -> tuple[Array, Array]:
        a, b, state = np.split(given[i, t], 3), np.split(kept[i, t], 3), states[0]
        r, z = _sigmoid(a[0] + b[0]), _sigmoid(a[1] + b[1])
        n = np.tanh(a[2] + r * b[2])
        by_new = state * (1 - z) * (1 - n**2)
        gates = [by_new * b[2] * r * (1 - r), state * (before[i, t] - n) * z * (1 - z)]
        pull = np.concatenate([*gates, by_new * r])
        return np.concatenate([*gates, by_new, pull]), (wide @ pull + state * z)[None]

    columns = inputs.shape[2]
    pulls, first = _walk_back(step, [g_hiddens], lengths, reverse, 2 * columns)
    outer, products = pulls[..., :columns], pulls[..., columns:]
    dtype = inputs.dtype
    return outer.astype(dtype), products.astype(dtype), first[0].astype(dtype)


def rnn_steps_backward(
    hiddens: Array, weight: Array, hidden: Array, lengths: Any, g_hiddens: Array,
    activation: str, reverse: bool,
) -> tuple[Array, Array]:  # fmt: skip
    del hidden
    wide, states = wide64(weight), wide64(hiddens)
    slope = 1 - states**2 if activation == "tanh" else (states > 0).astype(states.dtype)

    def step(i: int, t: int, states: Array) -> tuple[Array, Array]:
        pull = states[0] * slope[i, t]
        return pull, (wide @ pull)[None]

    pulls, first = _walk_back(step, [g_hiddens], lengths, reverse, hiddens.shape[2])
    return pulls.astype(hiddens.dtype), first[0].astype(hiddens.dtype)


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
