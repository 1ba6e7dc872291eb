"""Texts that go on together: each joins and leaves between two steps."""

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

_CHUNK = 512  # tokens of a new text that are read between two steps of the others


@dataclass(eq=False)
class Row:
    """A text that goes on.

    Attributes:
        whole: its tokens at first.
        pieces: what was made of it and not taken yet.
        error: what ended it, if that was no token, text or count.
    """

    whole: list[int]
    sampling: Sampling
    numbers: np.ndarray[Any, Any]
    generation: Generation
    writing: Writing
    pieces: list[str] = field(default_factory=list)
    error: PhloxError | None = None
    read: int = 0
    steps: Generator[Any, None, None] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.writing.ended or self.error is not None

    @property
    def prompt_tokens(self) -> int:
        """How many tokens were there at first."""
        return len(self.whole)

    @property
    def tokens(self) -> list[int]:
        """The tokens that were made."""
        return self.writing.tokens

    @property
    def text(self) -> str:
        """What was made of them."""
        return self.writing.text

    @property
    def reason(self) -> Literal["length", "stop"] | None:
        """Why it ended."""
        return self.writing.reason

    @property
    def known(self) -> list[int]:
        """Tokens whose keys and values are there."""
        return (self.whole + self.tokens)[: self.generation.length]

    def take(self, token: int) -> None:
        """Go on by a token."""
        piece = self.writing.add(token)
        if not self.ended and len(self.tokens) == self.numbers.shape[1]:
            piece += self.writing.end()
        if piece:
            self.pieces.append(piece)


class Batch:
    """Rows, of which all that were read get a token each step; one of the others is read on.

    What rows have in common in front, such as what a model is told first, is read once: also what
    ended is kept, the latest, as long as all of it is no longer than one context.
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
        """Make a token for each row, and read some of one that is new; errors end rows."""
        going = [row for row in self._rows if row.read and not row.ended]
        new = next((row for row in self._rows if not row.read and not row.ended), None)
        if new is not None:
            self._tried([new], self._read)
        if going:
            alone = len(going) == 1 and new is None
            self._tried(going, self._alone if alone else self._together)

    def _tried(self, rows: list[Row], go_on: Callable[[list[Row]], None]) -> None:
        try:
            go_on(rows)
        except PhloxError as error:
            for row in rows:
                row.error = error

    def _read(self, rows: list[Row]) -> None:
        """Read a chunk of a text; its first token follows the last one."""
        (row,), generation = rows, rows[0].generation
        if not generation.length:
            length, cache = self._in_front(row)
            generation.cache, generation.length = cache, length
            generation.cut(length)
        at = generation.length
        logits = generation.read(self._model._rows([row.whole[at : at + _CHUNK]]))
        if generation.length == len(row.whole):
            row.read = generation.length
            row.take(int(self._chosen(row, logits).item()))

    def _in_front(self, row: Row) -> tuple[int, Any]:
        """The longest beginning whose keys and values are there; the last token is always read."""
        for other in self._rows:
            self._pause(other)
        rows = [(each.known, each.generation.cache) for each in self._rows if each.read]
        found: tuple[int, Any] = (0, None)
        for known, cache in (*rows, *self._kept):
            length = common(known, row.whole[:-1])
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
        """Go on as a text without others does, compiled if the model is."""
        (row,) = rows
        if row.steps is None:
            last, made = self._model._rows([row.tokens[-1:]]), len(row.tokens)
            before = self._model._rows([row.whole + row.tokens])
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
            so_far = self._model._rows([row.whole + row.tokens])
            seen = row.generation.seen(so_far, logits.shape[-1])
        numbers = asarray(row.numbers[:, at], device=logits.device)
        return sampling.chosen(logits, numbers, seen)

    def _pause(self, row: Row) -> None:
        """Give keys and values of steps that a row makes alone back to it."""
        if row.steps is not None:
            row.steps.close()
            row.steps = None
