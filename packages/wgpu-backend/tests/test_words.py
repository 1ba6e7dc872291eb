"""Weights in blocks of llama.cpp as words, beside the numbers of the formula on NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import phlox_tensor as pt
from phlox_tensor.ops.blocks import dequantize_words, words_linear
from phlox_tensor.shapes.blocks import FORMS
from phlox_wgpu import Wgpu
from phlox_wgpu.products import words as products

SCALES = {"Q4_0": (0,), "Q4_K": (0, 2), "Q6_K": (208,), "Q8_0": (0,)}  # where halves lie


def words_of(form: str, rng: np.random.Generator) -> np.ndarray:
    """Rows of random blocks, 512 numbers each."""
    size, nbytes = FORMS[form]
    blocks = rng.integers(0, 256, (37, 512 // size, nbytes), dtype=np.uint8)
    for at in SCALES[form]:
        halves = rng.normal(scale=0.01, size=blocks.shape[:2]).astype(np.float16)
        blocks[..., at : at + 2] = halves[..., None].view(np.uint8)
    return blocks.reshape(37, -1).view(np.int32)


@pytest.mark.parametrize("form", SCALES)
def test_kernels_give_the_numbers_of_the_formula(
    form: str, gpu: Wgpu, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = words_of(form, rng)
    here, there = pt.asarray(words, device=gpu), pt.asarray(words, device=pt.Numpy())
    found = dequantize_words(here, form, dtype=pt.float32).numpy()
    numbers = dequantize_words(there, form, dtype=pt.float32).numpy()
    assert np.array_equal(found, numbers)
    bias = rng.normal(size=37).astype(np.float32)
    for rows in (1, 4, 7):
        x = rng.normal(size=(rows, 512)).astype(np.float32)
        given = pt.asarray(x, device=gpu), here, pt.asarray(bias, device=gpu)
        want = x.astype(np.float64) @ numbers.T + bias
        near = 1e-5 * np.abs(want).max()
        assert np.abs(words_linear(*given, form).numpy() - want).max() < near
    monkeypatch.setattr(products, "_MOST_FLOATS", 20_000)  # a few rows at once
    assert np.abs(words_linear(*given, form).numpy() - want).max() < near
