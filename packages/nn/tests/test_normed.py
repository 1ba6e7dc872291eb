"""Weights by length and direction, and over their singular value: where they may stand."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import ArgumentError, Tensor

LAYERS: list[tuple[Callable[[], Any], Callable[[], Tensor[Any]]]] = [
    (lambda: nn.Conv1d(4, 6, 3), lambda: pt.ones((1, 4, 5))),
    (lambda: nn.Embedding(10, 8, padding_idx=1), lambda: pt.asarray([[1, 9], [0, 3]])),
    (lambda: nn.EmbeddingBag(10, 8), lambda: pt.asarray([[1, 9], [0, 3]])),
    (lambda: nn.Gru(8, 4), lambda: pt.ones((2, 3, 8))),
    (lambda: nn.Linear(4, 3), lambda: pt.ones((2, 4))),
    (lambda: nn.MultiHeadAttention(8, 2), lambda: pt.ones((2, 3, 8))),
    (lambda: nn.Sequential(nn.Linear(4, 3)), lambda: pt.ones((2, 4))),
]
NAMES = ["Conv1d", "Embedding", "EmbeddingBag", "Gru", "Linear", "MultiHeadAttention", "Sequential"]
each = pytest.mark.parametrize(("make", "given"), LAYERS, ids=NAMES)
BOTH = [(nn.weight_norm, nn.remove_weight_norm), (nn.spectral_norm, nn.remove_spectral_norm)]
changes = pytest.mark.parametrize(("change", "back"), BOTH, ids=["weight", "spectral"])


def result(model: Any, x: Tensor[Any]) -> Any:
    return pt.tree.leaves(model(x))[0].numpy()


def two() -> nn.Sequential:
    pt.seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))


@each
def test_a_model_by_length_and_direction_gives_the_same(make: Any, given: Any) -> None:
    pt.seed(1)
    model, x = make(), given()
    normed = nn.weight_norm(model)
    assert normed.num_params() > model.num_params()
    np.testing.assert_allclose(result(normed, x), result(model, x), rtol=1e-5, atol=1e-6)
    back = nn.remove_weight_norm(normed)
    assert {k: p.id for k, p in back.params().items()} == {
        k: p.id for k, p in model.params().items()
    }
    np.testing.assert_allclose(result(back, x), result(model, x), rtol=1e-5, atol=1e-6)


@each
def test_the_largest_singular_value_is_one(make: Any, given: Any) -> None:
    pt.seed(1)
    model, x = make(), given()
    normed = nn.spectral_norm(model, iterations=3)
    assert normed.num_params() == model.num_params()
    result(normed, x)
    plain = nn.remove_spectral_norm(normed)
    np.testing.assert_allclose(result(plain, x), result(normed, x), rtol=1e-5, atol=1e-6)
    for path, param in plain.params().items():
        if len(param.shape) > 1:
            turned = type(plain.path(path.rpartition(".")[0])).__name__ in ("Linear", "Recurrence")
            value = param.value.numpy()
            matrix = value.T if turned else value.reshape(param.shape[0], -1)
            largest = np.linalg.svd(matrix)[1][0]
            assert 0.99 < largest < 1.1, path  # as far as some steps of the power method see


@changes
def test_they_stay_lazy_shared_frozen_and_come_back(change: Any, back: Any) -> None:
    layer = nn.Linear(4, 4)
    model = change(nn.Sequential(layer, nn.Sequential(layer), nn.Linear(4, 2)).freeze("layers.2"))
    assert not any(p.is_initialized for p in model.params().values())
    assert model.path("layers.0") is model.path("layers.1.layers.0")
    trained = model.params(trainable=True)
    assert trained
    assert not any(path.startswith("layers.2") for path in trained)
    x = pt.random.normal((3, 4))
    want = result(model, x)
    for same in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        change(nn.Sequential(layer, nn.Sequential(layer), nn.Linear(4, 2))).load_record(
            model.into_record()
        ),
    ):
        np.testing.assert_array_equal(result(same, x), want)
    plain = back(model)
    assert plain.path("layers.0") is plain.path("layers.1.layers.0")
    assert plain.path("layers.2.weight").frozen
    assert plain.path("layers.0.weight").trainable


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (nn.weight_norm, {"original0": "g", "original1": "v"}),
        (nn.spectral_norm, {"original": "orig", "0._u": "u", "0._v": "v"}),
    ],
)
def test_records_have_both_names_of_pytorch(change: Any, names: dict[str, str]) -> None:
    model = change(two())
    record: Any = model.into_record(layout="pytorch")
    parts = record["0"]["parametrizations"]["weight"]
    new = {".".join(path.split(".")): item for path, item in flat(parts).items()}
    assert set(new) == set(names)
    lengths = [i.tensor.shape for k, i in new.items() if k == "original0"]
    assert lengths in ([], [(4, 1)])
    x = pt.random.normal((3, 4))
    fresh = change(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    np.testing.assert_array_equal(
        result(fresh.load_record(record, layout="pytorch"), x), result(model, x)
    )
    old: Any = {place: {"bias": record[place]["bias"]} for place in "01"}
    for place in "01":
        for name, item in flat(record[place]["parametrizations"]["weight"]).items():
            old[place][f"weight_{names[name]}"] = item
    np.testing.assert_array_equal(
        result(fresh.load_record(old, layout="pytorch"), x), result(model, x)
    )


def flat(record: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(record, dict):
        return {path: record}
    return {
        k: v for name in record for k, v in flat(record[name], f"{path}.{name}".strip(".")).items()
    }


def test_lengths_go_by_the_axis_that_pytorch_counts() -> None:
    shapes = {
        axis: nn.weight_norm(nn.Linear(5, 3), axis=axis).path("weight.length").shape
        for axis in (0, 1, -1, None)
    }
    assert shapes == {0: (1, 3), 1: (5, 1), -1: (5, 1), None: ()}
    conv = nn.weight_norm(nn.Conv2d(2, 4, 3), axis=1)
    assert conv.path("weight.length").shape == (1, 2, 1, 1)
    turned = nn.spectral_norm(nn.ConvTranspose2d(2, 4, 3))
    assert turned.path("weight.left").shape == (4,)
    assert nn.spectral_norm(turned.replace(weight=nn.Param(pt.ones((2, 4, 3, 3)))), axis=0).path(
        "weight.left"
    ).shape == (2,)


def test_adapters_stand_beside_them_and_integers_do_not() -> None:
    x = pt.random.normal((3, 4))
    normed = nn.weight_norm(two())
    adapted = nn.apply_lora(normed, 1, "layers.0")
    assert set(adapted.params(trainable=True)) == {"layers.0.weight.down", "layers.0.weight.up"}
    moved = adapted.map(lambda _, p: p.with_value(p.value + 0.1) if p.trainable else p)
    merged = nn.merge_lora(moved)
    assert isinstance(merged.path("layers.0.weight"), nn.Param)
    np.testing.assert_allclose(result(merged, x), result(moved, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"made of other weights(.|\n)*remove_weight_norm"):
        nn.quantize_weights(normed)
    mixed = nn.quantize_weights(nn.weight_norm(two(), "layers.0"), "layers.1")
    assert result(mixed, x).shape == (3, 2)


def test_vectors_rest_in_inference_and_move_in_training() -> None:
    model = nn.spectral_norm(two())
    with nn.collect() as still:
        model(pt.ones((1, 4)))
    assert len(still) == 0
    with nn.collect() as moving:
        model.with_training(True)(pt.ones((1, 4)))
    assert len(moving) == 4
    assert (
        moving.apply(model).path("layers.0.weight.left").id == model.path("layers.0.weight.left").id
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.weight_norm(nn.BatchNorm(3)), r"\[weight_norm\] no weight has such a path"),
        (lambda: nn.weight_norm(nn.weight_norm(two())), "no weight has such a path: got none"),
        (lambda: nn.spectral_norm(nn.weight_norm(two())), "that are parameters"),
        (lambda: nn.weight_norm(two(), "head"), "got 'head'"),
        (lambda: nn.weight_norm(two(), axis=2), r"layers\.0\.weight has no such axis: got 2"),
        (lambda: nn.spectral_norm(two(), axis=-3), "expected -2 to 1"),
        (lambda: nn.spectral_norm(two(), iterations=0), "iterations: got 0"),
        (lambda: nn.spectral_norm(two(), epsilon=0.0), "epsilon: got 0"),
        (lambda: nn.remove_weight_norm(two()), r"expected what nn\.weight_norm\(model\) gave"),
        (lambda: nn.remove_spectral_norm(nn.weight_norm(two())), r"nn\.spectral_norm\(model\)"),
    ],
)
def test_what_cannot_be_normed_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()
