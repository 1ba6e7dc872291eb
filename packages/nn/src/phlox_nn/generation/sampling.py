"""Which token follows: rules for logits, and a draw from what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from numbers import Integral, Real
from operator import index
from typing import Any

import numpy as np

from phlox_tensor import (
    ArgumentError,
    Bool,
    Float,
    Int,
    Tensor,
    arange,
    logical_or,
    random,
    topk,
    where,
)

_WORDS = 2**64  # the seeds that a generator by counters takes
_COLDEST = 1e-30  # what logits of hundreds are divided by and stay finite numbers of float32
_STEPS = 2**23  # shares of a float32, of which one less than all is still below 1


@dataclass(frozen=True)
class Sampling:
    """Rules by which a token is chosen from logits; applied in the order of the attributes.

    Attributes:
        repetition_penalty: logits of tokens that are there already are divided by it where they
            are positive, and multiplied where not. Keskar et al., 2019.
        temperature: what logits are divided by; 0 for the likeliest token each time.
        top_k: how many tokens there are to choose from; None for all.
        top_p: the likeliest tokens that have this share together are chosen from; None for all.
            Holtzman et al., 2020.
        min_p: tokens of less than this part of the share of the likeliest are not chosen; None
            for all. Nguyen et al., 2024.
    """

    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        """Refuse rules that leave no choice.

        Raises:
            ArgumentError: naming the rule.
        """
        temperature, top_k = self.temperature, self.top_k
        self._check_numbers()
        if not 0.0 <= temperature < inf or (top_k is not None and top_k < 1):
            got = f"temperature {temperature}, top_k {top_k}"
            raise ArgumentError("generate", "no choice", got=got, expected="0 or more; 1 or more")
        for name in ("top_p", "min_p"):
            share = getattr(self, name)
            if share is not None and not 0.0 < share <= 1.0:
                raise ArgumentError(
                    "generate",
                    f"{name} is no share",
                    got=share,
                    expected=f"0 < {name} <= 1",
                    hint="temperature=0 for the likeliest token each time",
                )
        if not 0.0 < self.repetition_penalty < inf:
            raise ArgumentError(
                "generate",
                "repetition_penalty is no factor",
                got=self.repetition_penalty,
                expected="> 0",
                hint="repetition_penalty=1.1",
            )

    def _check_numbers(self) -> None:
        """Refuse what is no number, such as a text out of a file of settings."""
        for name, rule in vars(self).items():
            whole = name == "top_k"
            if rule is not None and not isinstance(rule, Integral if whole else Real):
                raise ArgumentError(
                    "generate",
                    f"{name} is no number",
                    got=repr(rule),
                    expected="a whole number" if whole else "a number",
                    hint=f"{name}=40" if whole else f"{name}=0.9",
                )

    @property
    def looks_back(self) -> bool:
        """Whether it matters which tokens are there already."""
        return self.repetition_penalty != 1.0

    def scores(self, logits: Tensor[Float], seen: Tensor[Bool] | None) -> Tensor[Float]:
        """Return logits (N, words) after all rules, -inf for what is not chosen."""
        if self.looks_back and seen is not None:
            factor = self.repetition_penalty
            logits = where(seen, where(logits < 0, logits * factor, logits / factor), logits)
        if self.temperature:
            logits = logits / max(self.temperature, _COLDEST)
        words = logits.shape[-1]
        least: Any = None
        if self.top_k is not None or (self.top_p is not None and self.top_p < 1.0):
            falling = topk(logits, min(self.top_k or words, words), axis=-1)[0]
            least = falling[:, -1:]
            if self.top_p is not None:
                shares = falling.softmax(axis=-1)
                before = shares.cumulative_sum(axis=-1) - shares
                # The likeliest always counts, since nothing is before it.
                least = where(before < self.top_p, falling, inf).min(axis=-1, keepdims=True)
        if self.min_p is not None:
            by_share = logits.max(axis=-1, keepdims=True) + log(self.min_p)
            least = by_share if least is None else where(by_share > least, by_share, least)
        return logits if least is None else where(logits < least, -inf, logits)

    def chosen(
        self, logits: Tensor[Float], numbers: Tensor[Float], seen: Tensor[Bool] | None = None
    ) -> Tensor[Int]:
        """Return a token (N,) for each row of logits, drawn by a number (N,) in [0, 1) each."""
        full = logits if logits.dtype.itemsize > 4 else logits.astype("float32")
        if not self.temperature:
            only = Sampling(self.repetition_penalty)
            return (only.scores(full, seen) if self.looks_back else full).argmax(axis=-1)
        shares = self.scores(full, seen).softmax(axis=-1)
        # Devices add up by blocks, so that sums past the last share may differ in the last bit.
        sums = where(shares > 0, shares.cumulative_sum(axis=-1), -1.0)
        bound = numbers.astype(full.dtype)[:, None] * sums.max(axis=-1, keepdims=True)
        return (sums > bound).astype("float32").argmax(axis=-1)


def with_tokens(seen: Tensor[Bool], tokens: Tensor[Int]) -> Tensor[Bool]:
    """Return (N, words), True too for each row's token (N,)."""
    return logical_or(seen, arange(seen.shape[-1], device=seen.device) == tokens[:, None])


Seed = int | Sequence[int] | None


def numbers_of(
    seed: Seed, rows: int, count: int, sampling: Sampling | None = None
) -> np.ndarray[Any, Any]:
    """Return numbers (rows, count) in [0, 1).

    Each is a function of seed, request and position. The requests of one seed are the rows; a seed
    for each row gives it what it gets alone. None takes a seed from the random stream in use.
    A sampling that draws nothing gets zeros, for which NumPy's generators are not loaded.

    Raises:
        ArgumentError: when there is not a seed for each row.
    """
    greedy = sampling is not None and not sampling.temperature
    if seed is None:
        drawn = random.generator().draw(1)
        seed = 0 if greedy else int(np.random.SeedSequence(drawn).generate_state(1, np.uint64)[0])
    if isinstance(seed, Sequence):
        keys = [(index(each), 0) for each in seed]
    else:
        keys = [(index(seed), row) for row in range(rows)]
    if len(keys) != rows:
        raise ArgumentError(
            "generate",
            "not a seed for each text",
            got=f"{len(keys)} for {rows}",
            expected="one, or as many as texts",
            hint="seed=0",
        )
    made = np.zeros((rows, count), np.float32)
    if greedy:
        return made
    for row, (key, request) in zip(made, keys, strict=True):
        bits = np.random.Philox(key=np.array([key % _WORDS, request], np.uint64))
        row[:] = (bits.random_raw(count) >> np.uint64(41)).astype(np.float32) / _STEPS
    return made
