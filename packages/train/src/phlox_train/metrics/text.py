"""How texts differ: edits, n-grams and common sequences of words, characters or tokens."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phlox_tensor import Tensor

from .metric import State
from .row import Parts, Row, divided

Tokens: TypeAlias = Sequence[Any]
# What sacrebleu calls 13a: entities, then spaces around punctuation that is in no number.
_ENTITIES: Final = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&"} | {
    "&lt;": "<",
    "&gt;": ">",
}
_13A: Final = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_PUNCTUATION: Final = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class Text(Row, takes=("predictions", "targets")):
    """Base of rows over texts: lists of strings, or tokens (texts, length) as integers.

    A target is a string, or a list of strings of which each one is right.

    Attributes:
        ignore_index: a token that is left out, such as padding.
    """

    _: KW_ONLY
    ignore_index: int | None = None

    texts: ClassVar[bool] = True
    several: ClassVar[bool] = True  # whether there may be several right texts

    def part(self, predictions: Any, targets: Any) -> Parts:
        """Return tokens, or for strings what is counted of them."""
        if isinstance(predictions, Tensor) and isinstance(targets, Tensor):
            return {"predictions": predictions, "targets": targets}
        return self._counts(
            [
                (self._split(each), [self._split(one) for one in right])
                for each, right in self._pairs(predictions, targets)
            ]
        )

    def tally(self, part: State) -> Mapping[str, Any]:
        """Return what is counted."""
        if "predictions" not in part:
            return part
        said, right = part["predictions"], part["targets"]
        if said.ndim != 2 or right.ndim != 2 or len(said) != len(right):
            got = f"{said.shape}, {right.shape}"
            self.fail("tokens are not (texts, length)", got, "as many predictions as targets")
        kept = [[row[row != self.ignore_index].tolist() for row in rows] for rows in (said, right)]
        return self._counts([(each, [one]) for each, one in zip(*kept, strict=True)])

    def _pairs(self, predictions: Any, targets: Any) -> Iterable[tuple[str, list[str]]]:
        """Texts, each with those that are right."""
        hint = f'train.{type(self).__name__}()(["a cat"], ["the cat"])'
        for name, given in (("predictions", predictions), ("targets", targets)):
            if isinstance(given, str) or not isinstance(given, Sequence):
                got = type(given).__name__
                self.fail(f"{name} are no list of texts", got, "a list of strings", hint)
        if len(predictions) != len(targets):
            got = f"{len(predictions)} predictions, {len(targets)} targets"
            self.fail("texts do not pair", got, "as many of both", hint)
        for text, target in zip(predictions, targets, strict=True):
            right = [target] if isinstance(target, str) else list(target)
            if not all(isinstance(each, str) for each in (text, *right)) or not right:
                self.fail("not texts", repr((text, target)), "strings", hint)
            if len(right) > 1 and not self.several:
                self.fail("several targets for one text", len(right), 1)
            yield text, right

    @abstractmethod
    def _split(self, text: str) -> Tokens:
        """Return the tokens of a text."""

    @abstractmethod
    def _counts(self, pairs: list[tuple[Tokens, list[Tokens]]]) -> Mapping[str, Any]:
        """Return what is counted of tokens and the right ones."""


class Edits(Text, better="lower"):
    """Base of rows over edits: tokens put in, taken out or replaced, as few as possible.

    Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966,
    https://nymity.ch/sybilhunting/pdf/Levenshtein1966a.pdf
    """

    several: ClassVar[bool] = False

    def _counts(self, pairs: list[tuple[Tokens, list[Tokens]]]) -> Mapping[str, Any]:
        edits = sum(_distance(said, right) for said, [right] in pairs)
        tokens = sum(len(right) for _, [right] in pairs)
        return {"edits": edits, "tokens": tokens, "texts": len(pairs)}

    def value(self, state: State) -> float:
        """Return edits for each token of the targets; NaN without any."""
        return float(divided(state["edits"], state[self._per], np.nan))

    _per: ClassVar[str] = "tokens"


class CER(Edits):
    """Edits of characters for each one of the targets, over all texts; above 1 is possible.

    Example:
        >>> CER()(["a bat"], ["a cat"])
        0.2
    """

    def _split(self, text: str) -> Tokens:
        return text.strip()


class WER(Edits):
    """Edits of words for each one of the targets, over all texts; words end at spaces.

    Example:
        >>> WER()(["a bat sat"], ["a cat sat down"])
        0.5
    """

    def _split(self, text: str) -> Tokens:
        return text.split()


class EditDistance(Edits):
    """The mean number of edits of characters, or tokens, from a prediction to its target.

    Example:
        >>> EditDistance()(["a bat", "cats"], ["a cat", "dog"])
        2.5
    """

    _per: ClassVar[str] = "texts"

    def _split(self, text: str) -> Tokens:
        return text


class BLEU(Text, better="higher"):
    """The geometric mean of the shares of n-grams that the targets have, times a brevity penalty.

    ``exp(min(0, 1 - length of targets / length of predictions))`` of all texts is the penalty; of
    several targets the length is the nearest one. From 0 to 1: sacrebleu prints 100 times as much.
    Papineni et al., 2002, https://aclanthology.org/P02-1040; tokens and smoothing are those of
    Post, "A call for clarity in reporting BLEU scores", 2018, https://aclanthology.org/W18-6319

    Attributes:
        max_n: the longest n-grams.
        smoothing: what n-grams without a match count: ``"exp"`` half, then a quarter, … of one;
            ``"add-k"`` adds one to all counts but those of words; ``"none"``.
        tokenize: ``"13a"`` splits off punctuation, ``"char"``, or ``"none"``, only at spaces.

    Example:
        >>> BLEU()(["the cat sat on the mat"], ["the cat sat on a mat"])
        0.537284...
    """

    max_n: int = 4
    smoothing: Literal["exp", "add-k", "none"] = "exp"
    tokenize: Literal["13a", "char", "none"] = "13a"

    def validate(self) -> None:
        """Refuse n-grams of nothing."""
        self.require("max_n", self.max_n >= 1, "at least 1")

    def _split(self, text: str) -> Tokens:
        if self.tokenize == "char":
            return "".join(text.split())
        return _tokens_13a(text) if self.tokenize == "13a" else text.split()

    def _counts(self, pairs: list[tuple[Tokens, list[Tokens]]]) -> Mapping[str, Any]:
        orders = range(1, self.max_n + 1)
        matches, totals, lengths = np.zeros(self.max_n), np.zeros(self.max_n), np.zeros(2)
        for said, rights in pairs:
            near = min(rights, key=lambda right: (abs(len(right) - len(said)), len(right)))
            lengths += len(said), len(near)
            for n in orders:
                grams, most = _grams(said, n), Counter[Any]()
                for right in rights:
                    most |= _grams(right, n)
                matches[n - 1] += (grams & most).total()
                totals[n - 1] += grams.total()
        return {"matches": matches, "totals": totals, "lengths": lengths}

    def value(self, state: State) -> float:
        """Return the score; NaN without texts, 0 without a match."""
        matches, totals, (said, right) = state["matches"], state["totals"], state["lengths"]
        if not said and not right:
            return np.nan
        if not matches.any():
            return 0.0
        more = np.arange(self.max_n) > 0 if self.smoothing == "add-k" else 0
        shares = divided(matches + more, totals + more)
        missing = (matches + more == 0) & (totals > 0)
        if self.smoothing not in ("none", "add-k"):
            shares = np.where(missing, divided(0.5 ** np.cumsum(missing), totals), shares)
        if not shares.all():
            return 0.0
        return float(np.exp(np.log(shares).mean() + min(0.0, 1 - right / said)))


class CHRF(Text, better="higher"):
    """The F score of character n-grams, with recall ``beta`` times as important; from 0 to 1.

    Precision and recall are means over n; counts are those of all texts. Of several targets the
    best counts. Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015,
    https://aclanthology.org/W15-3049; values are those of sacrebleu, which prints 100 times them.

    Attributes:
        max_n: the longest n-grams of characters; spaces do not count.
        words: the longest n-grams of words; 2 gives chrF++.
        beta: how much more recall counts than precision.

    Example:
        >>> CHRF()(["the cat sat"], ["the cat sits"])
        0.610345...
    """

    max_n: int = 6
    words: int = 0
    beta: float = 2.0

    def _split(self, text: str) -> Tokens:
        return text

    def _counts(self, pairs: list[tuple[Tokens, list[Tokens]]]) -> Mapping[str, Any]:
        found = np.zeros((self.max_n + self.words, 3))
        for said, rights in pairs:
            found += max((self._matches(said, right) for right in rights), key=self._score)
        return {"counts": found, "texts": len(pairs)}

    def value(self, state: State) -> float:
        """Return the score; NaN without texts."""
        return self._score(state["counts"]) if state["texts"] else np.nan

    def _matches(self, said: Tokens, right: Tokens) -> NDArray[Any]:
        """Counts of n-grams of a text, of the right one, and of both."""
        found = []
        for split, most in ((_characters, self.max_n), (_words, self.words)):
            for n in range(1, most + 1):
                ours, theirs = _grams(split(said), n), _grams(split(right), n)
                both = (ours & theirs).total()
                found.append([ours.total() if theirs else 0, theirs.total(), both])
        return np.asarray(found, np.float64)

    def _score(self, counts: NDArray[Any]) -> float:
        said, right, both = counts.T
        there = (said > 0) & (right > 0)
        if not both[there].any():
            return 0.0
        precision, recall = np.mean(both[there] / said[there]), np.mean(both[there] / right[there])
        square = self.beta**2
        return float((1 + square) * precision * recall / (square * precision + recall))


class ROUGE(Text, better="higher"):
    """The mean over texts of how much a text and its target have in common, as an F score.

    ``ROUGE(1)`` and ``ROUGE(2)`` count n-grams, ``ROUGE("L")`` the longest common sequence. Words
    are letters a to z and digits, in lower case; of several targets the best counts. Lin, "ROUGE:
    a package for automatic evaluation of summaries", 2004, https://aclanthology.org/W04-1013;
    values are those of Google's rouge-score without stemming.

    Attributes:
        n: length of n-grams, or ``"L"``.
        statistic: ``"f1"``; or ``"precision"``, the share of the text, ``"recall"``, of the target.

    Example:
        >>> ROUGE("L")(["the cat sat"], ["the cat sat down"])
        0.857142...
    """

    n: int | Literal["L"] = "L"
    statistic: Literal["f1", "precision", "recall"] = "f1"

    def _split(self, text: str) -> Tokens:
        return re.sub("[^a-z0-9]+", " ", text.lower()).split()

    def _counts(self, pairs: list[tuple[Tokens, list[Tokens]]]) -> Mapping[str, Any]:
        place = ("f1", "precision", "recall").index(self.statistic)
        best = [max(self._scores(said, right) for right in rights)[place] for said, rights in pairs]
        return {"sum": float(sum(best)), "texts": len(pairs)}

    def value(self, state: State) -> float:
        """Return the mean; NaN without texts."""
        return float(divided(state["sum"], state["texts"], np.nan))

    def _scores(self, said: Tokens, right: Tokens) -> tuple[float, float, float]:
        """F score, precision and recall."""
        if self.n == "L":
            both, ours, theirs = _common(said, right), len(said), len(right)
        else:
            left, other = _grams(said, self.n), _grams(right, self.n)
            both, ours, theirs = (left & other).total(), left.total(), other.total()
        f1 = 2 * both / (ours + theirs) if both else 0.0
        return f1, both / max(ours, 1), both / max(theirs, 1)


def _grams(tokens: Tokens, n: int) -> Counter[Any]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _tokens_13a(text: str) -> list[str]:
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    text = f" {text} "
    for pattern, spaced in _13A:
        text = pattern.sub(spaced, text)
    return text.split()


def _characters(tokens: Tokens) -> Tokens:
    return "".join(tokens.split()) if isinstance(tokens, str) else tokens


def _words(tokens: Tokens) -> Tokens:
    """Words, with punctuation at one of their ends as a word of its own."""
    if not isinstance(tokens, str):
        return tokens
    found: list[str] = []
    for word in tokens.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            found += word[:-1], word[-1]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            found += word[0], word[1:]
        else:
            found.append(word)
    return found


def _distance(said: Tokens, right: Tokens) -> int:
    """The least number of edits."""

    def row(last: NDArray[Any], equal: NDArray[Any]) -> NDArray[Any]:
        here = np.minimum(last[1:] + 1, last[:-1] + ~equal)
        here = np.r_[last[0] + 1, here] - places
        return np.minimum.accumulate(here) + places  # an edit for each place to the left

    places = np.arange(len(right) + 1)
    return int(_rows(said, right, places, row)[-1])


def _common(said: Tokens, right: Tokens) -> int:
    """The length of the longest common sequence."""

    def row(last: NDArray[Any], equal: NDArray[Any]) -> NDArray[Any]:
        return np.maximum.accumulate(np.r_[0, np.maximum(last[1:], last[:-1] + equal)])

    return int(_rows(said, right, np.zeros(len(right) + 1, np.int64), row)[-1])


def _rows(
    said: Tokens,
    right: Tokens,
    first: NDArray[Any],
    row: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
) -> NDArray[Any]:
    """The last row of a table over both texts, each row made from the one above it."""
    numbers: dict[Any, int] = {}
    ours, theirs = ([numbers.setdefault(x, len(numbers)) for x in each] for each in (said, right))
    wanted, last = np.asarray(theirs, np.int64), first
    for token in ours:
        last = row(last, wanted == token)
    return last
