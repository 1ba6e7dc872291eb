"""Modules inside modules: paths, walks, exchange, averages, adapters, coarse weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_record as pr
import phlox_tensor as pt
from phlox_tensor import ArgumentError, RecordError


class Block(nn.Module):
    first: nn.Linear
    norm: nn.BatchNorm
    rest: dict[str, list[nn.Linear]]


def block() -> Block:
    return Block(nn.Linear(4, 4), nn.BatchNorm(4), {"tail": [nn.Linear(4, 2), nn.Linear(2, 3)]})


def test_parts_are_found_by_path() -> None:
    model = block()
    assert model.path("first.weight") is model.first.weight
    assert model.path("rest.tail.1") is model.rest["tail"][1]
    assert model.path("") is model
    with pytest.raises(ArgumentError, match=r"nothing is there: got 'tial' of 'rest\.tial"):
        model.path("rest.tial.0")


def test_modules_are_entered_and_left_in_order() -> None:
    seen: list[str] = []
    nn.visit_modules(
        block(), lambda path, m: seen.append(f"+{path}"), lambda path, m: seen.append(f"-{path}")
    )
    assert seen == [
        "+", "+first", "-first", "+norm", "-norm", "+rest.tail.0", "-rest.tail.0",
        "+rest.tail.1", "-rest.tail.1", "-",
    ]  # fmt: skip


def test_exchanged_modules_stay_shared() -> None:
    layer = nn.Linear(2, 2)
    model = nn.Sequential(layer, nn.Sequential(layer), nn.Linear(2, 2))
    paths: list[str] = []

    def wider(path: str, inner: nn.Module) -> nn.Module:
        paths.append(path)
        return nn.Linear(2, 2) if inner is layer else inner

    new = nn.map_modules(model, wider)
    assert paths == ["layers.0", "layers.1", "layers.2"]
    assert new[0] is new.path("layers.1.layers.0")
    assert new[0] is not layer
    assert new[2] is model[2]
    assert len(new) == 3


def test_an_average_follows_the_weights_and_takes_over_state() -> None:
    model = block()
    moved = model.map(lambda _, p: p.with_value(p.value + 1.0))
    average = nn.moving_average(model.valid(), moved, 0.75)
    for path, param in average.params().items():
        way = (param.value - model.params()[path].value).numpy()
        assert np.allclose(way, 1.0 if param.role == "state" else 0.25, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"first\.weight has no partner"):
        nn.moving_average(model, nn.Linear(4, 4), 0.5)
    slow = model.fork(model.devices[0])
    with pytest.raises(ArgumentError, match=r"has no partner"):
        nn.moving_average(
            nn.Sequential(slow.first, model.first), nn.Sequential(*[model.first] * 2), 0
        )
    followed = nn.moving_average(slow, moved, 0.75)
    for path, param in followed.params().items():
        assert param.id == slow.params()[path].id
        assert np.allclose(param.value.numpy(), average.params()[path].value.numpy(), atol=1e-6)
    for decay in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="0 <= decay <= 1"):
            nn.moving_average(model, model, decay)


def test_a_slice_of_layers_is_a_sequence_of_them() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Activation(), nn.Linear(3, 1))
    assert type(model[1:]) is nn.Sequential
    assert model[1:].layers == model.layers[1:]
    assert model[-1] is model.layers[2]
    assert repr(model[1]) == "Activation(name='relu')"


def test_adapters_learn_alone_and_are_merged() -> None:
    model = block()
    adapted = nn.apply_lora(model, 2, "first", "rest.*", alpha=4.0)
    trained = set(adapted.params(trainable=True))
    assert trained == {
        f"{at}.weight.{name}"
        for at in ("first", "rest.tail.0", "rest.tail.1")
        for name in ("down", "up")
    }
    x = pt.random.normal((3, 4))
    assert np.array_equal(adapted.first(x).numpy(), model.first(x).numpy())
    learned = adapted.map(lambda path, p: p.with_value(p.value + 0.5) if path in trained else p)
    merged = nn.merge_lora(learned)
    assert {type(m) for _, m in nn.modules(merged)} == {Block, nn.Linear, nn.BatchNorm}
    assert np.allclose(merged.first(x).numpy(), learned.first(x).numpy(), atol=1e-5)
    product = learned.path("first.weight.down").value @ learned.path("first.weight.up").value * 2.0
    want = model.first.weight.value + product
    assert np.allclose(merged.first.weight.value.numpy(), want.numpy(), atol=1e-6)
    assert merged.first.weight.id == model.first.weight.id
    again = nn.load_lora_record(adapted, nn.lora_record(learned))
    assert np.array_equal(again.first(x).numpy(), learned.first(x).numpy())


def test_adapters_that_cannot_be_are_refused() -> None:
    refused: list[tuple[tuple[Any, ...], str]] = [
        (("norm",), "no weight has such a path: got 'norm', expected first.weight"),
        ((lambda path, param: False,), "the function fits no weight"),
        ((3,), "not a path, and not a function"),
        ((), "rank"),
    ]
    for where, message in refused:
        with pytest.raises(ArgumentError, match=message):
            nn.apply_lora(block(), 1 if where else 0, *where)
    with pytest.raises(ArgumentError, match="weights of two axes"):
        nn.apply_lora(nn.BatchNorm(2), 1)
    with pytest.raises(ArgumentError, match=r"no linear layer inside: got Conv1d(.|\n)*'weight'"):
        nn.apply_lora(nn.Conv1d(2, 2, 3), 1)
    small = nn.apply_lora(block(), 1, lambda path, param: param.shape[0] == 4, "rest.tail.0.weight")
    assert "first.weight.down" in small.params()
    with pytest.raises(ArgumentError, match="no adapters"):
        nn.lora_record(block())
    with pytest.raises(RecordError, match="of other adapters"):
        nn.load_lora_record(nn.apply_lora(block(), 1), {})


def tied(*, stored: bool = False) -> nn.Sequential:
    """One layer at two places, and another that shares its weight."""
    one = nn.Linear(4, 4)
    model = nn.Sequential(one, nn.Activation(), one, nn.Linear(4, 4).replace(weight=one.weight))
    return nn.quantize_weights(model) if stored else model


def learned(model: nn.Module) -> Any:
    return model.map(lambda _, p: p.with_value(p.value + 0.3) if p.trainable else p)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("where", [(), ("layers.3",)])
def test_layers_that_share_a_weight_share_an_adapter(stored: bool, where: tuple[str, ...]) -> None:
    model = tied(stored=stored)
    adapted = nn.apply_lora(model, 2, *where)
    assert adapted.num_params(trainable=True) == 16
    assert adapted.path("layers.3.weight") is adapted.path("layers.0.weight")
    changed = nn.load_lora_record(adapted, nn.lora_record(learned(adapted)))
    x = pt.random.normal((3, 4))
    merged = nn.merge_lora(changed)
    assert merged.path("layers.0.weight") is merged.path("layers.3.weight")
    assert merged.path("layers.0") is merged.path("layers.2")
    assert merged.num_params(trainable=True) == 4 * 4 + 4 + 4
    assert np.allclose(merged(x).numpy(), learned(adapted)(x).numpy(), atol=1e-5)


def test_a_weight_that_also_stands_elsewhere_shares_the_adapter() -> None:
    table = nn.Embedding(4, 4)
    model = nn.Sequential(table, nn.Linear(4, 4).replace(weight=table.weight))
    adapted = learned(nn.apply_lora(model, 1))
    merged = nn.merge_lora(adapted)
    indices = pt.asarray([0, 3])
    assert np.allclose(merged(indices).numpy(), adapted(indices).numpy(), atol=1e-5)
    assert merged.path("layers.0.weight") is merged.path("layers.1.weight")
    assert merged.path("layers.1.weight").id == table.weight.id
    beside = nn.merge_lora(nn.Sequential(table, adapted.path("layers.1")))
    assert beside.path("layers.0.weight").id == table.weight.id
    assert beside.path("layers.1.weight").id != table.weight.id


LAYERS: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
    (lambda: nn.Bilinear(4, 3, 2), lambda: (pt.ones((5, 4)), pt.ones((5, 3))), "weight"),
    (lambda: nn.Conv2d(4, 6, 3, groups=2), lambda: pt.ones((2, 4, 5, 5)), "weight"),
    (lambda: nn.ConvTranspose1d(4, 6, 3), lambda: pt.ones((2, 4, 5)), "weight"),
    (lambda: nn.Embedding(4, 6), lambda: pt.asarray([[0, 3]]), "weight"),
    (lambda: nn.EmbeddingBag(4, 6), lambda: pt.asarray([[0, 3]]), "weight"),
    (lambda: nn.Linear(4, 6), lambda: pt.ones((2, 4)), "weight"),
    (lambda: nn.Lstm(4, 3), lambda: pt.ones((2, 5, 4)), "layers.0.weight_hidden"),
]


@pytest.mark.parametrize("form", [lambda m: m, nn.quantize_weights, nn.weight_norm])
@pytest.mark.parametrize(("make", "inputs", "path"), LAYERS)
def test_weights_of_any_layer_have_adapters(
    make: Callable[[], Any], inputs: Callable[[], Any], path: str, form: Callable[[Any], Any]
) -> None:
    pt.seed(0)
    x = inputs()

    def run(layer: Any) -> Any:
        y = layer(*x) if isinstance(x, tuple) else layer(x)
        return (y[0] if isinstance(y, tuple) else y).numpy()

    layer = form(make())
    adapted = nn.apply_lora(layer, 2, path)
    assert set(adapted.params(trainable=True)) == {f"{path}.down", f"{path}.up"}
    np.testing.assert_allclose(run(adapted), run(layer), rtol=1e-5, atol=1e-6)
    moved = learned(adapted)
    assert np.abs(run(moved) - run(layer)).max() > 1e-3
    np.testing.assert_allclose(run(nn.merge_lora(moved)), run(moved), rtol=1e-4, atol=1e-4)
    again = nn.load_lora_record(nn.apply_lora(layer, 2, path), nn.lora_record(moved))
    np.testing.assert_array_equal(run(again), run(moved))


def test_adapters_are_of_the_type_of_the_weight() -> None:
    whole = nn.Linear(4, 2)
    half = whole.map(lambda _, p: nn.Param(p.value.detach().astype(pt.float16)))
    adapted = nn.apply_lora(half, 2)
    assert {p.dtype for p in adapted.param_list()} == {pt.float16}
    assert adapted(pt.ones((1, 4)).astype(pt.float16)).dtype is pt.float16


def test_a_second_adapter_leaves_frozen_what_was_so_before_the_first() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).freeze("layers.0")
    twice = nn.apply_lora(nn.apply_lora(model, 1), 1, "layers.1")
    merged = nn.merge_lora(learned(twice))
    assert set(merged.params(trainable=True)) == {"layers.1.weight", "layers.1.bias"}
    x = pt.ones((1, 2))
    assert np.allclose(merged(x).numpy(), learned(twice)(x).numpy(), atol=1e-5)


class Positive(nn.ComputedWeight):
    """A weight above 0: the exponential of a parameter."""

    logarithm: nn.Param

    @property
    def source(self) -> nn.Param:
        return self.logarithm

    @property
    def value(self) -> pt.Tensor[pt.Float]:
        return self.logarithm.value.exp()

    def into_param(self) -> nn.Param:
        return nn.Param(self.value.detach(), id=self.id)


def test_users_write_weights_that_are_made_of_others() -> None:
    layer = nn.Conv1d(2, 3, 3)
    positive = layer.replace(weight=Positive(layer.weight))
    assert set(positive.params()) == {"weight.logarithm", "bias"}
    want = layer.replace(weight=positive.path("weight").into_param())
    x = pt.random.normal((2, 2, 6))
    np.testing.assert_array_equal(positive(x).numpy(), want(x).numpy())
    adapted = nn.apply_lora(positive, 1, "weight")
    assert np.allclose(adapted(x).numpy(), want(x).numpy(), atol=1e-5)


def test_adapters_of_another_rank_say_what_to_type() -> None:
    record = nn.lora_record(nn.apply_lora(block(), 1))
    with pytest.raises(RecordError, match="of another rank") as found:
        nn.load_lora_record(nn.apply_lora(block(), 2), record)
    assert "hint: nn.apply_lora(model, 1)" in str(found.value)


def test_merging_leaves_frozen_what_was_frozen_before() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).freeze("layers.0", "layers.1.bias")
    merged = nn.merge_lora(nn.apply_lora(model, 1))
    assert set(merged.params(trainable=True)) == {"layers.1.weight"}
    one: Any = nn.merge_lora(nn.apply_lora(model, 1).path("layers.1"))
    assert type(one) is nn.Linear


@pytest.mark.parametrize(("bits", "group"), [(8, None), (4, 1), (2, None)])
def test_coarse_weights_are_near_the_fine_ones(bits: int, group: int | None) -> None:
    model = block()
    coarse = model.map(nn.WeightQuantizer(bits, group))
    top = 2 ** (bits - 1) - 1
    for path, param in model.params().items():
        old, new = param.value.numpy(), coarse.params()[path].value.numpy()
        if old.ndim < 2:
            assert np.array_equal(old, new)
            continue
        width = group if group is not None and old.shape[-1] % group == 0 else old.shape[-1]
        parts, found = old.reshape(-1, width), new.reshape(-1, width)
        steps = np.abs(parts).max(-1, keepdims=True) / top
        assert np.all(np.abs(parts - found) <= steps * 0.501)
        assert np.allclose(found / steps, np.round(found / steps), atol=1e-3)


def test_zeros_stay_and_groups_must_fit() -> None:
    quantizer: Any = nn.WeightQuantizer(4, 3)
    zeros = nn.Param(pt.zeros((2, 6)))
    assert quantizer("w", zeros).value.numpy().tolist() == np.zeros((2, 6)).tolist()
    with pytest.raises(ArgumentError, match="do not divide the last axis of w"):
        quantizer("w", nn.Param(pt.zeros((2, 4))))


def test_a_record_of_adapters_holds_what_else_was_trained_and_the_statistics(
    tmp_path: Path,
) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm(3), nn.Linear(3, 2))
    adapted = nn.apply_lora(model, 2, "layers.0").unfreeze("layers.2")
    changed = adapted.map(lambda _, p: p if p.frozen else p.with_value(p.value.detach() + 0.5))
    record = nn.lora_record(changed)
    assert set(record) == {
        "layers.0", "layers.1.running_mean", "layers.1.running_var", "layers.2.weight",
        "layers.2.bias",
    }  # fmt: skip
    path = pr.SafetensorsRecorder().record(record, tmp_path / "adapters")
    x = pt.random.normal((4, 3))
    for fresh in (adapted, nn.apply_lora(model, 2, "layers.0")):  # where the head is frozen, too
        again = nn.load_lora_record(fresh, pr.SafetensorsRecorder().load(path))
        assert np.array_equal(again(x).numpy(), changed(x).numpy())
    less = {at: part for at, part in record.items() if at != "layers.2.bias"}
    with pytest.raises(RecordError, match=r"lacks.*expected layers.2.bias(.|\n)*freeze\('layers.2"):
        nn.load_lora_record(adapted, less)
    for wrong in (pt.ones(3), "text"):
        with pytest.raises(RecordError, match=r"layers.2.bias is (another|no) tensor"):
            nn.load_lora_record(adapted, {**record, "layers.2.bias": wrong})
    stored = nn.quantize_weights(nn.Sequential(nn.Linear(64, 64)))
    assert list(nn.lora_record(nn.apply_lora(stored, 2))) == ["layers.0"]
