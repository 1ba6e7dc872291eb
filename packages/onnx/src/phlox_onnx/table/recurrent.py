"""RNN, GRU and LSTM: each direction is an op, or a loop where the op knows no such formula."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack

import phlox_tensor as px
from phlox_tensor import Tensor

from .._errors import OnnxError
from ._row import Host, Row, row

T = Tensor[Any]
Act = Callable[[Any], Any]
Floats = tuple[float, ...]

# With the values that alpha and beta have where a file gives none.
_ACTIVATIONS: Final[dict[str, tuple[Callable[[Any, float, float], Any], float, float]]] = {
    "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "elu": (lambda x, a, b: px.elu(x, a), 1.0, 0.0),
    "hardsigmoid": (px.hard_sigmoid, 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: px.leaky_relu(x, a), 0.01, 0.0),
    "relu": (lambda x, a, b: px.relu(x), 0.0, 0.0),
    "scaledtanh": (lambda x, a, b: (x * b).tanh() * a, 1.0, 1.0),
    "sigmoid": (lambda x, a, b: x.sigmoid(), 0.0, 0.0),
    "softplus": (lambda x, a, b: px.softplus(x), 0.0, 0.0),
    "softsign": (lambda x, a, b: px.softsign(x), 0.0, 0.0),
    "tanh": (lambda x, a, b: x.tanh(), 0.0, 0.0),
    "thresholdedrelu": (lambda x, a, b: (x > a).where(x, 0.0), 1.0, 0.0),
}
# Activations that take alpha, or alpha and beta, from the lists of the node.
_TAKES: Final = {
    "affine": 2, "elu": 1, "hardsigmoid": 2, "leakyrelu": 1, "scaledtanh": 2, "thresholdedrelu": 1,
}  # fmt: skip
LSTM: Final = ("sigmoid", "tanh", "tanh")


class Recurrent(TypedDict, total=False):
    """What recurrent nodes say of their directions."""

    activation_alpha: Floats
    activation_beta: Floats
    activations: tuple[str, ...] | None
    clip: float | None
    direction: Direction
    hidden_size: int


class Acts(NamedTuple):
    """The activations of all directions, and whether they are those of an op of phlox."""

    functions: list[Act]
    names: list[str]
    usual: bool
    direction: str


def acts_of(
    op: str, X: T, W: T, R: T, gates: int, default: tuple[str, ...], how: Recurrent
) -> Acts:
    """Return the activations of a node, after a look at what else it says of its weights."""
    direction, clip = how.get("direction", "forward"), how.get("clip")
    check_weights(op, X, W, R, gates, direction, how.get("hidden_size", 0))
    usual = default * W.shape[0]
    names = how.get("activations") or usual
    functions: list[Act] = []
    a, b = list(how.get("activation_alpha", ())), list(how.get("activation_beta", ()))
    for name in names:
        key = name.lower()
        if key not in _ACTIVATIONS:
            expected = ", ".join(_ACTIVATIONS)
            raise OnnxError("RNN", "unknown activation", got=repr(name), expected=expected)
        function, alpha, beta = _ACTIVATIONS[key]
        takes = _TAKES.get(key, 0)
        alpha = a.pop(0) if takes > 0 and a else alpha
        beta = b.pop(0) if takes > 1 and b else beta
        functions.append(partial(_clipped, function=function, alpha=alpha, beta=beta, clip=clip))
    lower = [name.lower() for name in names]
    return Acts(functions, lower, clip is None and lower == [*usual], direction)


def _clipped(x: Any, *, function: Any, alpha: float, beta: float, clip: float | None) -> Any:
    return function(x if clip is None else x.clip(-clip, clip), alpha, beta)


Step = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


def _run(
    gates: T, state: tuple[T, ...], step: Step, lengths: Host | None, backwards: bool
) -> tuple[T, tuple[T, ...]]:
    """All outputs (time, batch, hidden) and the last state; short sequences stop early."""
    count = gates.shape[0]
    if count and isinstance(gates.device, px.Meta):  # without data one step has the sizes of all
        after = step(gates[0], state)
        return after[0].broadcast_to((count, *after[0].shape)), after
    found: list[Any] = [None] * count
    order = reversed(range(count)) if backwards else range(count)
    whole = lengths is None or bool((lengths == count).all())
    for t in order:
        after = step(gates[t], state)
        if whole:
            state, found[t] = after, after[0]
            continue
        assert lengths is not None
        runs = px.asarray((lengths > t)[:, None], device=gates.device)
        state = tuple(runs.where(new, old) for new, old in zip(after, state, strict=True))
        found[t] = runs.where(after[0], 0.0)
    return px.stack(found, axis=0), state


# One direction of a layer: x (batch, time, size), its state, whether backwards.
Walk = Callable[[T, tuple[Any, ...], bool], tuple[Any, ...]]
Direction = Literal["forward", "reverse", "bidirectional"]
# Places of the gates of phlox among those of ONNX.
GATES: Final = {"GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1), "RNN": (0,)}


def both_ways(
    X: T,
    initial: tuple[T | None, ...],
    walks: list[Walk],
    hidden: int,
    direction: str,
    layout: int,
) -> tuple[Any, ...]:
    """All outputs and the last states of each direction."""
    x = X if layout else X.permute_dims((1, 0, 2))
    zeros = px.full((x.shape[0], hidden), 0.0, dtype=X.dtype, device=X.device)
    outputs, last = [], []
    for d, walk in enumerate(walks):
        state = tuple(zeros if v is None else (v[:, d] if layout else v[d]) for v in initial)
        out, *end = walk(x, state, direction == "reverse" or d == 1)
        outputs.append(out)
        last.append(end)
    Y = px.stack(outputs, axis=2)
    Y = Y if layout else Y.permute_dims((1, 2, 0, 3))
    ends = [px.stack([e[i] for e in last], axis=1 if layout else 0) for i in range(len(initial))]
    return Y, *ends


def bias_sum(biases: tuple[T | None, ...]) -> T | None:
    of_inputs, of_states = biases
    return None if of_inputs is None or of_states is None else of_inputs + of_states


def by_op(name: str, weights: tuple[Any, ...], lengths: T | None, activation: str = "") -> Walk:
    """A direction by an op, of two matrices and two biases as it has them."""
    w, r, *biases = weights
    added = biases if name == "gru" else [bias_sum(tuple(biases))]
    words = [activation] if name == "rnn" else []

    def walk(x: T, state: tuple[Any, ...], backwards: bool) -> tuple[Any, ...]:
        op = getattr(px.ops, name)
        return tuple(op(x, w, r, *added, *state, lengths, *words, backwards))

    return walk


def _as_phlox(op: str, w: T, r: T, b: T | None) -> tuple[Any, ...]:
    """Matrices and both biases of ONNX as the ops of phlox have them."""

    def gates(v: T) -> T:
        parts = px.split(v, len(GATES[op]), axis=0)
        return px.concat([parts[i] for i in GATES[op]], axis=0)

    n = w.shape[0]
    biases = (None, None) if b is None else (gates(b[:n]), gates(b[n:]))
    return gates(w).mT, gates(r).mT, *biases


def _by_step(w: T, bias: T | None, step: Step, lengths: Host | None) -> Walk:
    """A direction step by step."""

    def walk(x: T, state: tuple[Any, ...], backwards: bool) -> tuple[Any, ...]:
        batch, time = x.shape[:2]
        gates = x.permute_dims((1, 0, 2)).reshape((time * batch, -1)) @ w.mT
        gates = gates if bias is None else gates + bias
        out, end = _run(gates.reshape((time, batch, -1)), state, step, lengths, backwards)
        return out.permute_dims((1, 0, 2)), *end

    return walk


def _both_biases(b: T | None) -> T | None:
    return None if b is None else b[: b.shape[0] // 2] + b[b.shape[0] // 2 :]


def check_weights(op: str, X: T, W: T, R: T, gates: int, direction: str, hidden_size: int) -> None:
    """Refuse attributes that contradict each other or the weights.

    Raises:
        OnnxError: with the attribute, or the weight, that does not fit.
    """
    hidden, count = R.shape[-1], 2 if direction == "bidirectional" else 1
    if hidden_size not in (0, hidden):
        got = f"hidden_size={hidden_size}"
        raise OnnxError(op, "hidden_size contradicts R", got=got, expected=hidden)
    for name, given, size in (("W", W, X.shape[-1]), ("R", R, hidden)):
        shape = (count, gates * hidden, size)
        if given.shape != shape:
            why = f"{name} does not fit direction={direction!r}"
            raise OnnxError(op, why, got=given.shape, expected=shape)


def _layer(
    op: str,
    matrices: tuple[T, T, T, T | None],
    lengths: Host | None,
    initial: tuple[T | None, ...],
    direction: str,
    layout: int,
    activations: list[str],
    make: Callable[[int, T, T | None], tuple[Step, T | None]],
) -> tuple[Any, ...]:
    """Each direction by the op, under the name of an activation, or by the step that is made."""
    X, W, R, B = matrices
    counts = None if lengths is None else px.asarray(lengths, device=X.device)
    walks = []
    for d in range(W.shape[0]):
        b = None if B is None else B[d]
        if activations[d] and X.shape[1 if layout else 0]:
            weights = _as_phlox(op, W[d], R[d], b)
            walks.append(by_op(op.lower(), weights, counts, activations[d]))
        else:
            step, bias = make(d, R[d], b)
            walks.append(_by_step(W[d], bias, step, lengths))
    return both_ways(X, initial, walks, R.shape[-1], direction, layout)


def rnn(
    X: T,
    W: T,
    R: T,
    B: T | None = None,
    sequence_lens: Host | None = None,
    initial_h: T | None = None,
    *,
    layout: Literal[0, 1] = 0,
    **how: Unpack[Recurrent],
) -> tuple[Any, ...]:
    acts = acts_of("RNN", X, W, R, 1, ("tanh",), how)

    def make(d: int, r: T, b: T | None) -> tuple[Step, T | None]:
        across = r.mT
        return lambda gates, state: (acts.functions[d](gates + state[0] @ across),), _both_biases(b)

    whole = how.get("clip") is None
    known = [name if whole and name in ("relu", "tanh") else "" for name in acts.names]
    matrices, states = (X, W, R, B), (initial_h,)
    return _layer("RNN", matrices, sequence_lens, states, acts.direction, layout, known, make)


def gru(
    X: T,
    W: T,
    R: T,
    B: T | None = None,
    sequence_lens: Host | None = None,
    initial_h: T | None = None,
    *,
    layout: Literal[0, 1] = 0,
    linear_before_reset: int = 0,
    **how: Unpack[Recurrent],
) -> tuple[Any, ...]:
    acts = acts_of("GRU", X, W, R, 3, ("sigmoid", "tanh"), how)

    def make(d: int, r: T, b: T | None) -> tuple[Step, T | None]:
        n = r.shape[-1]
        f, g = acts.functions[2 * d : 2 * d + 2]
        gate, candidate = r[: 2 * n].mT, r[2 * n :].mT
        whole = r.mT
        inner = None if b is None else b[5 * n :]

        def step(gates: T, state: tuple[Any, ...]) -> tuple[Any, ...]:
            h = state[0]
            if linear_before_reset:
                across = h @ whole
                zr = f(gates[:, : 2 * n] + across[:, : 2 * n])
                past = across[:, 2 * n :]
                past = past if inner is None else past + inner
                new = g(gates[:, 2 * n :] + zr[:, n:] * past)
            else:
                zr = f(gates[:, : 2 * n] + h @ gate)
                new = g(gates[:, 2 * n :] + (zr[:, n:] * h) @ candidate)
            z = zr[:, :n]
            return ((1.0 - z) * new + z * h,)

        bias = _both_biases(b)
        if b is not None and linear_before_reset:  # the candidate's comes after the reset gate
            bias = px.concat([b[: 2 * n] + b[3 * n : 5 * n], b[2 * n : 3 * n]])
        return step, bias

    known = ["usual" if linear_before_reset and acts.usual else ""] * W.shape[0]
    matrices, states = (X, W, R, B), (initial_h,)
    return _layer("GRU", matrices, sequence_lens, states, acts.direction, layout, known, make)


def lstm(
    X: T,
    W: T,
    R: T,
    B: T | None = None,
    sequence_lens: Host | None = None,
    initial_h: T | None = None,
    initial_c: T | None = None,
    P: T | None = None,
    *,
    input_forget: int = 0,
    layout: Literal[0, 1] = 0,
    **how: Unpack[Recurrent],
) -> tuple[Any, ...]:
    """Gates are input, output, forget, cell; ``P`` lets them see the cell."""
    acts = acts_of("LSTM", X, W, R, 4, LSTM, how)
    weights, states = (X, W, R, B), (initial_h, initial_c)
    return walked_lstm(weights, sequence_lens, states, P, acts, input_forget, layout)


def walked_lstm(
    weights: tuple[T, T, T, T | None],
    lengths: Host | None,
    states: tuple[T | None, T | None],
    P: T | None,
    acts: Acts,
    input_forget: int,
    layout: int,
    seen: Act | None = None,
) -> tuple[Any, ...]:
    """By the op where all is usual; ``seen`` is what products make of the state first."""

    def make(d: int, r: T, b: T | None) -> tuple[Step, T | None]:
        n = r.shape[-1]
        f, g, h_act = acts.functions[3 * d : 3 * d + 3]
        across = r.mT
        peep = None if P is None else P[d]

        def step(gates: T, state: tuple[Any, ...]) -> tuple[Any, ...]:
            h, c = state
            all_ = gates + (h if seen is None else seen(h)) @ across
            if peep is None:
                iof = f(all_[:, : 3 * n])
                i, o, forget = iof[:, :n], iof[:, n : 2 * n], iof[:, 2 * n :]
            else:
                i = f(all_[:, :n] + peep[:n] * c)
                o = all_[:, n : 2 * n]
                forget = f(all_[:, 2 * n : 3 * n] + peep[2 * n :] * c)
            if input_forget:
                forget = 1.0 - i
            c = forget * c + i * g(all_[:, 3 * n :])
            if peep is not None:
                o = f(o + peep[n : 2 * n] * c)
            return o * h_act(c), c

        return step, _both_biases(b)

    usual = acts.usual and P is None and not input_forget and seen is None
    known = ["usual" if usual else ""] * weights[1].shape[0]
    return _layer("LSTM", weights, lengths, states, acts.direction, layout, known, make)


ROWS: Final[dict[str, Row]] = {
    "GRU": row(22, gru, trained="W R B"),
    "LSTM": row(22, lstm, trained="W R B P"),
    "RNN": row(22, rnn, trained="W R B"),
}
