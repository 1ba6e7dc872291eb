"""Rows over texts beside sacrebleu, jiwer and rouge-score."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from phlox_tensor import PhloxError
from phlox_train.metrics import text

Check = Callable[..., None]
Draw = Callable[[np.random.Generator, int], tuple[Any, ...]]
bleu: Any = import_module("sacrebleu.metrics")
jiwer: Any = import_module("jiwer")
rouge: Any = import_module("rouge_score.rouge_scorer")
distance: Any = import_module("rapidfuzz.distance")
WORDS = [
    *("the", "cat", "sat", "on", "a", "mat,", "don't", "3.5", "1,000", "(half)", "50%", "A.B."),
    *(
        "said:",
        "naïve",
        "E-mail",
        "mid-19",
        "&amp;",
        "über!",
        "'so'",
        "well...",
        "--",
        "<b>",
        "end.",
    ),
]


def sentence(chance: np.random.Generator, least: int = 1) -> str:
    return " ".join(chance.choice(WORDS, int(chance.integers(least, 12))))


def changed(chance: np.random.Generator, words: str) -> str:
    """A text with some words left out, doubled or replaced."""
    kept = [chance.choice(WORDS) if chance.random() < 0.15 else word for word in words.split()]
    return " ".join(word for word in kept for _ in range(int(chance.choice([0, 1, 1, 1, 1, 2]))))


def pairs(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    right = [sentence(chance) for _ in range(count // 4 + 1)]
    return [changed(chance, one) for one in right], right


def several(chance: np.random.Generator, count: int) -> tuple[Any, ...]:
    """Texts with two right ones each."""
    said, right = pairs(chance, count)
    return said, [[one, changed(chance, one) or "a"] for one in right]


def turned(targets: Any) -> list[list[str]]:
    """Right texts as sacrebleu has them: a list for each place in the lists."""
    return [*map(list, zip(*([t] if isinstance(t, str) else t for t in targets), strict=True))]


def corpus(metric: Any) -> Callable[..., Any]:
    return lambda said, right: metric.corpus_score(said, turned(right)).score / 100


def mean_rouge(kind: str, statistic: str = "fmeasure") -> Callable[..., Any]:
    scorer = rouge.RougeScorer([kind])

    def oracle(said: Any, right: Any) -> Any:
        rows = zip(said, right, strict=True)
        found = [scorer.score_multi([t] if isinstance(t, str) else t, s) for s, t in rows]
        return np.mean([getattr(each[kind], statistic) for each in found])

    return oracle


ROWS: list[tuple[Any, Draw, Callable[..., Any]]] = [
    (text.BLEU(), pairs, corpus(bleu.BLEU())),
    (text.BLEU(), several, corpus(bleu.BLEU())),
    (text.BLEU(smoothing="none"), pairs, corpus(bleu.BLEU(smooth_method="none"))),
    (text.BLEU(smoothing="add-k"), pairs, corpus(bleu.BLEU(smooth_method="add-k"))),
    (text.BLEU(max_n=2, tokenize="none"), pairs,
     corpus(bleu.BLEU(max_ngram_order=2, tokenize="none"))),
    (text.BLEU(tokenize="char"), pairs, corpus(bleu.BLEU(tokenize="char"))),
    (text.CER(), pairs, lambda said, right: jiwer.cer(right, said)),
    (text.CHRF(), pairs, corpus(bleu.CHRF())),
    (text.CHRF(), several, corpus(bleu.CHRF())),
    (text.CHRF(words=2), pairs, corpus(bleu.CHRF(word_order=2))),
    (text.CHRF(max_n=4, beta=1.0), pairs, corpus(bleu.CHRF(char_order=4, beta=1))),
    (
        text.EditDistance(),
        pairs,
        lambda said, right: np.mean([*map(distance.Levenshtein.distance, said, right)]),
    ),
    (text.ROUGE(1), pairs, mean_rouge("rouge1")),
    (text.ROUGE(2), several, mean_rouge("rouge2")),
    (text.ROUGE(), pairs, mean_rouge("rougeL")),
    (text.ROUGE("L", statistic="recall"), pairs, mean_rouge("rougeL", "recall")),
    (text.ROUGE(1, statistic="precision"), pairs, mean_rouge("rouge1", "precision")),
    (text.WER(), pairs, lambda said, right: jiwer.wer(right, said)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "draw", "oracle"), ROWS, ids=[f"{i}-{row[0].name}" for i, row in enumerate(ROWS)]
)
def test_texts_score_as_elsewhere(
    metric: Any, draw: Draw, oracle: Callable[..., Any], check: Check
) -> None:
    check(metric, draw, oracle)


@pytest.mark.parametrize("row", [text.WER, text.BLEU, text.ROUGE])
def test_tokens_count_as_words_do(row: Any) -> None:
    said = np.asarray([[1, 2, 3, 4, 0], [5, 6, 0, 0, 0]])
    right = np.asarray([[1, 2, 9, 4, 5], [5, 6, 0, 0, 0]])
    words = [[" ".join(map(str, line[line > 0])) for line in each] for each in (said, right)]
    assert row(ignore_index=0)(said, right) == row()(*words)


def test_tokens_count_as_characters_do() -> None:
    said, right = np.asarray([[97, 98, 99]]), np.asarray([[97, 99, 0]])
    assert text.EditDistance(ignore_index=0)(said, right) == 1
    assert text.CER(ignore_index=0)(said, right) == text.CER()(["abc"], ["ac"]) == 0.5
    assert text.CHRF(ignore_index=0)(said, right) == text.CHRF()(["abc"], ["ac"])


def test_edits_may_be_more_than_tokens() -> None:
    assert text.WER()(["a b c"], ["x"]) == 3
    assert np.isnan(text.WER()(["a"], [""]))
    assert np.isnan(text.BLEU()([], []))
    assert np.isnan(text.CHRF()([], []))
    assert text.BLEU()(["x"], ["y"]) == 0


WRONG: list[tuple[str, Callable[[], Any]]] = [
    (r"\[WER\] texts do not pair: got 1 predictions, 2 targets",
     lambda: text.WER()(["a"], ["a", "b"])),
    (r"\[BLEU\] predictions are no list of texts: got str", lambda: text.BLEU()("a", ["a"])),
    (r"\[ROUGE\] not texts: got \(1, 'a'\)", lambda: text.ROUGE()([1], ["a"])),
    (r"\[CER\] several targets for one text: got 2", lambda: text.CER()(["a"], [["a", "b"]])),
    (r"\[WER\] tokens are not \(texts, length\)", lambda: text.WER().tally(
        {"predictions": np.zeros(3), "targets": np.zeros((3, 1))})),
    (r"BLEU.max_n makes no sense: got 0", lambda: text.BLEU(max_n=0)),
    (r"ROUGE.n", lambda: text.ROUGE("M")),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("said", "call"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_texts_are_refused(said: str, call: Callable[[], Any]) -> None:
    with pytest.raises(PhloxError, match=said):
        call()
