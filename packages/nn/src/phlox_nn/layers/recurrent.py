"""Recurrent layers: RNN, GRU, LSTM, over sequences (…, length, size)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from itertools import cycle
from math import prod
from typing import Any, Final, NamedTuple

from phlox_tensor import Backend, Float, Int, ShapeError, Tensor, concat, full, ops, stack

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import Layer, LayerConfig
from ..module.module import Module
from ..param.param import Param
from . import recurrent_steps as steps
from .activation import Name
from .dropout import Dropout
from .inputs import check_dtype, value_of
from .recurrent_steps import Found, Hidden

# What a layer in one direction does: weights, a sequence (N, length, size), the state in front of
# it, lengths, and whether from its end; to the results and the state behind it.
Walk = Callable[["Recurrence", Tensor[Float], Hidden, Tensor[Int] | None, bool], Found]

_OF_OPS: Final = frozenset(("relu", "tanh"))  # activations that the op has


class LstmState(NamedTuple):
    """What an LSTM remembers, for each layer and direction.

    Attributes:
        hidden: (layers · directions, …, d_hidden).
        cell: the same.
    """

    hidden: Tensor[Float]
    cell: Tensor[Float]


class Recurrence(Module):
    """The weights of one layer in one direction; gates follow each other in the columns.

    weight_input: (size, gates · d_hidden); weight_hidden: (d_hidden, gates · d_hidden); biases:
    (gates · d_hidden,) or None.
    """

    transposed_in_pytorch = ("weight_input", "weight_hidden")

    weight_input: Param
    weight_hidden: Param
    bias_input: Param | None
    bias_hidden: Param | None

    def weights(self) -> tuple[Tensor[Float], Tensor[Float]]:
        """Return what inputs and what states are multiplied with."""
        return self.weight_input.value, self.weight_hidden.value

    def biases(self) -> tuple[Tensor[Float] | None, Tensor[Float] | None]:
        """Return what is added to the products of inputs and of states, where there is such."""
        return value_of(self.bias_input), value_of(self.bias_hidden)

    def bias(self) -> Tensor[Float] | None:
        """Return the sum of the biases that there are."""
        inputs, hidden = self.biases()
        return hidden if inputs is None else inputs if hidden is None else inputs + hidden


def _names_in_pytorch(layer: Any) -> dict[str, str]:
    """What PyTorch calls the weights of each layer and direction, by our paths."""
    directions = ("", "_reverse") if layer.settings.bidirectional else ("",)
    return {
        f"layers.{i}.{kind}_{ours}": f"{kind}_{theirs}_l{i // len(directions)}{way}"
        for i, way in zip(range(len(layer.layers)), cycle(directions), strict=False)
        for kind in ("weight", "bias")
        for ours, theirs in (("input", "ih"), ("hidden", "hh"))
    }


def _recurrences(config: Any, gates: int, device: Backend | str | None) -> dict[str, Any]:
    """The weights of all layers, both directions of one after the other, and dropout."""
    size, directions = config.d_hidden, 2 if config.bidirectional else 1
    first = init.Uniform(-(size**-0.5), size**-0.5)
    made = []
    for layer in range(config.n_layers):
        d_input = directions * size if layer else config.d_input
        for _ in range(directions):
            biases = [
                first.param((gates * size,), device) if config.bias else None for _ in range(2)
            ]
            weights = [first.param((n, gates * size), device) for n in (d_input, size)]
            made.append(Recurrence(*weights, *biases))
    return {"layers": tuple(made), "dropout": Dropout(config.dropout, device=device)}


def _validate(config: Any) -> None:
    config.require("n_layers", config.n_layers > 0, "at least 1")
    config.require("d_hidden", config.d_hidden > 0, "at least 1")
    config.require("dropout", 0.0 <= config.dropout < 1.0, "a probability: 0 <= dropout < 1")
    one_way = not (config.reverse and config.bidirectional)
    config.require("reverse", one_way, "False where both directions run")
    bound = config.clip is None or config.clip > 0
    config.require("clip", bound, "a bound of the states: clip > 0, or None")
    between = not config.dropout or config.n_layers > 1
    config.require("dropout", between, "0 for a single layer: it acts between layers")


def check_states(name: str, states: Any, count: int, shape: tuple[int, ...]) -> None:
    """Refuse what is no state of so many tensors of a shape.

    Raises:
        ShapeError: saying what fits.
    """
    each = states if isinstance(states, tuple) else (states,)  # who gives one tensor may err
    if len(each) == count and all(state.shape == shape for state in each):
        return
    raise ShapeError(
        name,
        "the state does not fit",
        got=", ".join(str(state.shape) for state in each),
        expected=", ".join([str(shape)] * count),
    )


def _run(
    layer: Any,
    x: Tensor[Float],
    states: Hidden | None,
    lengths: Tensor[Int] | None,
    walk: Walk,
    count: int,
) -> Found:
    """Run all layers over (…, length, size); ``count`` tensors make a state."""
    s, recurrences = layer.settings, layer.layers
    check_dtype(layer, x, recurrences[0].weight_input)
    name = type(layer).__name__
    if x.ndim < 2 or x.shape[-1] != s.d_input or not x.shape[-2]:
        expected = f"(…, length, {s.d_input}), length 1 or more"
        raise ShapeError(name, "no sequence of such rows", got=x.shape, expected=expected)
    lead, length = x.shape[:-2], x.shape[-2]
    n, shape = prod(lead), (len(recurrences), *lead, s.d_hidden)
    if states is None:
        zeros = full(shape, 0.0, dtype=x.dtype, device=x.device)
        states = (zeros,) * count
    check_states(name, states, count, shape)
    if lengths is not None:
        if lengths.shape != lead:
            raise ShapeError(name, "lengths do not fit", got=lengths.shape, expected=lead)
        lengths = lengths.reshape(n)
    y = x.reshape(n, length, s.d_input)
    directions, last = 2 if s.bidirectional else 1, []
    flat = [state.reshape(len(recurrences), n, s.d_hidden) for state in states]
    for i in range(0, len(recurrences), directions):
        parts = []
        for j in range(i, i + directions):
            start = tuple(state[j] for state in flat)
            found, end = walk(recurrences[j], y, start, lengths, s.reverse or j > i)
            parts.append(found)
            last.append(end)
        y = parts[0] if directions == 1 else concat(parts, axis=-1)
        if i + directions < len(recurrences):
            y = layer.dropout(y)
    ends = tuple(stack(each, axis=0).reshape(shape) for each in zip(*last, strict=True))
    return y.reshape(*lead, length, directions * s.d_hidden), ends


def _usual(settings: Any, *names: str) -> bool:
    """Whether settings are as by default, which is what the op does."""
    return all(getattr(settings, name) == getattr(type(settings), name) for name in names)


def rnn(
    activation: str,
    part: Recurrence,
    x: Tensor[Float],
    start: Hidden,
    lengths: Tensor[Int] | None,
    reverse: bool,
) -> Found:
    """One layer in one direction: a ``Walk`` of an activation."""
    weights, bias = part.weights(), part.bias()
    found, end = ops.rnn(x, *weights, bias, *start, lengths, activation, reverse)
    return found, (end,)


class RnnConfig(LayerConfig["Rnn"]):
    """Settings of ``Rnn``.

    Attributes:
        d_input: size of the last axis of the input.
        d_hidden: size of the state.
        n_layers: number of layers, each over the results of the one before.
        bias: whether there are two biases.
        bidirectional: whether each layer runs backward too; the results stand side by side.
        dropout: probability that a result between layers is dropped in training.
        activation: what makes the state; beside tanh and relu it is a loop over the steps.
        reverse: whether the layers run from the end of a sequence to its start.
        clip: the state is held between -clip and clip behind each step, in a loop over the steps.
    """

    d_input: int
    d_hidden: int
    n_layers: int = 1
    bias: bool = True
    _: KW_ONLY
    bidirectional: bool = False
    dropout: float = 0.0
    activation: Name = "tanh"
    reverse: bool = False
    clip: float | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        _validate(self)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weights of all layers."""
        return _recurrences(self, 1, device)


class Rnn(takes.Rnn, Layer[RnnConfig], init=False):
    """A state h that each element x of a sequence changes: ``h' = tanh(x·W + b + h·U + c)``.

    W, U, b and c are ``layers[i].weight_input``, ``weight_hidden``, ``bias_input`` and
    ``bias_hidden``. The batch comes first, as with PyTorch's ``batch_first=True``. Elman, "Finding
    structure in time", 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    layers: tuple[Recurrence, ...]
    dropout: Dropout

    @property
    def names_in_pytorch(self) -> dict[str, str]:
        """What PyTorch calls the weights, by their paths here."""
        return _names_in_pytorch(self)

    def forward(
        self,
        x: Tensor[Float],
        state: Tensor[Float] | None = None,
        *,
        lengths: Tensor[Int] | None = None,
    ) -> tuple[Tensor[Float], Tensor[Float]]:
        """Map (…, length, d_input) to the states of the last layer, and to the last state.

        Args:
            x: sequences.
            state: (layers · directions, …, d_hidden) before the first element; None for zeros.
            lengths: (…,), how many elements count, 0 to length; what follows gives 0 and changes
                no state.

        Raises:
            IndexOutOfRangeError: for lengths that are none.
            ShapeError: when something does not fit.
        """
        s = self.settings
        usual = s.clip is None and s.activation in _OF_OPS
        walk: Walk = partial(rnn, s.activation) if usual else partial(steps.rnn, s)
        y, (end,) = _run(self, x, None if state is None else (state,), lengths, walk, 1)
        return y, end


def gru(
    part: Recurrence, x: Tensor[Float], start: Hidden, lengths: Tensor[Int] | None, reverse: bool
) -> Found:
    """One layer in one direction: a ``Walk``."""
    found, end = ops.gru(x, *part.weights(), *part.biases(), *start, lengths, reverse)
    return found, (end,)


class GruConfig(LayerConfig["Gru"]):
    """Settings of ``Gru``.

    Attributes:
        d_input: size of the last axis of the input.
        d_hidden: size of the state.
        n_layers: number of layers, each over the results of the one before.
        bias: whether there are two biases.
        bidirectional: whether each layer runs backward too; the results stand side by side.
        dropout: probability that a result between layers is dropped in training.
        reverse: whether the layers run from the end of a sequence to its start.
        reset_after: whether the state is reset behind its product with the weights, as PyTorch has
            it; before it, as the paper has it, is a loop over the steps, as are the next three.
        gate_activation: of the gates.
        hidden_activation: of the new state.
        clip: the state is held between -clip and clip behind each step.
    """

    d_input: int
    d_hidden: int
    n_layers: int = 1
    bias: bool = True
    _: KW_ONLY
    bidirectional: bool = False
    dropout: float = 0.0
    reverse: bool = False
    reset_after: bool = True
    gate_activation: Name = "sigmoid"
    hidden_activation: Name = "tanh"
    clip: float | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        _validate(self)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weights of all layers."""
        return _recurrences(self, 3, device)


class Gru(takes.Gru, Layer[GruConfig], init=False):
    """A state h with two gates: ``h' = n + z·(h - n)``, which may stay as it is.

    ``r, z = sigmoid(a + k)`` and ``n = tanh(a + r·k)``, each by its own columns of
    ``a = x·W + b`` and ``k = h·U + c``: first those of r (reset), then z (update), then n (new).
    W (d_input, 3 · d_hidden), U (d_hidden, 3 · d_hidden), b and c (3 · d_hidden,) are
    ``layers[i].weight_input``, ``weight_hidden``, ``bias_input`` and ``bias_hidden``, those of
    PyTorch transposed. The batch comes first, as with its ``batch_first=True``. Cho et al.,
    "Learning phrase representations using RNN encoder-decoder", 2014,
    https://arxiv.org/abs/1406.1078; there the state is reset before its product with the weights,
    which is ``reset_after=False``.
    """

    layers: tuple[Recurrence, ...]
    dropout: Dropout

    @property
    def names_in_pytorch(self) -> dict[str, str]:
        """What PyTorch calls the weights, by their paths here."""
        return _names_in_pytorch(self)

    def forward(
        self,
        x: Tensor[Float],
        state: Tensor[Float] | None = None,
        *,
        lengths: Tensor[Int] | None = None,
    ) -> tuple[Tensor[Float], Tensor[Float]]:
        """Map (…, length, d_input) to the states of the last layer, and to the last state.

        Arguments and errors are those of ``Rnn``.
        """
        y, (end,) = _run(self, x, None if state is None else (state,), lengths, self._walk(), 1)
        return y, end

    def _walk(self) -> Walk:
        s = self.settings
        usual = _usual(s, "clip", "gate_activation", "hidden_activation", "reset_after")
        return gru if usual else partial(steps.gru, s)


def lstm(
    part: Recurrence, x: Tensor[Float], start: Hidden, lengths: Tensor[Int] | None, reverse: bool
) -> Found:
    """One layer in one direction: a ``Walk``."""
    found, *end = ops.lstm(x, *part.weights(), part.bias(), *start, lengths, reverse)
    return found, tuple(end)


class LstmConfig(LayerConfig["Lstm"]):
    """Settings of ``Lstm``.

    Attributes:
        d_input: size of the last axis of the input.
        d_hidden: size of the state.
        n_layers: number of layers, each over the results of the one before.
        bias: whether there are two biases.
        bidirectional: whether each layer runs backward too; the results stand side by side.
        dropout: probability that a result between layers is dropped in training.
        reverse: whether the layers run from the end of a sequence to its start.
        gate_activation: of the gates; this and the next are a loop over the steps.
        cell_activation: of what goes into the cell.
        hidden_activation: of the cell where it becomes the state.
        input_forget: whether as much is forgotten as is taken in: ``f = 1 - i``.
        clip: the cell is held between -clip and clip behind each step.
    """

    d_input: int
    d_hidden: int
    n_layers: int = 1
    bias: bool = True
    _: KW_ONLY
    bidirectional: bool = False
    dropout: float = 0.0
    reverse: bool = False
    gate_activation: Name = "sigmoid"
    cell_activation: Name = "tanh"
    hidden_activation: Name = "tanh"
    input_forget: bool = False
    clip: float | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        _validate(self)

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weights of all layers."""
        return _recurrences(self, 4, device)


class Lstm(takes.Lstm, Layer[LstmConfig], init=False):
    """A cell c that gates let forget, take in and show: ``c' = f·c + i·g``, ``h' = o·tanh(c')``.

    ``i, f, o = sigmoid(a)`` and ``g = tanh(a)``, each by its own columns of
    ``a = x·W + b + h·U + d``: first those of i (input), then f (forget), g (cell), o (output).
    W (d_input, 4 · d_hidden), U (d_hidden, 4 · d_hidden), b and d (4 · d_hidden,) are
    ``layers[i].weight_input``, ``weight_hidden``, ``bias_input`` and ``bias_hidden``, those of
    PyTorch transposed. The batch comes first, as with its ``batch_first=True``; the state is an
    ``LstmState``. Hochreiter and Schmidhuber, "Long short-term memory", 1997,
    https://doi.org/10.1162/neco.1997.9.8.1735; forgetting: Gers et al., 2000.
    """

    layers: tuple[Recurrence, ...]
    dropout: Dropout

    @property
    def names_in_pytorch(self) -> dict[str, str]:
        """What PyTorch calls the weights, by their paths here."""
        return _names_in_pytorch(self)

    def forward(
        self,
        x: Tensor[Float],
        state: LstmState | None = None,
        *,
        lengths: Tensor[Int] | None = None,
    ) -> tuple[Tensor[Float], LstmState]:
        """Map (…, length, d_input) to the states of the last layer, and to the last state.

        Arguments and errors are those of ``Rnn``.
        """
        y, ends = _run(self, x, state, lengths, self._walk(), 2)
        return y, LstmState(*ends)

    def _walk(self) -> Walk:
        s = self.settings
        words = ("clip", "cell_activation", "gate_activation", "hidden_activation", "input_forget")
        return lstm if _usual(s, *words) else partial(steps.lstm, s)
