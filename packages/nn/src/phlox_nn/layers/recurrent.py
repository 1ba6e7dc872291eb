"""Recurrent layers: RNN, GRU, LSTM, over sequences (…, length, size)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from itertools import cycle
from math import prod
from typing import Any, ClassVar, Final, NamedTuple

from phlox_tensor import Backend, Float, Int, ShapeError, Tensor, concat, full, ops, stack

from .. import _signatures as takes
from .. import initializers as init
from ..module.layer import C, L, Layer, LayerConfig
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


def recurrence(d_input: int, settings: Any, device: Backend | str | None) -> Recurrence:
    """Return the weights of a layer in one direction, or of a cell, for inputs of a size."""
    size, wide = settings.d_hidden, settings._gates * settings.d_hidden
    first = init.Uniform(-(size**-0.5), size**-0.5)
    biases = [first.param((wide,), device) if settings.bias else None for _ in range(2)]
    weights = [first.param((n, wide), device) for n in (d_input, size)]
    return Recurrence(*weights, *biases)


class _RecurrentSettings(LayerConfig[L]):
    """What the configs of the three have in common.

    Attributes:
        d_input: size of the last axis of the input.
        d_hidden: size of the state.
        n_layers: number of layers, each over the results of the one before.
        bias: whether there are two biases.
        bidirectional: whether each layer runs backward too; the results stand side by side.
        dropout: probability that a result between layers is dropped in training.
        reverse: whether the layers run from the end of a sequence to its start.
        clip: the state, of an LSTM the cell, is held between -clip and clip behind each step, in a
            loop over the steps.
    """

    _gates: ClassVar[int]

    d_input: int
    d_hidden: int
    n_layers: int = 1
    bias: bool = True
    _: KW_ONLY
    bidirectional: bool = False
    dropout: float = 0.0
    reverse: bool = False
    clip: float | None = None

    def validate(self) -> None:
        """Raise ConfigError for a setting that makes no sense."""
        self.require("n_layers", self.n_layers > 0, "at least 1")
        self.require("d_hidden", self.d_hidden > 0, "at least 1")
        self.require("dropout", 0.0 <= self.dropout < 1.0, "a probability: 0 <= dropout < 1")
        one_way = not (self.reverse and self.bidirectional)
        self.require("reverse", one_way, "False where both directions run")
        bound = self.clip is None or self.clip > 0
        self.require("clip", bound, "a bound of the states: clip > 0, or None")
        between = not self.dropout or self.n_layers > 1
        self.require("dropout", between, "0 for a single layer: it acts between layers")

    def parts(self, device: Backend | str | None) -> dict[str, Any]:
        """Return the weights of all layers, both directions of one after the other, and dropout."""
        directions, made = 1 + self.bidirectional, []
        for layer in range(self.n_layers * directions):
            d_input = self.d_input if layer < directions else directions * self.d_hidden
            made.append(recurrence(d_input, self, device))
        return {"layers": tuple(made), "dropout": Dropout(self.dropout, device=device)}


class _Recurrent(Layer[C]):
    layers: tuple[Recurrence, ...]
    dropout: Dropout

    @property
    def names_in_pytorch(self) -> dict[str, str]:
        """What PyTorch calls the weights of each layer and direction, by our paths."""
        settings: Any = self.settings
        directions = ("", "_reverse") if settings.bidirectional else ("",)
        return {
            f"layers.{i}.{kind}_{ours}": f"{kind}_{theirs}_l{i // len(directions)}{way}"
            for i, way in zip(range(len(self.layers)), cycle(directions), strict=False)
            for kind in ("weight", "bias")
            for ours, theirs in (("input", "ih"), ("hidden", "hh"))
        }


def check_states(name: str, states: Any, count: int, shape: tuple[int, ...]) -> None:
    """Refuse what is no state of so many tensors of a shape."""
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


class _OneState(_Recurrent[C]):
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
        y, (end,) = _run(self, x, None if state is None else (state,), lengths, self._walk(), 1)
        return y, end

    @abstractmethod
    def _walk(self) -> Walk: ...


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


class RnnConfig(_RecurrentSettings["Rnn"]):
    """Settings of ``Rnn``.

    Attributes:
        activation: what makes the state; beside tanh and relu it is a loop over the steps.
    """

    _: KW_ONLY
    activation: Name = "tanh"

    _gates = 1


class Rnn(takes.Rnn, _OneState[RnnConfig], init=False):
    """A state h that each element x of a sequence changes: ``h' = tanh(x·W + b + h·U + c)``.

    W, U, b and c are ``layers[i].weight_input``, ``weight_hidden``, ``bias_input`` and
    ``bias_hidden``. The batch comes first, as with PyTorch's ``batch_first=True``. Elman, "Finding
    structure in time", 1990, https://doi.org/10.1207/s15516709cog1402_1
    """

    def _walk(self) -> Walk:
        s = self.settings
        usual = s.clip is None and s.activation in _OF_OPS
        return partial(rnn, s.activation) if usual else partial(steps.rnn, s)


def gru(
    part: Recurrence, x: Tensor[Float], start: Hidden, lengths: Tensor[Int] | None, reverse: bool
) -> Found:
    """One layer in one direction: a ``Walk``."""
    found, end = ops.gru(x, *part.weights(), *part.biases(), *start, lengths, reverse)
    return found, (end,)


class GruConfig(_RecurrentSettings["Gru"]):
    """Settings of ``Gru``.

    Attributes:
        reset_after: whether the state is reset behind its product with the weights, as PyTorch has
            it; before it, as the paper has it, is a loop over the steps, as are the next three.
        gate_activation: of the gates.
        hidden_activation: of the new state.
    """

    _: KW_ONLY
    reset_after: bool = True
    gate_activation: Name = "sigmoid"
    hidden_activation: Name = "tanh"

    _gates = 3


class Gru(takes.Gru, _OneState[GruConfig], init=False):
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


class LstmConfig(_RecurrentSettings["Lstm"]):
    """Settings of ``Lstm``.

    Attributes:
        gate_activation: of the gates; this and the next are a loop over the steps.
        cell_activation: of what goes into the cell.
        hidden_activation: of the cell where it becomes the state.
        input_forget: whether as much is forgotten as is taken in: ``f = 1 - i``.
    """

    _: KW_ONLY
    gate_activation: Name = "sigmoid"
    cell_activation: Name = "tanh"
    hidden_activation: Name = "tanh"
    input_forget: bool = False

    _gates = 4


class Lstm(takes.Lstm, _Recurrent[LstmConfig], init=False):
    """A cell c that gates let forget, take in and show: ``c' = f·c + i·g``, ``h' = o·tanh(c')``.

    ``i, f, o = sigmoid(a)`` and ``g = tanh(a)``, each by its own columns of
    ``a = x·W + b + h·U + d``: first those of i (input), then f (forget), g (cell), o (output).
    W (d_input, 4 · d_hidden), U (d_hidden, 4 · d_hidden), b and d (4 · d_hidden,) are
    ``layers[i].weight_input``, ``weight_hidden``, ``bias_input`` and ``bias_hidden``, those of
    PyTorch transposed. The batch comes first, as with its ``batch_first=True``; the state is an
    ``LstmState``. Hochreiter and Schmidhuber, "Long short-term memory", 1997,
    https://doi.org/10.1162/neco.1997.9.8.1735; forgetting: Gers et al., 2000.
    """

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
