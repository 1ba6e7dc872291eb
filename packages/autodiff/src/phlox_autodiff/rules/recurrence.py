"""Derivatives of recurrent layers: gates of all steps at once, then one walk back.

What the gates were is computed again in one product for all steps, and each step back is a product
with what its cotangent has to be scaled by. The cotangent of the weights is one product again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from phlox_tensor import Tensor, concat, unstack
from phlox_tensor.ops.recurrence import (
    joined_steps,
    lstm_steps_backward,
    real_steps,
    states_before,
)

from .._rule import Joint, Rule

if TYPE_CHECKING:
    from phlox_tensor import Int

# By bytes of an element: the least normal number over the distance from 1 to the next.
_TRACES: Final = {4: 2.0**-103, 8: 2.0**-970}

Cotangents = tuple["Tensor | None", ...]


def _real(lengths: Tensor[Int] | None, like: Tensor) -> Tensor | None:
    """(N, steps, 1): 1 for the steps that count."""
    if lengths is None:
        return None
    return real_steps(lengths, like.shape[1])[:, :, None].astype(like.dtype)


def _masked(x: Tensor, real: Tensor | None) -> Tensor:
    return x if real is None else x * real


def _kept(x: Tensor | None, real: Tensor | None) -> Tensor | None:
    """What a state goes on by: x where a step counts, else 1."""
    if real is None:
        return x
    return 1.0 - real if x is None else x * real + (1.0 - real)


def _weights(before: Tensor, pulls: Tensor) -> Tensor:
    """The sum of the products of all steps."""
    size, columns = before.shape[2], pulls.shape[2]
    return before.reshape((-1, size)).mT @ pulls.reshape((-1, columns))


def _without_traces(x: Tensor) -> Tensor:
    """A cotangent with 0 for what has vanished: no sum of others would show it.

    Products of it are denormal, of which each takes a processor a hundred times as long.
    """
    return (x.abs() < _TRACES[x.dtype.itemsize]).where(0.0, x)


def _back(
    g: Tensor, weight: Tensor, scale: Tensor, kept: Tensor | None, reverse: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Cotangents of the states behind each step, of products with weights, of the start.

    ``scale`` (N, steps, gates · H) turns the one into the other; ``kept`` is what of a state goes
    on to the next one as it is.
    """
    n, steps, size = g.shape
    gates = scale.shape[2] // size
    wanted, turned = unstack(g, axis=1), weight.mT
    scales = unstack(scale, axis=1)
    keeps = None if kept is None else unstack(kept, axis=1)
    carried: Tensor = g.zeros((n, size))
    states: list[Tensor] = []
    pulls: list[Tensor] = []
    for t in range(steps) if reverse else reversed(range(steps)):
        state = wanted[t] + carried
        pull = (state if gates == 1 else concat([state] * gates, axis=1)) * scales[t]
        passed = pull @ turned if keeps is None else pull @ turned + state * keeps[t]
        carried = _without_traces(passed)
        states.append(state)
        pulls.append(pull)
    return joined_steps(states, reverse), joined_steps(pulls, reverse), carried


def _wide(*tensors: Tensor) -> list[Tensor]:
    return [x.to_full_precision() for x in tensors]


def _rnn_steps(
    g: Tensor,
    weight: Tensor,
    hidden: Tensor,
    lengths: Tensor[Int] | None,
    y: Tensor,
    activation: str,
    reverse: bool,
) -> Cotangents:
    wanted, weights, start, states = _wide(g, weight, hidden, y)
    real = _real(lengths, states)
    slope = 1.0 - states.square() if activation == "tanh" else (states > 0).astype(states.dtype)
    scale = _masked(slope, real)
    _, pulls, first = _back(wanted, weights, scale, _kept(None, real), reverse)
    found = (pulls, _weights(states_before(start, states, reverse), pulls), first)
    return (*(x.astype(g.dtype) for x in found), None)


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
    wanted, given, weights, start, states = _wide(g, inputs, weight, hidden, y)
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
    scale = concat([by_reset, by_update, by_new * reset], axis=2)
    found, pulls, first = _back(wanted, weights, scale, _kept(update, real), reverse)
    outer = concat([pulls[..., : 2 * size], found * by_new], axis=2)
    total = None if bias is None else pulls.sum(axis=(0, 1)).astype(g.dtype)
    parts = [x.astype(g.dtype) for x in (outer, _weights(before, pulls), first)]
    return parts[0], parts[1], total, parts[2], None


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
    start, states, wide = _wide(hidden, hiddens, pulls)
    total = _weights(states_before(start, states, reverse), wide).astype(weight.dtype)
    return pulls, total, first, remembered, None


RECURRENCE: Final[dict[str, Rule]] = {
    "gru_steps": Joint(_gru_steps),
    "lstm_steps": Joint(_lstm_steps),
    "rnn_steps": Joint(_rnn_steps),
}
