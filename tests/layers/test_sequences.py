"""Attention a few positions at a time, with dropped weights, and what masks hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Numpy, nn

DOUBLE = Numpy(float="float64")
ROTARY = nn.RotaryEncodingConfig(4)
X = np.random.default_rng(0).normal(size=(2, 7, 8))
MEMORY = np.random.default_rng(1).normal(size=(2, 5, 8))


def given(array: Any) -> Any:
    return px.asarray(array, device=DOUBLE)


@pytest.mark.parametrize("pieces", [[7], [1] * 7, [3, 1, 2, 1]], ids=str)
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_with_a_cache_gives_what_the_causal_one_gives(
    pieces: list[int], norm_first: bool
) -> None:
    layer = nn.TransformerEncoderLayerConfig(
        8, 2, 16, norm_first=norm_first, n_heads_kv=1, rotary=ROTARY
    )
    model = nn.TransformerEncoder(layer, 2, device=DOUBLE)
    want, cache, found, at = model(given(X), is_causal=True), None, [], 0
    for count in pieces:
        y, cache = model.extend(given(X[:, at : at + count]), cache)
        found.append(y.numpy())
        at += count
        assert [seen.length for seen in cache] == [at, at]
    assert np.allclose(np.concatenate(found, 1), want.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_with_a_cache_gives_what_the_causal_one_gives(norm_first: bool) -> None:
    layer = nn.TransformerDecoderLayerConfig(8, 2, 16, norm_first=norm_first)
    model = nn.TransformerDecoder(layer, 2, final_norm=True, device=DOUBLE)
    padding = nn.padding_mask(given([5, 3]).astype("int64"), 5)
    x, memory = given(X), given(MEMORY)
    want = model(x, memory, is_causal=True, memory_padding=padding)
    cache, found = model.start(memory), []
    for i in range(7):
        y, cache = model.extend(x[:, i : i + 1], cache, memory_padding=padding)
        found.append(y.numpy())
    assert np.allclose(np.concatenate(found, 1), want.numpy(), rtol=1e-12, atol=1e-13)


def test_padded_keys_change_nothing() -> None:
    model = nn.MultiHeadAttention(8, 2, device=DOUBLE)
    short = model(given(X[:1, :4]), is_causal=False).numpy()
    padding = nn.padding_mask(px.asarray([4], device=DOUBLE), 7)
    assert np.allclose(model(given(X[:1]), padding=padding).numpy()[:, :4], short, atol=1e-14)
    both = model(given(X), mask=nn.causal_mask(7, device=DOUBLE)).numpy()
    assert np.allclose(both, model(given(X), is_causal=True).numpy(), atol=1e-14)
    with pytest.raises(ValueError, match="padding does not fit the keys: got"):
        model(given(X), padding=padding[:, :3])


def test_dropped_weights_keep_their_mean_and_scale() -> None:
    """Values of 1 and a map that is the identity: each result is a sum of dropped weights."""
    px.seed(0)
    device = Autodiff(DOUBLE)
    model: Any = nn.MultiHeadAttention(4, 4, dropout=0.25, bias=False, n_heads_kv=2, device=device)
    eye = px.asarray(np.eye(4), device=device)
    model = model.map(lambda path, p: p.with_value(eye) if path == "output.weight" else p)
    x = px.asarray(np.random.default_rng(2).normal(size=(50, 40, 4)), device=device)
    ones = nn.Linear(4, 2, bias=False, device=device)
    model = model.replace(value=ones.map(lambda _, p: p.with_value(px.ones_like(p.value) / 4)))
    values = px.ones((50, 40, 4), device=device)
    hidden = nn.causal_mask(40, device=device)
    sums = model(x, x, values, mask=hidden, is_causal=True, bias=px.zeros((40, 40), device=device))
    assert sums.numpy().mean() == pytest.approx(1.0, abs=0.01)
    assert sums.numpy()[:, 0].round(12).tolist() != np.ones((50, 4)).tolist()
    assert set(np.unique(sums.numpy()[:, 0].round(9))) == {0.0, round(4 / 3, 9)}
    calm = model.with_training(False)
    again = model.replace(dropout=nn.Dropout(1e-12, device=device))
    assert np.allclose(again(x, is_causal=True).numpy(), calm(x, is_causal=True).numpy())


def test_first_values_are_drawn_as_for_one_map() -> None:
    model = nn.MultiHeadAttention(64, 4)
    bound = (6 / (64 + 3 * 64)) ** 0.5
    assert 0.95 * bound < float(px.abs(model.query.weight.value).max()) <= bound
    assert all(float(px.abs(p.value).max()) == 0 for k, p in model.params().items() if "bias" in k)


@pytest.mark.parametrize(
    ("config", "settings", "field"),
    [
        (nn.MultiHeadAttentionConfig, {"d_model": 6, "n_heads": 4}, "n_heads"),
        (nn.MultiHeadAttentionConfig, {"d_model": 8, "n_heads": 4, "n_heads_kv": 3}, "n_heads_kv"),
        (nn.MultiHeadAttentionConfig, {"d_model": 4, "n_heads": 2, "rotary": ROTARY}, "rotary"),
        (nn.RotaryEncodingConfig, {"d_head": 3}, "d_head"),
        (nn.SinusoidalEncodingConfig, {"d_model": 5}, "d_model"),
    ],
)
def test_settings_that_make_no_sense(config: Any, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(nn.ConfigError, match=rf"{config.__name__}\.{field} makes no sense"):
        config(**settings)


def test_a_position_past_the_last_or_before_the_first_is_an_error() -> None:
    model = nn.LearnedEncoding(7, 8, device=DOUBLE)
    assert model(given(X), 0).shape == X.shape
    with pytest.raises(ValueError, match="too long: got 8 positions, expected at most 7"):
        model(given(X), 1)
    with pytest.raises(ValueError, match="before the first"):
        nn.SinusoidalEncoding(8)(given(X), -1)
    with pytest.raises(ValueError, match="no sequence of such rows"):
        nn.RotaryEncoding(4)(given(X))


@pytest.mark.parametrize(("dropout", "training"), [(0.0, True), (0.5, False)])
def test_attention_that_drops_nothing_is_one_op(dropout: float, training: bool) -> None:
    with px.Profile(DOUBLE) as profile:
        layer = nn.MultiHeadAttention(8, 2, dropout, device=profile).with_training(training)
        layer(px.asarray(X, device=profile))
    ops = [call.op for call in profile.calls]
    assert ops.count("attention") == 1
    assert "softmax" not in ops


def test_a_padded_batch_is_decoded_a_few_positions_at_a_time() -> None:
    px.seed(0)
    layer = nn.TransformerDecoderLayerConfig(
        8, 4, 16, dropout=0.0, n_heads_kv=2, rotary=nn.RotaryEncodingConfig(2)
    )
    model = nn.TransformerDecoder(layer, 2)
    assert model.layers[0].self_attention.key.weight.shape == (8, 4)
    assert model.layers[0].cross_attention.key.weight.shape == (8, 8)
    x, memory = px.random.normal((2, 5, 8)), px.random.normal((2, 4, 8))
    padding = px.asarray([[True, True, False, False, False], [False] * 5])
    hidden = px.asarray([[False, False, True, True]])
    want = model(x, memory, padding=padding, memory_mask=hidden, is_causal=True)
    cache, found = model.start(memory), []
    for at in range(0, 5, 2):
        y, cache = model.extend(
            x[:, at : at + 2], cache, padding=padding[:, : at + 2], memory_mask=hidden
        )
        found.append(y)
    got = px.concat(found, axis=1).numpy()
    np.testing.assert_allclose(got[0, 2:], want.numpy()[0, 2:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], want.numpy()[1], rtol=1e-4, atol=1e-5)


def test_a_decoder_takes_biases_of_both_attentions_whole_and_in_pieces() -> None:
    """Minus infinity in a bias is what a mask is."""
    model = nn.TransformerDecoder(nn.TransformerDecoderLayerConfig(8, 2, 16), 2, device=DOUBLE)
    x, memory = given(X), given(MEMORY)
    hidden = px.asarray(np.random.default_rng(2).random((7, 7)) < 0.3, device=DOUBLE)
    hidden = hidden & ~px.eye(7, device=DOUBLE).astype("bool")
    other = px.asarray(np.arange(5) % 2 == 1, device=DOUBLE)
    own, far = (px.where(mask, -px.inf, 0.0).astype("float64") for mask in (hidden, other))
    want = model(x, memory, mask=hidden, memory_mask=other, is_causal=True).numpy()
    got = model(x, memory, bias=own, memory_bias=far, is_causal=True).numpy()
    assert np.allclose(got, want, rtol=1e-12, atol=1e-13)
    cache, found = model.start(memory), []
    for i in range(7):
        rows = slice(i, i + 1), slice(i + 1)
        y, cache = model.extend(
            x[:, i : i + 1], cache, mask=hidden[rows], bias=own[rows], memory_bias=far
        )
        found.append(y.numpy())
    assert np.allclose(np.concatenate(found, 1), want, rtol=1e-12, atol=1e-13)


def test_a_causal_memory_hides_what_comes_later() -> None:
    model = nn.TransformerDecoderLayer(8, 2, 16, device=DOUBLE)
    x, memory = given(X), given(MEMORY)
    later = nn.causal_mask(7, 5, device=DOUBLE)[2:]  # of 7 queries the first two would see none
    want = model(x[:, 2:], memory, memory_mask=later).numpy()
    got = model(x[:, 2:], memory, memory_is_causal=True).numpy()
    assert np.allclose(got, want, rtol=1e-12, atol=1e-13)
    assert not np.allclose(got, model(x[:, 2:], memory).numpy())


def test_an_encoder_with_a_bias_gives_whole_what_it_gives_in_pieces() -> None:
    model = nn.TransformerEncoder(nn.TransformerEncoderLayerConfig(8, 2, 16), 2, device=DOUBLE)
    places = px.arange(7, device=DOUBLE)
    slopes = px.asarray([0.5, 0.25], device=DOUBLE)[:, None, None]
    bias = (places[None, :] - places[:, None]).astype("float64") * slopes
    want, cache, found = model(given(X), bias=bias[None], is_causal=True).numpy(), None, []
    for i in range(7):
        part = bias[None, :, i : i + 1, : i + 1]
        y, cache = model.extend(given(X[:, i : i + 1]), cache, bias=part)
        found.append(y.numpy())
    assert np.allclose(np.concatenate(found, 1), want, rtol=1e-12, atol=1e-13)


def test_a_key_of_zeros_is_one_that_attention_may_look_at() -> None:
    """What PyTorch calls ``add_zero_attn``, by the line that the error says to type."""
    layer = nn.MultiHeadAttention(8, 2, device=DOUBLE)
    layer = layer.map(lambda _, p: p.with_value(p.value + 0.1))
    x, zeros = given(X), px.zeros((2, 2, 1, 4), device=DOUBLE)
    got = layer.attend(x, layer.keys_values(x).extended(nn.KeyValues(zeros, zeros)))
    seen = layer.keys_values(x)
    asked = layer.query(x).reshape(2, 7, 2, 4).swapaxes(1, 2)
    powers = (asked @ seen.keys.mT * 0.5).exp()
    found = (powers @ seen.values) / (powers.sum(axis=-1, keepdims=True) + 1)
    want = layer.output(found.swapaxes(1, 2).reshape(2, 7, 8))
    assert np.allclose(got.numpy(), want.numpy(), rtol=1e-10, atol=1e-12)


def test_tables_of_positions_are_uploaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each layer and step asks for the same; of the device that computes, under any decorator."""
    turn, add = nn.RotaryEncoding(8), nn.SinusoidalEncoding(8)
    x = px.ones((1, 5, 8), device=px.Numpy())
    want = [turn(x).numpy(), add(x).numpy(), turn(x, offset=2).numpy()]
    seen: list[tuple[int, ...]] = []
    upload = px.Numpy.upload

    def counted(self: px.Numpy, array: np.ndarray, dtype: px.DType, /) -> Any:
        seen.append(array.shape)
        return upload(self, array, dtype)

    monkeypatch.setattr(px.Numpy, "upload", counted)
    lifted = x.to_device(Autodiff(px.Numpy()))
    for each in (x, lifted):
        got = [turn(each).numpy(), add(each).numpy(), turn(each, offset=2).numpy()]
        assert all(map(np.array_equal, got, want))
    assert seen == []
