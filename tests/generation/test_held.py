"""Keys and values in less memory: windows that roll, integers of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_nn.generation.held import Held, check_bits
from phlox_nn.generation.steps import Generation

DEVICE = px.Cpu()
WORDS = np.random.default_rng(0).integers(0, 60, (2, 90))


def decoder(**more: Any) -> nn.models.Llama:
    px.seed(4)
    made = nn.models.LlamaConfig(60, 256, 32, 3, 4, 2, d_ff=48, **more).init(DEVICE)
    return made.map(lambda _, p: p.with_value(p.value * 8) if p.value.ndim == 2 else p).freeze()


def tokens(start: int, end: int) -> px.Tensor[px.Int]:
    return px.asarray(WORDS[:, start:end], device=DEVICE)


@pytest.mark.parametrize("sliding", [None, (True, False, True)])
def test_a_window_rolls_and_gives_what_all_gives(sliding: Any) -> None:
    model = decoder(window=8, sliding=sliding)
    rolled, whole = Generation(model, chunk=9), Generation(model, chunk=9, rolls=False)
    theirs = np.empty(0)
    for start, end in ((0, 40), *((i, i + 1) for i in range(40, 90))):
        mine, theirs = (each.read(tokens(start, end)).numpy() for each in (rolled, whole))
        assert np.abs(mine - theirs).max() < 1e-5
    for layer, has_window in zip(rolled.cache, model.settings.windows, strict=True):
        assert layer.length == 90
        kept = layer.keys.shape[-2]
        assert 8 <= kept <= 16 if has_window else kept == 90
    # What a window still has may be gone back to, and nothing before it.
    back = max(getattr(layer, "start", 0) for layer in rolled.cache) + 7
    assert rolled.cut(back) == back
    assert np.abs(rolled.read(tokens(back, 90)).numpy() - theirs).max() < 1e-5
    assert rolled.cut(back - 20) == 0
    assert rolled.cache is None
    again = rolled.read(tokens(0, 30)).numpy()
    assert np.abs(again - Generation(model).read(tokens(0, 30)).numpy()).max() < 1e-5


def test_integers_of_8_bits_are_near_and_a_quarter_of_the_bytes() -> None:
    model = decoder()
    near, exact = Generation(model, bits=8, chunk=16), Generation(model, chunk=16)
    for start, end in ((0, 40), (40, 41), (41, 90)):
        mine, want = (each.read(tokens(start, end)).numpy() for each in (near, exact))
        assert 0 < np.abs(mine - want).max() < 0.03 * np.abs(want).max()
    first: Held = near.cache[0]
    assert {each.dtype for each in first.stored} == {px.int8}
    assert first.scales is not None
    assert first.scales[0].shape == (2, 2, 90, 1)
    assert near.cut(50) == 50
    assert near.cache[0].keys.shape == exact.cache[0].keys[..., :50, :].shape
    gpt = nn.models.GptConfig(60, 128, 32, 2, 2).init(DEVICE).freeze()
    mine, want = (
        [each.read(tokens(0, 9)), each.read(tokens(9, 12))][1].numpy()
        for each in (Generation(gpt, bits=8), Generation(gpt))
    )
    assert 0 < np.abs(mine - want).max() < 1e-2


def test_a_window_of_integers_rolls_too() -> None:
    generation = Generation(decoder(window=8), bits=8)
    for i in range(60):
        generation.read(tokens(i, i + 1))
    assert generation.cache[1].length == 60
    assert max(each.shape[-2] for each in generation.cache[1].stored) <= 16


def test_other_bits_are_refused() -> None:
    with pytest.raises(px.ArgumentError, match="no cache of such numbers: got 4 bits"):
        check_bits(4, DEVICE)
    check_bits(8, DEVICE)
