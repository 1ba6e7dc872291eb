# ruff: noqa: E501 - one row of the table stands on one line
"""Rows of recurrent layers with settings that PyTorch lacks: the formula, of NumPy and of PyTorch alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phlox import nn
from tests.layers.case import Case, normal, torch

Act = Callable[[Any, Any], Any]


def sigmoid(m: Any, a: Any) -> Any:
    """Shares."""
    return 1 / (1 + m.exp(-a))


def softsign(m: Any, a: Any) -> Any:
    """A slow way to 1."""
    return a / (1 + m.abs(a))


def tanh(m: Any, a: Any) -> Any:
    """The usual one."""
    return m.tanh(a)


def recurred(
    m: Any,
    w: dict[str, Any],
    x: Any,
    *,
    gate: Act = sigmoid,
    cell: Act = tanh,
    hidden: Act = tanh,
    before: bool = False,
    coupled: bool = False,
    reverse: bool = False,
    clip: float = np.inf,
) -> Any:
    """One layer, whose kind follows from how many gates there are; all it gives as one vector."""
    a = x @ w["layers.0.weight_input"] + w["layers.0.bias_input"]
    u, b = w["layers.0.weight_hidden"], w["layers.0.bias_hidden"]
    n, gates = u.shape[0], u.shape[1] // u.shape[0]
    h = c = 0 * (a[:, 0, :n])
    found: list[Any] = []
    for t in range(a.shape[1])[:: -1 if reverse else 1]:
        if gates == 1:
            h = m.clip(hidden(m, a[:, t] + h @ u + b), -clip, clip)
        elif gates == 3:
            both = gate(m, a[:, t, : 2 * n] + h @ u[:, : 2 * n] + b[: 2 * n])
            r, z, ux, bx = both[:, :n], both[:, n:], u[:, 2 * n :], b[2 * n :]
            seen = (r * h) @ ux + bx if before else r * (h @ ux + bx)
            new = hidden(m, a[:, t, 2 * n :] + seen)
            h = m.clip((1 - z) * new + z * h, -clip, clip)
        else:
            i, f, g, o = ((a[:, t] + h @ u + b)[:, k : k + n] for k in range(0, 4 * n, n))
            i, o = gate(m, i), gate(m, o)
            c = m.clip((1 - i if coupled else gate(m, f)) * c + i * cell(m, g), -clip, clip)
            h = o * hidden(m, c)
        found.append(h)
    y = m.stack(found[:: -1 if reverse else 1], 1)
    return m.concatenate([part.reshape(-1) for part in (y, h, c)[: 3 if gates == 4 else 2]])


def row(config: Any, **settings: Any) -> Case:
    """A row over words."""
    return Case(
        config,
        (WORDS,),
        lambda w, x: recurred(np, w, x, **settings),
        lambda f, w, x: recurred(torch(), w, x, **settings),
    )


WORDS = normal(2, 5, 4)
# fmt: off
CASES: dict[str, Case] = {
    "gru-clipped": row(nn.GruConfig(4, 3, clip=0.3), clip=0.3),
    "gru-other-activations": row(nn.GruConfig(4, 3, gate_activation="softsign", hidden_activation="softsign"), gate=softsign, hidden=softsign),
    "gru-reset-before": row(nn.GruConfig(4, 3, reset_after=False), before=True),
    "gru-reverse": row(nn.GruConfig(4, 3, reverse=True), reverse=True),
    "lstm-clipped": row(nn.LstmConfig(4, 3, clip=0.5, reverse=True), clip=0.5, reverse=True),
    "lstm-coupled": row(nn.LstmConfig(4, 3, input_forget=True), coupled=True),
    "lstm-other-activations": row(nn.LstmConfig(4, 3, gate_activation="softsign", cell_activation="sigmoid", hidden_activation="softsign"), gate=softsign, cell=sigmoid, hidden=softsign),
    "lstm-reverse": row(nn.LstmConfig(4, 3, reverse=True), reverse=True),
    "rnn-clipped": row(nn.RnnConfig(4, 3, clip=0.4), clip=0.4),
    "rnn-reverse": row(nn.RnnConfig(4, 3, reverse=True), reverse=True),
    "rnn-softsign": row(nn.RnnConfig(4, 3, activation="softsign"), hidden=softsign),
}
# fmt: on
