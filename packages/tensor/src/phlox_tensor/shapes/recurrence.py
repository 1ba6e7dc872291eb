"""Shape rules of recurrent layers."""

from __future__ import annotations

from math import prod
from typing import Final

from .._errors.classes import ArgumentError, ShapeError
from .._op.declaration import Attributes, Op, Shape, Spec, Specs

# Gates of each recurrence: as many columns of weights for each number of the state.
_GRU, _LSTM, _RNN = 3, 4, 1
_ACTIVATIONS = ("relu", "tanh")
# By bytes of an element: the least normal number over the distance from 1 to the next. What is
# smaller has vanished: a step back passes 0 on. Narrow floats are computed in 4 bytes.
TRACES: Final = {2: 2.0**-103, 4: 2.0**-103, 8: 2.0**-970}


def _fits(op: Op, name: str, spec: Spec | None, expected: Shape) -> None:
    if spec is not None and spec.shape != expected:
        raise ShapeError(op.name, f"{name} does not fit", got=spec.shape, expected=expected)


def _checked(op: Op, specs: Specs, gates: int, columns: int) -> Shape:
    """(N, steps, H), where all operands fit a sequence of ``columns`` by its name."""
    names = [operand.name for operand in op.signature.operands]
    x, given = specs[0].shape, dict(zip(names, specs, strict=True))
    weight = given.get("weight_hidden", given.get("weight")).shape  # type: ignore[union-attr]
    if len(x) != 3 or not x[1]:
        expected = f"(N, steps, {'size' if columns else 'gates · H'}), 1 step or more"
        raise ShapeError(op.name, f"{names[0]} is no sequence", got=x, expected=expected)
    if len(weight) != 2 or weight[1] != gates * weight[0] or not weight[0]:
        expected = "(H, H)" if gates == 1 else f"(H, {gates}·H)"
        raise ShapeError(op.name, "weights of states do not fit", got=weight, expected=expected)
    n, size = x[0], weight[0]
    if columns:
        _fits(op, "weight_input", given["weight_input"], (x[2], gates * size))
    elif x[2] != gates * size:
        expected = f"(N, steps, {gates * size})"
        raise ShapeError(op.name, "inputs do not fit", got=x, expected=expected)
    for name in ("bias", "bias_input", "bias_hidden"):
        _fits(op, name, given.get(name), (gates * size,))
    for name in ("hidden", "cell"):
        _fits(op, name, given.get(name), (n, size))
    _fits(op, "lengths", given["lengths"], (n,))
    return (n, x[1], size)


def _activation(op: Op, attributes: Attributes) -> None:
    if attributes[0] not in _ACTIVATIONS:
        expected = ", ".join(map(repr, _ACTIVATIONS))
        raise ArgumentError(
            op.name, "unknown activation", got=repr(attributes[0]), expected=expected
        )


def lstm_steps(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H), of hidden states and of cells."""
    del attributes
    return [_checked(op, specs, _LSTM, 0)] * 2


def _checked_back(op: Op, specs: Specs, gates: int) -> Shape:
    """As ``_checked``, where results of the steps and their cotangents fit too."""
    shape = _checked(op, specs, gates, 0)
    names = [operand.name for operand in op.signature.operands]
    for name, spec in zip(names, specs, strict=True):
        if name.endswith(("cells", "hiddens")):
            _fits(op, name, spec, shape)
    return shape


def lstm_steps_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, 4·H), and two states."""
    del attributes
    n, _, size = _checked_back(op, specs, _LSTM)
    return [specs[0].shape, (n, size), (n, size)]


def gru_steps_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, 3·H) twice, and a state."""
    del attributes
    n, _, size = _checked_back(op, specs, _GRU)
    return [specs[0].shape, specs[0].shape, (n, size)]


def rnn_steps_backward(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H), and a state."""
    _activation(op, attributes)
    n, _, size = _checked_back(op, specs, _RNN)
    return [specs[0].shape, (n, size)]


def gru_steps(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H)."""
    del attributes
    return [_checked(op, specs, _GRU, 0)]


def rnn_steps(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H)."""
    _activation(op, attributes)
    return [_checked(op, specs, _RNN, 0)]


def lstm(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H), and two states."""
    del attributes
    n, steps, size = _checked(op, specs, _LSTM, 1)
    return [(n, steps, size), (n, size), (n, size)]


def gru(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H), and one state."""
    del attributes
    n, steps, size = _checked(op, specs, _GRU, 1)
    return [(n, steps, size), (n, size)]


def rnn(op: Op, specs: Specs, attributes: Attributes) -> list[Shape]:
    """(N, steps, H), and one state."""
    _activation(op, attributes)
    n, steps, size = _checked(op, specs, _RNN, 1)
    return [(n, steps, size), (n, size)]


def work(specs: Specs, attributes: Attributes) -> int:
    """The products of states with their weights."""
    del attributes
    return prod(specs[0].shape) * int(specs[1].shape[0])
