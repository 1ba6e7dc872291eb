"""Letters, pieces of text, and a network that learns a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from examples.shakespeare.data import Letters, Pieces
from examples.shakespeare.train import Settings, train, written

TEXT = "to be, or not to be, that is the question. " * 20
SMALL = Settings(60, 8, 16, 24, 1, 2, 1e-2, 5)


def test_letters_come_back() -> None:
    letters = Letters(TEXT)
    codes = letters.encoded("not that")
    assert letters.decoded(codes) == "not that"
    assert len(letters) == len(set(TEXT))
    with pytest.raises(KeyError):
        letters.encoded("Ω")


def test_parts_are_of_the_text_and_the_seed_says_which() -> None:
    codes = Letters(TEXT).encoded(TEXT)
    first, again, other = (list(SMALL.replace(seed=seed).batches(codes)) for seed in (0, 0, 1))
    assert len(first) == SMALL.steps
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert Letters(TEXT).decoded(first[0][0]) in TEXT
    assert first[0].shape == (SMALL.batch, SMALL.length + 1)


def test_a_sentence_is_learned_as_pytorch_learns_it() -> None:
    letters = Letters(TEXT)
    done = train(TEXT, letters, SMALL)
    ours = done.history("train/loss").values
    assert np.mean(ours[-5:]) < 0.4 * ours[0]
    assert len(written(done.model.valid(), letters, "to be", 40)) == 45
    pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    from examples.shakespeare.twin import losses

    assert np.allclose(ours[:20], losses(TEXT, letters, SMALL)[:20], rtol=2e-3)


def test_pieces_of_words_are_learned() -> None:
    pytest.importorskip("tokenizers", reason="it comes with ./x test --long")
    pieces = SMALL.replace(pieces=280).letters(TEXT)
    assert isinstance(pieces, Pieces)
    codes = pieces.encoded(TEXT)
    assert pieces.decoded(codes) == TEXT
    assert len(codes) < 0.7 * len(TEXT)
    losses = train(TEXT, pieces, SMALL).history("train/loss").values
    assert np.mean(losses[-5:]) < 0.4 * losses[0]
