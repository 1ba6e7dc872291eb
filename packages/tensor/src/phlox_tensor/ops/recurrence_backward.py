"""Backward passes of recurrent layers, each in one direction as one op.

What the gates were is computed again in one product for all steps, and each step back is a product
with what its cotangent has to be scaled by. Each op gives the cotangents of what inputs give, of
the products of states with weights where those are others, and of the states at the start; the
cotangent of the weights is one product of them.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from .._op.records import IndexSample, case
from .._values.kinds import Int
from .._values.tensor import Tensor
from ..reference import recurrence as ref
from ..shapes import recurrence as shapes
from . import movement
from ._families import contraction
from .recurrence import real_steps

_LENGTHS = IndexSample((3,), -4)
_backward: Final = partial(contraction.formula, ulp=128, atol=128, internal=True)
_END: Final = "steps behind the end are multiplied by 0, or left out"


def states_before(start: Tensor, states: Tensor, reverse: bool) -> Tensor:
    """The state in front of each step."""
    first = start.expand_dims(axis=1)
    parts = [states[:, 1:], first] if reverse else [first, states[:, :-1]]
    return movement.concat(parts, axis=1)


def joined_steps(steps: list[Tensor], reverse: bool) -> Tensor:
    """(N, steps, size) of the steps in the order of the walk back."""
    n, size = steps[0].shape
    ordered = steps if reverse else steps[::-1]
    return movement.concat(ordered, axis=1).reshape((n, len(steps), size))


def _real(lengths: Tensor[Int] | None, like: Tensor) -> Tensor | None:
    """(N, steps, 1): 1 for the steps that count."""
    if lengths is None:
        return None
    return real_steps(lengths, like.shape[1]).expand_dims(axis=2).astype(like.dtype)


def _masked(x: Tensor, real: Tensor | None) -> Tensor:
    return x if real is None else x * real


def _kept(x: Tensor | None, real: Tensor | None) -> Tensor | None:
    """What a state goes on by: x where a step counts, else 1."""
    if real is None:
        return x
    return 1.0 - real if x is None else x * real + (1.0 - real)


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [x.to_full_precision() for x in tensors]


def _without_traces(x: Tensor) -> Tensor:
    """A cotangent with 0 for what has vanished: no sum of others would show it.

    Products of it are denormal, of which each takes a processor a hundred times as long. A 0 goes
    on as it is, for it may have a derivative.
    """
    return ((x.abs() < shapes.TRACES[x.dtype.itemsize]) & (x != 0.0)).where(0.0, x)


def _walk_back(
    wanted: Tensor, weight: Tensor, scale: Tensor, kept: Tensor | None, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Cotangents of the states after each step, of products with weights, of the start.

    ``scale`` (N, steps, gates · H) turns the one into the other; ``kept`` is what of a state goes
    on to the next one as it is.
    """
    n, steps, size = wanted.shape
    gates, turned = scale.shape[2] // size, weight.mT
    arrived, scales = movement.unstack(wanted, axis=1), movement.unstack(scale, axis=1)
    keeps = None if kept is None else movement.unstack(kept, axis=1)
    carried: Tensor = wanted.zeros((n, size))
    states: list[Tensor] = []
    pulls: list[Tensor] = []
    for t in range(steps) if reverse else reversed(range(steps)):
        state = arrived[t] + carried
        pull = (state if gates == 1 else movement.concat([state] * gates, axis=1)) * scales[t]
        passed = pull @ turned if keeps is None else pull @ turned + state * keeps[t]
        carried = _without_traces(passed)
        states.append(state)
        pulls.append(pull)
    return joined_steps(states, reverse), joined_steps(pulls, reverse), carried


@_backward(
    "hiddens: Float, weight: Float, hidden: Float, lengths: Int?, g_hiddens: Float; "
    "activation: str = 'tanh', reverse: bool = False -> g_inputs: Float, g_hidden: Float",
    numpy=ref.rnn_steps_backward,
    shape=shapes.rnn_steps_backward,
    work=shapes.work,
    unpromised=dict.fromkeys(("g_hiddens", "hidden", "hiddens", "weight"), _END),
    cases=(
        case((2, 3, 2), (2, 2), (2, 2), None, (2, 3, 2)),
        case((3, 3, 1), (1, 1), (3, 1), _LENGTHS, (3, 3, 1)),
        case((3, 3, 2), (2, 2), (3, 2), _LENGTHS, (3, 3, 2), activation="relu", reverse=True),
        case((0, 2, 1), (1, 1), (0, 1), None, (0, 2, 1)),
    ),
    doc="Cotangents of what inputs give ``rnn_steps``, which are those of the products with its "
    "states too, and of its state at the start, from its result and the cotangent of that.",
)
def rnn_steps_backward(
    hiddens: Tensor,
    weight: Tensor,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    g_hiddens: Tensor,
    activation: str,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    del hidden  # which has the shape of its cotangent
    states, weights, wanted = _wide(hiddens, weight, g_hiddens)
    real = _real(lengths, states)
    slope = 1.0 - states.square() if activation == "tanh" else (states > 0).astype(states.dtype)
    scale = _masked(slope, real)
    _, pulls, first = _walk_back(wanted, weights, scale, _kept(None, real), reverse)
    return pulls.astype(hiddens.dtype), first.astype(hiddens.dtype)


@_backward(
    "inputs: Float, weight: Float, bias: Float?, hidden: Float, lengths: Int?, hiddens: Float, "
    "g_hiddens: Float; reverse: bool = False "
    "-> g_inputs: Float, g_products: Float, g_hidden: Float",
    numpy=ref.gru_steps_backward,
    shape=shapes.gru_steps_backward,
    work=shapes.work,
    unpromised=dict.fromkeys(("bias", "g_hiddens", "hidden", "hiddens", "inputs", "weight"), _END),
    cases=(
        case((2, 2, 6), (2, 6), None, (2, 2), None, (2, 2, 2), (2, 2, 2)),
        case((3, 3, 3), (1, 3), (3,), (3, 1), _LENGTHS, (3, 3, 1), (3, 3, 1)),
        case((3, 3, 3), (1, 3), (3,), (3, 1), _LENGTHS, (3, 3, 1), (3, 3, 1), reverse=True),
        case((0, 2, 3), (1, 3), None, (0, 1), None, (0, 2, 1), (0, 2, 1)),
    ),
    doc="Cotangents of what inputs give ``gru_steps``, of the products with its states (which "
    "differ in what the reset gate lets through), and of its state at the start, from its "
    "operands, its result, and the cotangent of that. Cho et al., 2014.",
)
def gru_steps_backward(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    hiddens: Tensor,
    g_hiddens: Tensor,
    reverse: bool,
) -> tuple[Tensor, ...]:
    given, weights, start, states, wanted = _wide(inputs, weight, hidden, hiddens, g_hiddens)
    real, size = _real(lengths, states), hidden.shape[1]
    before = states_before(start, states, reverse)
    kept = before @ weights
    if bias is not None:
        kept = kept + bias.to_full_precision()
    gates = (given[..., : 2 * size] + kept[..., : 2 * size]).sigmoid()
    reset, update = gates[..., :size], gates[..., size:]
    new = (given[..., 2 * size :] + reset * kept[..., 2 * size :]).tanh()
    by_new = _masked((1.0 - update) * (1.0 - new.square()), real)
    by_reset = by_new * kept[..., 2 * size :] * (reset * (1.0 - reset))
    by_update = _masked((before - new) * (update * (1.0 - update)), real)
    scale = movement.concat([by_reset, by_update, by_new * reset], axis=2)
    found, pulls, first = _walk_back(wanted, weights, scale, _kept(update, real), reverse)
    outer = movement.concat([pulls[..., : 2 * size], found * by_new], axis=2)
    return tuple(x.astype(inputs.dtype) for x in (outer, pulls, first))


def _lstm_walk_back(
    rows: list[tuple[Tensor, ...]], keeps: list[tuple[Tensor, ...]], turned: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Cotangents of the products with weights, of the hidden state and of the cell at the start."""
    wanted, of_cells, scales, through = rows
    carried: Tensor = wanted[0].zeros()
    memory: Tensor = wanted[0].zeros()
    pulls: list[Tensor] = []
    for t in range(len(wanted)) if reverse else reversed(range(len(wanted))):
        state = wanted[t] + carried
        memory = of_cells[t] + memory + state * through[t]
        pull = movement.concat([memory, memory, memory, state], axis=1) * scales[t]
        carried = pull @ turned
        if len(keeps) > 1:
            carried = carried + state * keeps[1][t]
        carried, memory = _without_traces(carried), _without_traces(memory * keeps[0][t])
        pulls.append(pull)
    return joined_steps(pulls, reverse), carried, memory


_STEPS = ("cell", "cells", "g_cells", "g_hiddens", "hidden", "hiddens", "inputs", "weight")


@_backward(
    "inputs: Float, weight: Float, hidden: Float, cell: Float, lengths: Int?, hiddens: Float, "
    "cells: Float, g_hiddens: Float?, g_cells: Float?; reverse: bool = False "
    "-> g_inputs: Float, g_hidden: Float, g_cell: Float",
    numpy=ref.lstm_steps_backward,
    shape=shapes.lstm_steps_backward,
    work=shapes.work,
    unpromised=dict.fromkeys(_STEPS, _END),
    cases=(
        case((2, 2, 8), (2, 8), (2, 2), (2, 2), None, (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2)),
        case(
            *((3, 3, 4), (1, 4), (3, 1), (3, 1), _LENGTHS, (3, 3, 1), (3, 3, 1)),
            *(None, (3, 3, 1)),
        ),
        case(
            *((3, 3, 4), (1, 4), (3, 1), (3, 1), _LENGTHS, (3, 3, 1), (3, 3, 1)),
            *((3, 3, 1), None),
            reverse=True,
        ),
        case((0, 2, 4), (1, 4), (0, 1), (0, 1), None, *[(0, 2, 1)] * 4),
    ),
    doc="Cotangents of what inputs give ``lstm_steps`` and of its states at the start, from its "
    "operands, its results, and their cotangents. Hochreiter and Schmidhuber, 1997.",
)
def lstm_steps_backward(  # noqa: PLR0913, PLR0917 - operands and results of the op
    inputs: Tensor,
    weight: Tensor,
    hidden: Tensor,
    cell: Tensor,
    lengths: Tensor[Int] | None,
    hiddens: Tensor,
    cells: Tensor,
    g_hiddens: Tensor | None,
    g_cells: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, ...]:
    """What the gates were is computed again, in one product for all steps."""
    size, weights = hidden.shape[1], weight.to_full_precision()
    states, memories = hiddens.to_full_precision(), cells.to_full_precision()
    old = states_before(cell.to_full_precision(), memories, reverse)
    kept = states_before(hidden.to_full_precision(), states, reverse) @ weights
    total = inputs.to_full_precision() + kept
    gates, taken = total[..., : 2 * size].sigmoid(), total[..., 2 * size : 3 * size].tanh()
    i, f, o = gates[..., :size], gates[..., size:], total[..., 3 * size :].sigmoid()
    seen = memories.tanh()
    by_cell = [taken * i * (1.0 - i), old * f * (1.0 - f), i * (1.0 - taken.square())]
    scale = movement.concat([*by_cell, seen * o * (1.0 - o)], axis=2)
    through, keeps = o * (1.0 - seen.square()), [f]
    real = _real(lengths, f)
    if real is not None:
        scale, through, keeps = scale * real, through * real, [f * real + (1.0 - real), 1.0 - real]
    none = states.zeros()
    wanted = [none if x is None else x.to_full_precision() for x in (g_hiddens, g_cells)]
    rows = [movement.unstack(x, axis=1) for x in (*wanted, scale, through)]
    parts = [movement.unstack(x, axis=1) for x in keeps]
    found = _lstm_walk_back(rows, parts, weights.mT, reverse)
    return tuple(x.astype(inputs.dtype) for x in found)
