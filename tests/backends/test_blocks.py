"""Weights in blocks of llama.cpp, against the numbers that the reader of such files makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox_record._gguf_blocks import BLOCKS, widened

FORMS = {b.name: b for b in BLOCKS.values()}
HELD = ("Q4_0", "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")
SCALES = {"Q4_1": (0, 2), "Q4_K": (0, 2), "Q5_1": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def raw(form: str, rows: int, count: int) -> Any:
    """Rows of random blocks, whose scales are finite."""
    rng = np.random.default_rng(count)
    found = rng.integers(0, 256, (rows, count, FORMS[form].nbytes)).astype(np.uint8)
    for at in SCALES.get(form, (0,)):
        found[:, :, at + 1] = rng.integers(0x1C, 0x28, (rows, count)) | (rng.integers(0, 2) << 7)
    return found.reshape(rows, -1)


@pytest.mark.parametrize("device", [px.Cpu(), px.Numpy()], ids=repr)
@pytest.mark.parametrize("form", HELD)
def test_blocks_stand_for_the_numbers_of_their_file(form: str, device: px.Backend) -> None:
    blocks = raw(form, 3, 5)
    blocks[0, : FORMS[form].nbytes] = 0  # a scale of 0
    blocks[1, 1] &= 0x83  # one that is subnormal
    want = widened(blocks.reshape(-1), FORMS[form]).reshape(3, -1)
    got = px.dequantize_blocks(px.asarray(blocks, device=device), form)
    assert got.shape == want.shape
    assert np.array_equal(got.numpy(), want)


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("form", HELD)
def test_rounded_products_are_those_of_the_formula(form: str, rows: int) -> None:
    blocks = raw(form, 70, 3)  # an odd number of small blocks
    size = 3 * FORMS[form].size
    x = np.random.default_rng(1).standard_normal((rows, size)).astype(np.float32)
    x[0, :32] = 0.0
    got, want = (
        px.blocks_linear(
            px.asarray(x, device=device),
            px.asarray(blocks, device=device),
            px.ones((70,), device=device),
            form,
            rounded=True,
        ).numpy()
        for device in (px.Cpu(), px.Numpy())
    )
    exact = x @ widened(blocks.reshape(-1), FORMS[form]).reshape(70, -1).T + 1.0
    largest = np.abs(exact).max()
    assert np.abs(got - want).max() < 1e-5 * largest
    assert 0 < np.abs(got - exact).max() < 0.02 * largest


@pytest.mark.parametrize("device", [px.Cpu(), px.Numpy()], ids=repr)
@pytest.mark.parametrize("form", ["BF16", "F16"])
def test_all_floats_of_16_bits_are_widened(form: str, device: px.Backend) -> None:
    bits = np.arange(1 << 16, dtype="<u2")
    want = bits.view(np.float16).astype(np.float32)
    if form == "BF16":
        want = (bits.astype(np.uint32) << 16).view(np.float32)
    got = px.dequantize_blocks(px.asarray(bits.view(np.uint8), device=device), form).numpy()
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), bits[~same][:9]


@pytest.mark.parametrize("rows", [1, 3, 32, 40])
@pytest.mark.parametrize("form", ["BF16", "F16"])
def test_floats_of_16_bits_are_multiplied_as_they_are(form: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 77)).astype(np.float32)
    weight = px.asarray(rng.standard_normal((70, 77)), dtype="float32")
    weight = weight.astype("bfloat16" if form == "BF16" else "float16")
    raw_ = px.asarray(np.ascontiguousarray(weight.numpy()).view(np.uint8))
    given, bias = px.asarray(x), px.ones((70,))
    got = px.blocks_linear(given, raw_, bias, form, rounded=True).numpy()
    exact = x.astype(np.float64) @ weight.numpy().astype(np.float64).T + 1.0
    assert np.abs(got - exact).max() < 2e-5
    assert np.array_equal(got, px.blocks_linear(given, raw_, bias, form).numpy())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [1, 40])
def test_what_is_no_number_stays_none(rows: int, bad: float) -> None:
    """At each place of a group, whatever follows it; other rows are as without it."""
    blocks = px.asarray(raw("Q8_0", 5, 2))
    for place in range(64):
        x = np.ones((rows + 1, 64), np.float32)
        x[0, place] = bad
        found = px.blocks_linear(px.asarray(x), blocks, None, "Q8_0", rounded=True).numpy()
        assert np.isnan(found[0]).all(), place
        assert np.isfinite(found[1:]).all(), place


def test_the_gradient_is_that_of_the_product_without_rounding() -> None:
    train = px.Autodiff(px.Cpu())
    blocks = px.asarray(raw("Q8_0", 5, 2), device=train)
    x = px.asarray(np.random.default_rng(1).standard_normal((3, 64)), dtype="float32", device=train)
    for rounded in (False, True):
        given = x.require_grad()
        made = px.blocks_linear(given, blocks, None, "Q8_0", rounded=rounded)
        found = given.grad(made.sum().backward())
        want = px.dequantize_blocks(blocks, "Q8_0").sum(axis=0)
        assert np.allclose(found.numpy(), want.numpy(), rtol=1e-5)


def test_other_forms_and_sizes_are_refused_by_name() -> None:
    blocks = px.asarray(raw("Q8_0", 5, 2))
    with pytest.raises(px.ArgumentError, match=r"no such form: got 'Q9'.*Q8_0"):
        px.dequantize_blocks(blocks, "Q9")
    with pytest.raises(px.ShapeError, match=r"no whole blocks.*multiple of 18"):
        px.dequantize_blocks(blocks, "Q4_0")
    with pytest.raises(px.ShapeError, match=r"inner sizes differ: got x \(2, 32\)"):
        px.blocks_linear(px.ones((2, 32)), blocks)
