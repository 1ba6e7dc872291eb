"""Weights stored as integers: bytes, values, gradients, adapters, records, what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import ArgumentError, RecordError, Tensor

WAYS = [(8, None), (8, 16), (4, None), (4, 16)]


def linear() -> nn.Linear:
    pt.seed(0)
    return nn.Linear(64, 24)


def stored_bytes(model: nn.Module) -> int:
    return sum(p.value.numpy().nbytes for p in model.params().values())


def by_numpy(weight: np.ndarray, bits: int, group: int | None) -> np.ndarray:
    """Columns of a matrix (in, out) on their grids: what the integers stand for."""
    rows, columns = weight.shape
    parts = weight.reshape(rows // (group or rows), group or rows, columns)
    steps = np.abs(parts).max(axis=1, keepdims=True) * np.float32(1.0 / (2 ** (bits - 1) - 1))
    return (np.round(parts / steps) * steps).reshape(rows, columns)


@pytest.mark.parametrize(("bits", "group"), WAYS)
def test_values_are_those_of_the_grid_and_take_fewer_bytes(bits: Any, group: int | None) -> None:
    model = linear()
    stored = nn.quantize_weights(model, bits=bits, group=group)
    weight: Any = stored.weight
    assert weight.integers.dtype is pt.int8
    assert weight.integers.shape == (64 * bits // 8, 24)
    scales = 24 * (64 // (group or 64))
    assert stored_bytes(stored) == 64 * 24 * bits // 8 + 4 * (scales + 24)
    want = by_numpy(model.weight.value.numpy(), bits, group)
    np.testing.assert_allclose(weight.value.numpy(), want, rtol=1e-6, atol=1e-7)
    x = pt.random.normal((2, 5, 64))
    assert model.bias is not None
    expected = x.numpy() @ want + model.bias.value.numpy()
    np.testing.assert_allclose(stored(x).numpy(), expected, rtol=1e-4, atol=1e-5)
    back = nn.dequantize_weights(stored)
    assert back.weight.id == model.weight.id
    np.testing.assert_array_equal(back(x).numpy(), stored(x).numpy())


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (nn.Embedding(10, 8), pt.asarray([[1, 9], [0, 3]])),
        (nn.Conv2d(4, 6, 3), pt.ones((1, 4, 5, 5))),
        (nn.Gru(8, 4), pt.ones((2, 3, 8))),
        (nn.MultiHeadAttention(8, 2), pt.ones((2, 3, 8))),
    ],
    ids=lambda item: type(item).__name__,
)
@pytest.mark.parametrize("bits", [4, 8])
def test_any_layer_computes_with_stored_weights(model: Any, x: Tensor[Any], bits: Any) -> None:
    stored = nn.quantize_weights(model, bits=bits, group=2)
    plain = nn.dequantize_weights(stored)
    found, want = (pt.tree.leaves(m(x))[0].numpy() for m in (stored, plain))
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    for path, param in plain.params().items():
        old = model.params()[path].value.numpy()
        assert np.abs(param.value.numpy() - old).max() <= np.abs(old).max() / (2 ** (bits - 1) - 1)


def test_a_shared_weight_is_stored_once() -> None:
    table = nn.Embedding(6, 4)
    model = nn.quantize_weights(nn.Sequential(table, nn.Sequential(table)))
    assert len({p.id for p in model.params().values()}) == 2
    assert len({p.id for p in nn.dequantize_weights(model).params().values()}) == 1


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (nn.quantize_weights, nn.dequantize_weights),
        (nn.spectral_norm, nn.remove_spectral_norm),
        (nn.weight_norm, nn.remove_weight_norm),
    ],
)
def test_a_shared_weight_is_one_after_all_parameters_moved(change: Any, back: Any) -> None:
    table = nn.Embedding(6, 4)
    model = change(nn.Sequential(table, nn.Sequential(table)))
    moved = model.map(lambda _, p: p.with_value(p.value + 1) if p.trainable else p)
    for each in (moved, moved.with_params({p.id: p for p in moved.param_list()})):
        plain = back(each)
        assert plain.path("layers.0.weight") is plain.path("layers.1.layers.0.weight")


def test_lazy_weights_stay_lazy_and_records_come_back() -> None:
    stored = nn.quantize_weights(nn.Sequential(linear(), nn.Linear(24, 2)), bits=4, group=8)
    x = pt.random.normal((3, 64))
    want = stored(x).numpy()
    fresh = nn.quantize_weights(nn.Sequential(linear(), nn.Linear(24, 2)), bits=4, group=8)
    assert not any(p.is_initialized for p in fresh.params().values())
    np.testing.assert_array_equal(fresh.load_record(stored.into_record())(x).numpy(), want)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stored))(x).numpy(), want)
    np.testing.assert_array_equal(copy.deepcopy(stored)(x).numpy(), want)


def test_a_deep_copy_knows_what_was_frozen_before_its_adapters() -> None:
    model = nn.Sequential(linear(), nn.Linear(24, 6)).freeze("layers.0")
    copied = copy.deepcopy(nn.apply_lora(model, 2))
    merged = nn.merge_lora(copied)
    assert set(merged.params(trainable=True)) == {"layers.1.weight", "layers.1.bias"}


def test_adapters_beside_stored_weights_merge_and_are_saved_alone() -> None:
    model = nn.quantize_weights(nn.Sequential(linear(), nn.Linear(24, 6)), bits=4, group=8)
    adapted = nn.apply_lora(model, 2, "layers.0")
    assert set(adapted.params(trainable=True)) == {"layers.0.weight.down", "layers.0.weight.up"}
    learned = adapted.map(lambda _, p: p.with_value(p.value + 0.1) if p.trainable else p)
    x = pt.random.normal((3, 64))
    assert np.abs(learned(x).numpy() - adapted(x).numpy()).max() > 0.1
    again = nn.load_lora_record(nn.apply_lora(model, 2, "layers.0"), nn.lora_record(learned))
    np.testing.assert_array_equal(again(x).numpy(), learned(x).numpy())
    merged = nn.merge_lora(learned)
    assert isinstance(merged.path("layers.0.weight"), nn.Param)
    assert isinstance(merged.path("layers.1.weight"), nn.QuantizedWeight)
    np.testing.assert_allclose(merged(x).numpy(), learned(x).numpy(), rtol=1e-4, atol=1e-4)
    whole = nn.load_lora_record(adapted, nn.lora_record(learned)).load_record(learned.into_record())
    np.testing.assert_array_equal(whole(x).numpy(), learned(x).numpy())


def test_summaries_count_the_bytes_of_integers() -> None:
    x = pt.Spec((1, 64), pt.float32)
    plain, stored = (nn.summary(m, x).bytes for m in (linear(), nn.quantize_weights(linear())))
    assert plain - stored == 64 * 24 * 3 - 24 * 4


def test_unfrozen_models_do_not_train_integers() -> None:
    assert set(nn.quantize_weights(linear()).unfreeze().params(trainable=True)) == {"bias"}


def test_what_cannot_be_stored_is_refused() -> None:
    for call, message in (
        (lambda: nn.quantize_weights(linear(), bits=3), "bits 4 or 8"),  # type: ignore[arg-type]
        (lambda: nn.quantize_weights(linear(), group=0), "at least 1"),
        (lambda: nn.quantize_weights(linear(), group=7), "weight does not come apart: got 64"),
        (lambda: nn.quantize_weights(nn.Linear(3, 2), bits=4), "in pairs"),
        (lambda: nn.quantize_weights(linear(), "head"), "no weight has such a path: got 'head'"),
        (lambda: nn.quantize_weights(nn.BatchNorm(3)), "no weight has such a path"),
        (lambda: nn.quantize_weights(linear(), 3), "not a path"),  # type: ignore[arg-type]
        (lambda: nn.quantize_weights(nn.quantize_weights(linear())), "no integers yet"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(RecordError, match="no form in PyTorch") as found:
        nn.quantize_weights(linear()).into_record(layout="pytorch")
    assert "dequantize_weights" in str(found.value)


def test_groups_lie_along_the_inputs() -> None:
    transposed: Any = nn.quantize_weights(nn.ConvTranspose2d(8, 16, 3)).weight
    assert transposed.scales.shape == (1, 16 * 9)  # by output and place
    lstm: Any = nn.quantize_weights(nn.Lstm(8, 4), group=4).layers[0].weight_input
    assert lstm.scales.shape == (2, 16)
    assert lstm.shape == (8, 16)


def test_a_single_bias_of_a_recurrence_counts() -> None:
    layer: Any = nn.Lstm(3, 2)
    part = layer.layers[0]
    both = part.replace(bias_hidden=nn.Param(pt.zeros(8)))
    for one in (part.replace(bias_hidden=None), both):
        np.testing.assert_array_equal(one.bias().numpy(), part.bias_input.value.numpy())
    alone = part.replace(bias_input=None)
    np.testing.assert_array_equal(alone.bias().numpy(), part.bias_hidden.value.numpy())


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        (nn.apply_lora, {"rank": 2.5}),
        (nn.apply_lora, {"rank": True}),
        (nn.quantize_weights, {"bits": "4"}),
        (nn.quantize_weights, {"group": 32.0}),
        (nn.load_lora_record, {"record": {}}),
    ],
)
def test_numbers_that_count_are_whole_and_adapters_are_there(change: Any, settings: Any) -> None:
    with pytest.raises(pt.ArgumentError, match=r"an int, at|got '4'|no adapters"):
        change(nn.Sequential(linear()), **settings)


def test_what_was_frozen_before_is_frozen_again() -> None:
    layer = nn.Linear(4, 4).freeze("weight")
    back = nn.dequantize_weights(nn.quantize_weights(layer))
    assert back.weight.frozen
    assert not nn.dequantize_weights(nn.quantize_weights(nn.Linear(4, 4))).weight.frozen


def test_stored_weights_have_no_average() -> None:
    model = nn.quantize_weights(nn.Linear(4, 4))
    with pytest.raises(ArgumentError, match=r"weight\.integers has no average"):
        nn.moving_average(model, model, 0.9)


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (lambda model: nn.apply_lora(model, 2), nn.merge_lora),
        (nn.weight_norm, nn.remove_weight_norm),
        (nn.spectral_norm, nn.remove_spectral_norm),
    ],
)
def test_the_hint_makes_parameters_again_of_what_is_made_of_others(make: Any, again: Any) -> None:
    model = make(nn.Sequential(nn.Linear(4, 4)))
    with pytest.raises(ArgumentError, match=rf"hint: nn\.{again.__name__}\(model\), before it"):
        nn.quantize_weights(model)
    assert nn.quantize_weights(again(model)).num_params()
