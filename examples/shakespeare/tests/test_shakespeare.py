"""Letters, pieces of text, and a network that learns a sentence."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from examples.shakespeare.data import Letters, batches
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


def test_pieces_are_followed_by_the_next_letter_and_the_seed_says_which() -> None:
    codes = Letters(TEXT).encoded(TEXT)
    first, again, other = (list(islice(batches(codes, 5, 3, seed), 4)) for seed in (0, 0, 1))
    for (x, y), (u, _) in zip(first, again, strict=True):
        assert x.shape == y.shape == (3, 5)
        assert np.array_equal(x[:, 1:], y[:, :-1])
        assert np.array_equal(x, u)
    assert not np.array_equal(first[0][0], other[0][0])


def test_a_sentence_is_learned_as_pytorch_learns_it() -> None:
    trained = train(TEXT, SMALL)
    assert np.mean(trained.losses[-5:]) < 0.4 * trained.losses[0]
    assert len(written(trained, "to be", 40)) == 45
    pytest.importorskip("torch", reason="PyTorch comes with ./x test --long")
    from examples.shakespeare.twin import losses

    theirs = losses(TEXT, SMALL)
    assert np.allclose(trained.losses[:20], theirs[:20], rtol=2e-3)
