"""Masks of attention with three axes: as PyTorch has them, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import models
from phlox_tensor import KindError, ShapeError, UnknownArgumentError

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_mask_of_three_axes_has_one_for_each_example_and_head(dropout: float) -> None:
    layer, x = nn.MultiHeadAttention(4, 2, dropout), pt.asarray(X)
    both = np.random.default_rng(1).random((2, 2, 3, 3)) < 0.4
    both[..., 0] = False
    whole, flat = pt.asarray(both), pt.asarray(both.reshape(4, 3, 3))
    assert np.array_equal(layer(x, mask=flat).numpy(), layer(x, mask=whole).numpy())
    added = whole.astype("float32")
    one = layer(x, bias=added).numpy()
    assert np.array_equal(layer(x, bias=added.reshape(4, 3, 3)).numpy(), one)
    assert np.array_equal(layer(x, mask=flat[:1]).numpy(), layer(x, mask=flat[0]).numpy())
    alone = layer(x[:1], mask=flat[:2]).numpy()  # one example has as many as heads
    assert np.array_equal(alone, layer(x[:1], mask=whole[:1]).numpy())


def test_a_mask_of_examples_or_of_heads_says_which() -> None:
    layer, x = nn.MultiHeadAttention(4, 2), pt.asarray(X)
    mask = pt.zeros((2, 3, 3)).astype("bool")  # as many examples as heads
    with pytest.raises(ShapeError, match=r"could be that of examples or of heads") as error:
        layer(x, mask=mask)
    assert "hint: mask[:, None] for one of each example, mask[None]" in str(error.value)
    with pytest.raises(ShapeError, match=r"hint: bias\[:, None\]"):
        layer(x, bias=mask.astype("float32"))
    for given in (mask[:, None], mask[None]):
        assert layer(x, mask=given).shape == x.shape
    assert layer(x[0], mask=mask).shape == (3, 4)  # without a batch the axis is that of heads


def given() -> dict[str, Any]:
    """As a tokenizer gives it: 1 for a token, 0 for what fills up."""
    return {
        "input_ids": pt.asarray([[1, 2, 3, 0], [4, 5, 6, 7]]),
        "attention_mask": pt.asarray([[1, 1, 1, 0], [1, 1, 1, 1]]),
        "token_type_ids": pt.asarray([[0, 0, 1, 1], [0, 1, 1, 1]]),
    }


def bert() -> models.Bert:
    return models.BertConfig(9, 4, 2, d_model=4, n_layers=1, n_heads=2, d_ff=8).init()


def test_hints_for_what_a_tokenizer_gives_run_and_hide_what_fills_up() -> None:
    model: Any = bert()
    left, typed = given(), list[str]()
    for name in given():
        with pytest.raises(UnknownArgumentError, match=rf"got {name}, ") as caught:
            model(**left)
        assert caught.value.hint is not None
        left.pop(name)
        typed.append(caught.value.hint)
    names = given()
    found = eval(f"model({', '.join(typed)})", {"model": model, **names})
    want = model(names["input_ids"], names["attention_mask"] == 0, names["token_type_ids"])
    assert np.array_equal(found.numpy(), want.numpy())
    with pytest.raises(UnknownArgumentError, match="hint: leave it out"):
        model(names["input_ids"], position_ids=names["input_ids"])


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_a_mask_of_numbers_is_refused_with_both_of_its_meanings(dtype: str) -> None:
    model, ids, mask = bert(), given()["input_ids"], given()["attention_mask"].astype(dtype)
    layer: Any = nn.MultiHeadAttention(4, 2, dropout=0.5)
    calls: list[Any] = [
        lambda padding: model(ids, padding),
        lambda padding: layer(pt.asarray(X), padding=padding[:, :3]),
        lambda padding: layer.with_training(True)(pt.asarray(X), padding=padding[:, :3]),
    ]
    for call in calls:
        with pytest.raises(KindError, match="hint: padding == 0, where 1 stands for what is seen"):
            call(mask)
        assert call(mask == 0).dtype.kind == "Float"
    q = pt.ones((2, 1, 4, 4))
    with pytest.raises(KindError, match=r"hint: mask == 0, where 1.*; mask != 0, where"):
        pt.attention(q, q, q, mask[:, None, None, :])
