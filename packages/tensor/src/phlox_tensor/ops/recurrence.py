"""Recurrent layers in one direction, each as one op: a walk over the steps of a sequence.

The products with the inputs are one product for all steps; what is left are the internal ops
``lstm_steps``, ``gru_steps`` and ``rnn_steps``, whose results are the states after each step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from .._errors.classes import IndexOutOfRangeError, ShapeError
from .._op.records import Given, IndexSample, case, refusal
from .._values.kinds import Bool, Int
from .._values.tensor import Tensor
from ..reference import recurrence as ref
from ..shapes import recurrence as shapes
from . import binary, movement
from . import contraction as products
from ._counts import held, widened
from ._families import contraction

State = tuple[Tensor, ...]
_LENGTHS = IndexSample((3,), -4)
_recurrence: Final = partial(contraction.formula, ulp=64, atol=64)


def real_steps(lengths: Tensor[Int], steps: int) -> Tensor[Bool]:
    """(N, steps): True for the steps that count."""
    device, lengths = lengths.device, widened(lengths, steps)
    places = Tensor[Any](device.ops.arange(0, 1, steps, lengths.dtype), device)
    return binary.less(places, lengths.reshape((lengths.shape[0], 1)))


def walk(
    step: Callable[[Tensor, State], State],
    inputs: Tensor,
    state: State,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """The states after each step; a step that does not count changes none."""
    given = movement.unstack(inputs.to_full_precision(), axis=1)
    state = tuple(each.to_full_precision() for each in state)
    real = None if lengths is None else real_steps(lengths, len(given))
    found: list[State] = []
    for t in reversed(range(len(given))) if reverse else range(len(given)):
        new = step(given[t], state)
        if real is not None:
            counts = real[:, t : t + 1]
            new = tuple(counts.where(n, old) for n, old in zip(new, state, strict=True))
        found.append(new)
        state = new
    if reverse:
        found.reverse()
    n, size = state[0].shape
    # One copy: ``stack`` would look at each of the many small tensors once more.
    joined = (movement.concat(list(parts), axis=1) for parts in zip(*found, strict=True))
    shape = (n, len(given), size)
    return tuple(each.reshape(shape).astype(inputs.dtype) for each in joined)


@_recurrence(
    "inputs: Float, weight: Float, hidden: Float, cell: Float, lengths: Int?; "
    "reverse: bool = False -> hiddens: Float, cells: Float",
    numpy=ref.lstm_steps,
    shape=shapes.lstm_steps,
    work=shapes.work,
    cases=(
        case((2, 2, 8), (2, 8), (2, 2), (2, 2), None),
        case((3, 3, 4), (1, 4), (3, 1), (3, 1), _LENGTHS),
        case((3, 3, 4), (1, 4), (3, 1), (3, 1), _LENGTHS, reverse=True),
        case((0, 2, 4), (1, 4), (0, 1), (0, 1), None),
    ),
    internal=True,
    doc="States (N, steps, H) after each step of an LSTM, from the parts of its gates that inputs "
    "give (N, steps, 4·H), in the order input, forget, cell, output.",
)
def lstm_steps(
    inputs: Tensor,
    weight: Tensor,
    hidden: Tensor,
    cell: Tensor,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    size, wide = hidden.shape[1], weight.to_full_precision()

    def step(given: Tensor, state: State) -> State:
        total = given + state[0] @ wide
        gates = total[:, : 2 * size].sigmoid()
        taken = gates[:, :size] * total[:, 2 * size : 3 * size].tanh()
        new = gates[:, size:] * state[1] + taken
        return total[:, 3 * size :].sigmoid() * new.tanh(), new

    hiddens, cells = walk(step, inputs, (hidden, cell), lengths, reverse)
    return hiddens, cells


@_recurrence(
    "inputs: Float, weight: Float, bias: Float?, hidden: Float, lengths: Int?; "
    "reverse: bool = False -> hiddens: Float",
    numpy=ref.gru_steps,
    shape=shapes.gru_steps,
    work=shapes.work,
    cases=(
        case((2, 2, 6), (2, 6), None, (2, 2), None),
        case((3, 3, 3), (1, 3), (3,), (3, 1), _LENGTHS),
        case((3, 3, 3), (1, 3), (3,), (3, 1), _LENGTHS, reverse=True),
        case((0, 2, 3), (1, 3), None, (0, 1), None),
    ),
    internal=True,
    doc="States (N, steps, H) after each step of a GRU, from the parts of its gates that inputs "
    "give (N, steps, 3·H), in the order reset, update, new.",
)
def gru_steps(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> Tensor:
    size, wide = hidden.shape[1], weight.to_full_precision()
    shift = None if bias is None else bias.to_full_precision()

    def step(given: Tensor, state: State) -> State:
        kept = state[0] @ wide if shift is None else state[0] @ wide + shift
        gates = (given[:, : 2 * size] + kept[:, : 2 * size]).sigmoid()
        new = (given[:, 2 * size :] + gates[:, :size] * kept[:, 2 * size :]).tanh()
        return (new + gates[:, size:] * (state[0] - new),)

    (hiddens,) = walk(step, inputs, (hidden,), lengths, reverse)
    return hiddens


@_recurrence(
    "inputs: Float, weight: Float, hidden: Float, lengths: Int?; "
    "activation: str = 'tanh', reverse: bool = False -> hiddens: Float",
    numpy=ref.rnn_steps,
    shape=shapes.rnn_steps,
    work=shapes.work,
    cases=(
        case((2, 3, 2), (2, 2), (2, 2), None),
        case((3, 3, 1), (1, 1), (3, 1), _LENGTHS),
        case((3, 3, 2), (2, 2), (3, 2), _LENGTHS, activation="relu", reverse=True),
        case((0, 2, 1), (1, 1), (0, 1), None),
    ),
    internal=True,
    doc="States (N, steps, H) after each step of a plain recurrence, from the parts that inputs "
    "give (N, steps, H).",
)
def rnn_steps(
    inputs: Tensor,
    weight: Tensor,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    activation: str,
    reverse: bool,
) -> Tensor:
    wide = weight.to_full_precision()

    def step(given: Tensor, state: State) -> State:
        total = given + state[0] @ wide
        return (total.tanh() if activation == "tanh" else total.relu(),)

    (hiddens,) = walk(step, inputs, (hidden,), lengths, reverse)
    return hiddens


def _start(x: Tensor, weight: Tensor, state: Tensor | None) -> Tensor:
    return x.zeros((x.shape[0], weight.shape[0])) if state is None else state


def within_steps(op: str, x: Tensor, lengths: Tensor[Int] | None) -> Tensor[Int] | None:
    """Lengths, of which one that x has no steps for is an error."""
    return None if lengths is None else held(op, "lengths", lengths, x.shape[1])


def projected(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What inputs give to the gates of all steps, in one product."""
    return products.linear(x, weight, bias)


def counted(states: Tensor, lengths: Tensor[Int] | None) -> Tensor:
    """0 for the steps that do not count."""
    if lengths is None:
        return states
    return real_steps(lengths, states.shape[1])[:, :, None].where(states, 0.0)


def last(states: Tensor, reverse: bool) -> Tensor:
    """The state after the walk."""
    return states[:, 0] if reverse else states[:, -1]


@_recurrence(
    "x: Float, weight_input: Float, weight_hidden: Float, bias: Float?, hidden: Float?, "
    "cell: Float?, lengths: Int?; reverse: bool = False "
    "-> y: Float, last_hidden: Float, last_cell: Float",
    numpy=ref.lstm,
    shape=shapes.lstm,
    rounded=0.25,  # the formula rounds the state of each step
    cases=(
        case((2, 2, 1), (1, 8), (2, 8), None, None, None, None),
        case((3, 3, 2), (2, 4), (1, 4), (4,), (3, 1), (3, 1), _LENGTHS),
        case((3, 3, 2), (2, 4), (1, 4), (4,), None, (3, 1), _LENGTHS, reverse=True),
    ),
    refuses=(
        refusal(ShapeError, (2, 2, 3), (8, 4), (8, 2), None, None, None, None),
        refusal(IndexOutOfRangeError, (1, 2, 1), (1, 4), (1, 4), None, None, None, Given([3])),
    ),
    method=False,
    example="pt.lstm(pt.ones((2, 1, 2)), pt.ones((2, 4)), pt.ones((1, 4)))",
    doc="An LSTM over x (N, steps, D): ``c' = f·c + i·g``, ``h' = o·tanh(c')`` with the gates "
    "``sigmoid`` (of g ``tanh``) of ``x @ weight_input + h @ weight_hidden + bias``, in the order "
    "i, f, g, o; weights (D, 4·H) and (H, 4·H). Gives h after each step (N, steps, H), and the "
    "last h and c (N, H). States start at 0 unless given. Only the first ``lengths`` steps of a "
    "sequence are used; later ones give 0 and change no state. Hochreiter and Schmidhuber, 1997.",
)
def lstm(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias: Tensor | None,
    hidden: Tensor | None,
    cell: Tensor | None,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    lengths = within_steps("lstm", x, lengths)
    start = (_start(x, weight_hidden, each) for each in (hidden, cell))
    inputs = projected(x, weight_input, bias)
    hiddens, cells = lstm_steps(inputs, weight_hidden, *start, lengths, reverse)
    return counted(hiddens, lengths), last(hiddens, reverse), last(cells, reverse)


@_recurrence(
    "x: Float, weight_input: Float, weight_hidden: Float, bias_input: Float?, "
    "bias_hidden: Float?, hidden: Float?, lengths: Int?; reverse: bool = False "
    "-> y: Float, last_hidden: Float",
    numpy=ref.gru,
    shape=shapes.gru,
    rounded=0.25,  # the formula rounds the state of each step
    cases=(
        case((2, 2, 1), (1, 6), (2, 6), None, None, None, None),
        case((3, 3, 2), (2, 3), (1, 3), (3,), (3,), (3, 1), _LENGTHS),
        case((3, 3, 2), (2, 3), (1, 3), (3,), None, None, _LENGTHS, reverse=True),
    ),
    refuses=(
        refusal(ShapeError, (2, 2, 3), (6, 4), (6, 2), None, None, None, None),
        refusal(IndexOutOfRangeError, (1, 2, 1), (1, 3), (1, 3), None, None, None, Given([-1])),
    ),
    method=False,
    example="pt.gru(pt.ones((2, 1, 2)), pt.ones((2, 3)), pt.ones((1, 3)))",
    doc="A GRU over x (N, steps, D): ``h' = n + z·(h - n)`` with ``r, z = sigmoid(a + b)``, "
    "``n = tanh(a + r·b)`` of ``a = x @ weight_input + bias_input`` and ``b = h @ weight_hidden + "
    "bias_hidden``, each in the order r, z, n; weights (D, 3·H) and (H, 3·H). Gives h behind each "
    "step (N, steps, H), and the last h (N, H); ``hidden`` and ``lengths`` are as of ``lstm``. Cho "
    "et al., 2014.",
)
def gru(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias_input: Tensor | None,
    bias_hidden: Tensor | None,
    hidden: Tensor | None,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    lengths = within_steps("gru", x, lengths)
    start, inputs = _start(x, weight_hidden, hidden), projected(x, weight_input, bias_input)
    hiddens = gru_steps(inputs, weight_hidden, bias_hidden, start, lengths, reverse)
    return counted(hiddens, lengths), last(hiddens, reverse)


@_recurrence(
    "x: Float, weight_input: Float, weight_hidden: Float, bias: Float?, hidden: Float?, "
    "lengths: Int?; activation: str = 'tanh', reverse: bool = False "
    "-> y: Float, last_hidden: Float",
    numpy=ref.rnn,
    shape=shapes.rnn,
    rounded=2,  # the formula rounds the state of each step
    cases=(
        case((2, 2, 3), (3, 2), (2, 2), None, None, None),
        case((3, 3, 2), (2, 1), (1, 1), (1,), (3, 1), _LENGTHS),
        case((3, 3, 2), (2, 2), (2, 2), None, None, _LENGTHS, activation="relu", reverse=True),
    ),
    refuses=(
        refusal(ShapeError, (2, 2, 3), (4, 2), (2, 2), None, None, None),
        refusal(IndexOutOfRangeError, (1, 2, 1), (1, 1), (1, 1), None, None, Given([3])),
    ),
    method=False,
    example="pt.rnn(pt.ones((2, 1, 2)), pt.ones((2, 1)), pt.ones((1, 1)))",
    doc="A plain recurrence over x (N, steps, D): ``h' = tanh(x @ weight_input + h @ weight_hidden "
    "+ bias)``, or ``relu``; weights (D, H) and (H, H). Gives h after each step (N, steps, H), "
    "and the last h (N, H); ``hidden`` and ``lengths`` are as of ``lstm``. Elman, 1990.",
)
def rnn(
    x: Tensor,
    weight_input: Tensor,
    weight_hidden: Tensor,
    bias: Tensor | None,
    hidden: Tensor | None,
    lengths: Tensor[Int] | None,
    activation: str,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    lengths = within_steps("rnn", x, lengths)
    start, inputs = _start(x, weight_hidden, hidden), projected(x, weight_input, bias)
    hiddens = rnn_steps(inputs, weight_hidden, start, lengths, activation, reverse)
    return counted(hiddens, lengths), last(hiddens, reverse)
