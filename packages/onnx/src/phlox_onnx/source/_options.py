"""What a caller asks of the source, looked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

from phlox_tensor import ArgumentError

from .._errors import refuse_other_words
from .._graph import Graph, Value
from ..read._limits import Limits
from ..run._quantized import Quantized

Sizes = Mapping[str, int]
Precision = Literal["keep", "full", "half"]


@final
@dataclass(frozen=True)
class Options:
    """The options of ``write``, as callers give them; None becomes what it stands for.

    Raises:
        ArgumentError: for one that is of another type, or none of its words.
    """

    bind: Any = None
    free: Any = None
    freeze: Any = ()
    flat: bool = False
    quantized: Quantized = "fake"
    precision: Precision = "keep"
    limits: Any = None

    def __post_init__(self) -> None:
        """Look at each of them."""
        freeze = [self.freeze] if isinstance(self.freeze, str) else self.freeze
        found = {"bind": self.bind, "free": self.free, "limits": self.limits}
        usual = {"bind": {}, "free": {}, "limits": Limits()}
        for word, value in (*found.items(), ("freeze", freeze)):
            object.__setattr__(self, word, usual[word] if value is None else value)
        refuse_other_words("write", "quantized", self.quantized, get_args(Quantized))
        refuse_other_words("write", "precision", self.precision, get_args(Precision))
        refuse_other_words("write", "flat", self.flat, (False, True))
        _refuse_pairs("bind", self.bind, {"batch": 8}, _is_size)
        _refuse_pairs("free", self.free, {"x:0": "batch"}, _is_word)
        if not (isinstance(freeze, Sequence) and all(map(_is_word, freeze))):
            got, hint = repr(self.freeze), 'freeze=["layer.0"]'
            raise ArgumentError("write", "freeze is no path", got=got, hint=hint)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _refuse_pairs(word: str, given: object, example: dict[str, Any], fits: Any) -> None:
    wrong: list[str] = []
    if not isinstance(given, Mapping):
        wrong = [type(given).__name__]
    else:
        wrong = [f"{k!r}: {v!r}" for k, v in given.items() if not (_is_word(k) and fits(v))]
    if wrong:
        hint = f"{word}={example}"
        raise ArgumentError("write", f"{word} does not name sizes", got=wrong[0], hint=hint)


def freed_sizes(graph: Graph, free: Mapping[str, str]) -> dict[str, int]:
    """Give sizes that are numbers in the file a name, and return the numbers."""
    out: dict[str, int] = {}
    for place, word in free.items():
        name, _, axis = place.rpartition(":")
        value = next((v for v in graph.inputs if v.name == name), None)
        rank = len(value.shape) if value is not None and value.shape is not None else 0
        if value is None or value.shape is None or not axis.isdigit() or int(axis) >= rank:
            known = [v.name for v in graph.inputs if v.shape]
            hint = f"free={{'{known[0]}:0': 'batch'}}" if known else None
            got, expected = repr(place), "INPUT:AXIS of " + (", ".join(known) or "no input")
            raise ArgumentError("write", "no such size", got=got, expected=expected, hint=hint)
        shape = list(value.shape)
        before, shape[int(axis)] = shape[int(axis)], word
        value.shape = tuple(shape)
        if isinstance(before, int) and before > 0:
            out[word] = before
    return out


def names_of(value: Value) -> list[str]:
    """What the sizes of an input are called."""
    return [
        n if isinstance(n, str) else f"{value.name}:{i}" for i, n in enumerate(value.shape or ())
    ]


def refuse_unknown(graph: Graph, bind: Sizes) -> None:
    """Every size that is bound has to be one of the file, and no other number there."""
    known = {k: n for v in graph.inputs for k, n in zip(names_of(v), v.shape or (), strict=True)}
    for name, size in bind.items():
        if name not in known:
            expected = ", ".join(known) or "no size: inputs have none"
            raise ArgumentError("write", "no such size", got=repr(name), expected=expected)
        there = known[name]
        if isinstance(there, int) and there > 0 and there != size:
            what = "a size is another number in the file"
            hint = f"free={{{name!r}: 'size'}}, bind={{'size': {size}}}"
            got = f"{name!r}: {size}"
            raise ArgumentError("write", what, got=got, expected=there, hint=hint)
