"""Text as it is made: pieces, what ends it, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from time import perf_counter
from typing import Literal

from phlox_tensor import Int, Tensor

from ._tokenizer import TokenStream


class Writing:
    """The text of one answer: tokens go in, pieces of text come out.

    Attributes:
        tokens: those that came, the one that ended the text included.
        text: what was given.
        reason: "stop" after a token or a text that ends; "length" where there may be no more.
    """

    def __init__(self, stream: TokenStream, ends: Sequence[int], stops: Sequence[str]) -> None:
        """Start with no text."""
        self.tokens: list[int] = []
        self.text = ""
        self.reason: Literal["length", "stop"] | None = None
        self._stream = stream
        self._ends = frozenset(ends)
        self._stops = [stop for stop in stops if stop]
        self._held = ""  # may be the beginning of a text that stops

    def add(self, token: int) -> str:
        """Return the text that is certain after a token."""
        self.tokens.append(token)
        if token in self._ends:
            self.reason = "stop"
            return self._give(self._held + self._stream.rest())
        return self._through(self._stream.add(token))

    @property
    def ended(self) -> bool:
        """Whether no token may follow."""
        return self.reason is not None

    def end(self) -> str:
        """Return what was held back, since no token follows."""
        if self.reason is not None:
            return ""
        piece = self._through(self._stream.rest())
        if not self.ended:
            self.reason = "length"
        return piece + self._give(self._held)

    def _through(self, piece: str) -> str:
        text = self._held + piece
        found = [at for at in (text.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self.reason, self._held = "stop", ""
            return self._give(text[: min(found)])
        most = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - most :]
        return self._give(text[: len(text) - most])

    def _give(self, piece: str) -> str:
        if self.reason is not None:
            self._held = ""
        self.text += piece
        return piece


class Answer(Iterator[str]):
    """An answer, piece by piece: ``for piece in answer: print(piece, end="")``.

    Attributes:
        prompt_tokens: how many tokens were read before it, those known from before included.
        seconds: how long it took, from the start to the last token.
        first: how long the first token took.
    """

    def __init__(
        self,
        writing: Writing,
        tokens: Generator[Tensor[Int], None, None],
        prompt_tokens: int,
        at_end: Callable[[Answer], object] | None = None,
    ) -> None:
        """Begin; no token is made before it is asked for."""
        self._writing = writing
        self._tokens = tokens
        self._at_end = at_end
        self._began: float | None = None
        self.prompt_tokens = prompt_tokens
        self.seconds = 0.0
        self.first = 0.0

    def __next__(self) -> str:
        """Return the next piece, which is never empty."""
        while self._writing.reason is None:
            piece = self._step()
            if piece:
                return piece
        self.close()
        raise StopIteration

    def _step(self) -> str:
        began = self._began = perf_counter() if self._began is None else self._began
        token = next(self._tokens, None)
        found = None if token is None else int(token.item())
        self.seconds = perf_counter() - began
        if not self._writing.tokens:
            self.first = self.seconds
        return self._writing.end() if found is None else self._writing.add(found)

    def close(self) -> None:
        """End the answer here."""
        self._tokens.close()
        self._writing.end()
        at_end, self._at_end = self._at_end, None
        if at_end is not None:
            at_end(self)

    @property
    def text(self) -> str:
        """What was given so far."""
        return self._writing.text

    @property
    def tokens(self) -> list[int]:
        """The tokens so far, the one that ended the text included."""
        return self._writing.tokens

    @property
    def reason(self) -> Literal["length", "stop"] | None:
        """Why it ended: "stop" or "length"; None while it goes on."""
        return self._writing.reason

    @property
    def rate(self) -> float:
        """Tokens a second behind the first; 0 for fewer than two."""
        more, seconds = len(self.tokens) - 1, self.seconds - self.first
        return more / seconds if more > 0 and seconds > 0 else 0.0


def _overlap(text: str, stop: str) -> int:
    """How many characters in the end of a text may begin another one."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
