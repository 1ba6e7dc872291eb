"""Settings and values in the words of Keras, Flax and PyTorch: what the errors say runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn.settings.elsewhere import MADE, NO_SETTINGS

LOOSE: Any = nn
LSTM, CONV, LINEAR = ("Lstm", 3, 4), ("Conv2d", 3, 4, 3), ("Linear", 3, 4)
X = np.array([[0.5, -1.0], [2.0, 0.1]], np.float32)
Y = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
# A layer and its sizes, a setting of others, and what the hint gives as keywords here.
SETTINGS: list[tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    (LSTM, {"activation": "relu"}, {"cell_activation": "relu", "hidden_activation": "relu"}),
    (("Gru", 3, 4), {"activation": "relu"}, {"hidden_activation": "relu"}),
]
VALUES: list[tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]] = [
    (("Activation", "swish"), {}, {"name": "silu"}),
    (("Activation", "LeakyReLU"), {}, {"name": "leaky_relu"}),
    (("Activation", pt.relu), {}, {"name": "relu"}),
    (LSTM, {"gate_activation": "hard-sigmoid"}, {"gate_activation": "hard_sigmoid"}),
    (("KlDivLoss",), {"reduction": "batchmean"}, {"reduction": "batch_mean"}),
    (("L1Loss",), {"reduction": "elementwise_mean"}, {"reduction": "mean"}),
    (("Pad", ((1, 1),)), {"mode": "wrap"}, {"mode": "circular"}),
    (("Linear", 3.0, 4), {}, {"d_input": 3}),
    (("Linear", np.int64(3), 4), {}, {"d_input": 3}),
    (CONV, {"stride": (2,)}, {"stride": 2}),
    (("CrossEntropyLoss",), {"pad_tokens": -100}, {"pad_tokens": (-100,)}),
    (("CrossEntropyLoss",), {"weights": [1, 2]}, {"weights": (1, 2)}),
]


def refused(make: tuple[Any, ...], **settings: Any) -> str:
    """The hint of the error for a layer."""
    with pytest.raises(pt.PhloxError) as caught:
        getattr(LOOSE, make[0])(*make[1:], **settings)
    assert caught.value.hint, (make, settings)
    return str(caught.value.hint)


@pytest.mark.parametrize(("make", "wrong", "right"), SETTINGS + VALUES)
def test_a_word_of_others_says_ours(
    make: tuple[Any, ...], wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    code = refused(make, **wrong).partition(";")[0]
    assert eval(f"dict({code})") == right
    named = dict(zip(("name", "d_output"), make[1:], strict=False))
    rest = {} if set(right) & {"name", "d_input"} else dict(wrong)
    sizes = make[1:] if not set(right) & {"name", "d_input"} else ()
    more = {"d_output": named["d_output"]} if "d_input" in right else {}
    getattr(LOOSE, make[0])(*sizes, **{k: v for k, v in rest.items() if k in right} | right | more)


@pytest.mark.parametrize("kind", [tuple, list, np.asarray, pt.asarray])
def test_weights_of_examples_are_a_product(kind: Any) -> None:
    weight = kind([2.0, 3.0])
    x, y = pt.asarray(X), pt.asarray(Y)
    code = refused(("BinaryCrossEntropyLoss",), weight=weight).partition(";")[0]
    given = {"nn": nn, "px": pt, "x": x, "y": y, "weight": weight}
    exec(code, given)
    want = ((np.log1p(np.exp(X)) - X * Y) * np.array([2.0, 3.0])).mean()
    assert given["loss"].item() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weights_of_examples_keep_the_other_settings(reduction: str) -> None:
    given: dict[str, Any] = {"nn": nn, "px": pt, "x": pt.asarray(1 / (1 + np.exp(-X)))}
    given |= {"y": pt.asarray(Y, dtype=given["x"].dtype), "weight": [2.0, 3.0]}
    settings: dict[str, Any] = {"from_logits": False, "reduction": reduction}
    code = refused(("BinaryCrossEntropyLoss",), weight=given["weight"], **settings)
    exec(code.partition(";")[0], given)
    want = (np.log1p(np.exp(X)) - X * Y) * np.array([2.0, 3.0])
    want = want if reduction == "none" else getattr(want, reduction)()
    np.testing.assert_allclose(given["loss"].numpy(), want, rtol=1e-5)


def test_a_padding_of_another_kind_keeps_its_sizes() -> None:
    hints: dict[str, dict[str, Any]] = {
        'nn.Pad(((2, 2), (2, 2)), mode="circular")': {"padding": 2, "padding_mode": "circular"},
        'nn.Pad(((1, 1), (0, 0)), mode="edge")': {"padding": (1, 0), "padding_mode": "replicate"},
        "leave it out": {"padding": 1, "padding_mode": "zeros"},
    }
    for hint, settings in hints.items():
        assert refused(CONV, **settings).startswith(hint)


def test_functions_of_torch_are_those_of_px() -> None:
    for name in ("max_pool1d", "max_pool2d", "cross_entropy", "one_hot", "conv2d"):
        with pytest.raises(pt.UnknownNameError) as caught:
            getattr(nn, name)
        assert caught.value.hint == f"px.{name}"
    with pytest.raises(pt.UnknownNameError, match=r"hint: \(x - y\)\.square\(\)\.mean\(\)"):
        _ = LOOSE.mse_loss


@pytest.mark.parametrize("kind", [np.asarray, pt.asarray])
def test_weights_of_classes_are_a_tuple(kind: Any) -> None:
    values = kind([2.0, 3.0])
    for name in ("CrossEntropyLoss", "BinaryCrossEntropyLoss", "MultiMarginLoss"):
        code = refused((name,), weights=values)
        settings = eval(f"dict({code})", {"values": values})
        assert getattr(LOOSE, name)(**settings).weights == (2.0, 3.0)


@pytest.mark.parametrize("word", [*MADE, "TruncatedNormal", "he_normal", "xavier_uniform_"])
def test_an_initializer_by_its_name_says_the_object(word: str) -> None:
    settings = eval(f"dict({refused(LINEAR, initializer=word)})", {"nn": nn})
    assert nn.Linear(3, 4, **settings).weight.shape == (3, 4)


LACKED: dict[tuple[Any, ...], str] = {
    LINEAR: "bias_init bias_initializer trainable rngs seed key",
    CONV: "bias_initializer trainable data_format padding_mode",
    LSTM: "kernel_initializer recurrent_initializer bias_initializer return_sequences return_state "
    "stateful recurrent_dropout",
    ("BatchNorm", 3): "beta_initializer gamma_initializer axis",
    ("MaxPool2d", 2): "data_format",
    ("Dropout", 0.5): "noise_shape seed",
}


@pytest.mark.parametrize(("make", "words"), LACKED.items())
def test_a_setting_that_a_layer_lacks_says_code_that_runs(make: Any, words: str) -> None:
    layer = getattr(LOOSE, make[0])(*make[1:])
    x = pt.ones((2, 3, 3)) if make is LSTM else pt.ones((1, 3, 4, 4))
    names = {"nn": nn, "px": pt, "layer": layer, "x": x, "state": None}
    for word in words.split():
        hint = refused(make, **{word: 1})
        assert hint == NO_SETTINGS[word]
        exec(re.split(r" before it| for |: | drops ", hint)[0 if ": x." not in hint else 1], names)


def test_settings_of_keras_and_flax_are_ours_by_other_names() -> None:
    words: dict[str, Any]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {
        LINEAR: {"units": 4, "kernel_init": 1, "features": 4},
        LSTM: {"units": 4, "recurrent_activation": "relu", "go_backwards": True},
        ("Embedding", 5, 4): {"input_dim": 5, "output_dim": 4, "embeddings_initializer": 1},
        ("MaxPool2d", 2): {"pool_size": 2, "window_shape": 2},
        CONV: {"filters": 4, "feature_group_count": 1, "kernel_dilation": 2},
        ("MultiHeadAttention", 8, 2): {"qkv_features": 8, "key_dim": 4, "dropout_rate": 0.5},
    }
    for make, words in rows.items():
        known = getattr(LOOSE, f"{make[0]}Config").__dataclass_fields__
        for word, value in words.items():
            assert refused(make, **{word: value}).removesuffix("=...") in known


@pytest.mark.parametrize(
    ("layer", "word", "hint"),
    [
        (nn.CrossEntropyLoss(), "reduction", "nn.CrossEntropyLoss(..., reduction=...)"),
        (nn.CrossEntropyLoss(), "ignore_index", "nn.CrossEntropyLoss(..., pad_tokens=...)"),
        (nn.BinaryCrossEntropyLoss(), "pos_weight", "nn.BinaryCrossEntropyLoss(..., weights="),
        (nn.BinaryCrossEntropyLoss(), "weight", "px.asarray(weight, device=x.device)).mean()"),
        (nn.LayerNorm(2), "eps", "nn.LayerNorm(..., epsilon=...)"),
        (nn.Dropout(0.5), "training", "model.valid()"),
        (nn.Lstm(2, 3), "initial_state", "state=..."),
        (nn.Lstm(2, 3), "mask", "lengths=..."),
        (nn.MultiHeadAttention(2, 1), "use_causal_mask", "is_causal=..."),
    ],
)
def test_a_setting_in_the_call_says_where_it_goes(layer: Any, word: str, hint: str) -> None:
    with pytest.raises(pt.UnknownArgumentError) as caught:
        layer(pt.asarray(X), **{word: None})
    assert hint in str(caught.value.hint)
