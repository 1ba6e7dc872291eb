"""What was read last, so that a text that begins in the same way is read from there on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Unpack

from phlox_nn.generation.steps import Generation

from ._answer import Answer
from ._settings import Rules
from ._tokenizer import Tokenizer


class Answers(Protocol):
    """What is asked of a language model."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What turns text into tokens."""
        ...

    def start(self) -> Generation:
        """Return a text of which nothing was read."""
        ...

    def answer(
        self,
        generation: Generation,
        whole: list[int],
        new: list[int],
        at_end: Callable[[Answer], object] | None = None,
        **rules: Unpack[Rules],
    ) -> Answer:
        """Return what follows tokens, of which the last ones are new to a generation."""
        ...


class Reader:
    """Keys and values of one text, kept from answer to answer.

    Attributes:
        read: tokens whose keys and values are there.
    """

    def __init__(self, model: Answers) -> None:
        """Start with nothing read."""
        self._model = model
        self._generation = model.start()
        self._asked: list[int] = []
        self.read: list[int] = []

    def answer(
        self,
        whole: list[int],
        at_end: Callable[[Answer], object] | None = None,
        **rules: Unpack[Rules],
    ) -> Answer:
        """Return what follows tokens; only those behind what is known already are read.

        The answer before has to be at its end.
        """
        same = common(self.read, whole[:-1])
        alike = self._generation.alike(len(self.read), len(whole))
        known = self._generation.cut(same if alike else 0)
        self.read = self.read[:known]
        self._asked = whole

        def ended(answer: Answer) -> None:
            self.read = (self._asked + answer.tokens)[: self._generation.length]
            if at_end is not None:
                at_end(answer)

        return self._model.answer(self._generation, whole, whole[known:], ended, **rules)


def common(known: list[int], asked: list[int]) -> int:
    """Return how many tokens two texts begin with in common."""
    for place, (left, right) in enumerate(zip(known, asked, strict=False)):
        if left != right:
            return place
    return min(len(known), len(asked))
