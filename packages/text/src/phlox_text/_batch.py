"""Continuous batching: texts generated together, each joining or leaving between two steps."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np

from phlox_nn.generation.sampling import Sampling, numbers_of
from phlox_nn.generation.steps import Generation
from phlox_tensor import PhloxError, asarray, concat

from ._answer import Writing
from ._language_model import LanguageModel
from ._reader import common
from ._settings import Rules

_CHUNK = 512  # tokens of a prompt that are prefilled between two steps of the others


@dataclass(eq=False)
class Row:
    """A text that is being generated.

    Attributes:
        whole: the tokens of its prompt.
        numbers: what is drawn for sampling, a column for each token to come.
        pieces: generated text that has not been passed on yet.
        error: what ended it, unless a stop token, a stop text or the length limit did.
        prefilled: whether the model has read all tokens but the latest, which it generated.
        steps: where it is generated alone, the generator of its tokens.
    """

    whole: list[int]
    sampling: Sampling
    numbers: np.ndarray[Any, Any]
    generation: Generation
    writing: Writing
    pieces: list[str] = field(default_factory=list)
    error: PhloxError | None = None
    prefilled: bool = False
    steps: Generator[Any, None, None] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.writing.ended or self.error is not None

    @property
    def prompt_tokens(self) -> int:
        """How many tokens the prompt has."""
        return len(self.whole)

    @property
    def tokens(self) -> list[int]:
        """The tokens generated so far."""
        return self.writing.tokens

    @property
    def text(self) -> str:
        """The text of these tokens."""
        return self.writing.text

    @property
    def reason(self) -> Literal["length", "stop"] | None:
        """Why it ended."""
        return self.writing.reason

    @property
    def known(self) -> list[int]:
        """The tokens whose keys and values are in the cache."""
        return self.so_far[: self.generation.length]

    @property
    def so_far(self) -> list[int]:
        """The tokens of its prompt, and those generated."""
        return self.whole + self.tokens

    def take(self, token: int) -> None:
        """Append a generated token."""
        piece = self.writing.add(token)
        if not self.ended and len(self.tokens) == self.numbers.shape[1]:
            piece += self.writing.end()
        if piece:
            self.pieces.append(piece)


class Batch:
    """Rows: a step generates a token for each prefilled one, and prefills a chunk of one other.

    A prefix that rows share, such as a system prompt, is prefilled once. Rows that left stay in
    this prefix cache, the latest first, up to as many tokens as the context of the model.
    """

    def __init__(self, model: LanguageModel) -> None:
        """Start without rows."""
        self._model = model
        self._rows: list[Row] = []
        self._kept: list[tuple[list[int], Any]] = []

    def add(self, whole: list[int], **rules: Unpack[Rules]) -> Row:
        """Let a text join.

        Raises:
            TextError: for a text that the context has no room for, or of tokens of another model.
        """
        self._model._rows([whole])
        writing, count, sampling = self._model._begun(len(whole), rules)
        numbers = numbers_of(rules.get("seed"), 1, count, sampling)
        row = Row(whole, sampling, numbers, self._model.start(), writing)
        self._rows.append(row)
        return row

    def drop(self, row: Row) -> None:
        """Let a row leave, ended or not."""
        if row in self._rows:
            self._rows.remove(row)
            self._pause(row)
            if row.error is None and row.generation.length:
                self._keep(row.known, row.generation.cache)

    def step(self) -> None:
        """Generate a token for each prefilled row, prefill a chunk of another; errors end rows."""
        for row in self._rows:
            length = row.generation.length
            if row.prefilled and not row.generation.alike(length, length + 1):
                self._pause(row)  # past the turn of the model: all its keys change
                row.generation.cut(0)
                row.prefilled = False
        going = [row for row in self._rows if row.prefilled and not row.ended]
        new = next((row for row in self._rows if not row.prefilled and not row.ended), None)
        if new is not None:
            self._tried([new], self._prefill)
        if going:
            alone = len(going) == 1 and new is None
            self._tried(going, self._alone if alone else self._together)

    def _tried(self, rows: list[Row], go_on: Callable[[list[Row]], None]) -> None:
        try:
            go_on(rows)
        except PhloxError as error:
            for row in rows:
                row.error = error

    def _prefill(self, rows: list[Row]) -> None:
        """Read a chunk of a prompt; the last chunk gives the first token."""
        (row,), generation, whole = rows, rows[0].generation, rows[0].so_far
        if not generation.length:
            length, cache = self._cached_prefix(row)
            generation.cache, generation.length = cache, length
            generation.cut(length)
        at, end = generation.length, generation.part(len(whole), _CHUNK)
        logits = generation.read(self._model._rows([whole[at:end]]))
        if generation.length == len(whole):
            row.prefilled = True
            row.take(int(self._chosen(row, logits).item()))

    def _cached_prefix(self, row: Row) -> tuple[int, Any]:
        """The length and cache of the longest known prefix, without the last token of the prompt.

        That one is always read, as the first new token comes of its logits.
        """
        for other in self._rows:
            self._pause(other)
        rows = [(each.known, each.generation.cache) for each in self._rows if each.prefilled]
        found: tuple[int, Any] = (0, None)
        for known, cache in (*rows, *self._kept):
            alike = row.generation.alike(len(known), len(row.so_far))
            length = common(known, row.so_far[:-1]) if alike else 0
            found = (length, cache) if length > found[0] else found
        return found

    def _keep(self, known: list[int], cache: Any) -> None:
        room, kept = self._model.model.context, [(known, cache)]
        for tokens, other in self._kept:
            inside = common(tokens, known) == len(tokens)
            if not inside and sum(len(each) for each, _ in kept) + len(tokens) <= room:
                kept.append((tokens, other))
        self._kept = kept

    def _alone(self, rows: list[Row]) -> None:
        """Generate as without a batch, compiled if the model is."""
        (row,) = rows
        if row.steps is None:
            last, made = self._model._rows([row.tokens[-1:]]), len(row.tokens)
            before = self._model._rows([row.so_far])
            row.steps = row.generation.tokens(
                last,
                row.sampling,
                row.numbers[:, made:],
                before=before,
                compiled=self._model._compiled(),
            )
        row.take(int(next(row.steps).item()))

    def _together(self, rows: list[Row]) -> None:
        for row in rows:
            self._pause(row)
        tokens = self._model._rows([row.tokens[-1:] for row in rows])
        caches = [row.generation.cache for row in rows]
        logits, kept = self._model._by_step.extend_each(tokens, caches)
        chosen = [self._chosen(row, logits[i : i + 1, -1]) for i, row in enumerate(rows)]
        for row, cache, token in zip(rows, kept, concat(chosen, axis=0).tolist(), strict=True):
            row.generation.take(cache, row.generation.length + 1)
            row.take(token)

    def _chosen(self, row: Row, logits: Any) -> Any:
        sampling, at, seen = row.sampling, len(row.tokens), None
        if sampling.looks_back:
            so_far = self._model._rows([row.so_far])
            seen = row.generation.seen(so_far, logits.shape[-1])
        numbers = asarray(row.numbers[:, at], device=logits.device)
        return sampling.chosen(logits, numbers, seen)

    def _pause(self, row: Row) -> None:
        """End the generator of a row that ran alone, which hands its keys and values back."""
        if row.steps is not None:
            row.steps.close()
            row.steps = None
