"""Names, settings and attributes of torch.nn: what our errors say does what they do there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import nn
from phlox_nn._elsewhere import ARGUMENTS, INITIALIZERS, METHODS, NAMES
from phlox_nn.settings.elsewhere import SETTINGS
from tests.names.given import GIVEN


def _rows(name: str) -> list[list[str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [row.split(" ; ") for row in text.splitlines() if not row.startswith("#")]


LAYERS = _rows("layers.txt")
CALLS = [[row[0], row[-2], row[-1]] for row in _rows("settings.txt")]  # the same there unless said
_AT_RANDOM = "values at random, which tests/layers look at"
_LAZY = "sizes are given here"
_PARTS = "parts of a module, not a function"
_TWINS = "tests/training/twins.py has the layers"
# Names and settings that no line compares, and why.
APART = {
    "AdaptiveLogSoftmaxWithLoss": "of all classes here",
    "BatchNormalization": "of Keras, which is no peer",
    "Buffer": _PARTS,
    "Container": _PARTS,
    "CrossMapLRN2d": "its windows keep the first channels, as of PyTorch 2.15: no mean of five",
    "DataParallel": "one device here",
    "Dense": "of Keras, which is no peer",
    "Dropout1d": _AT_RANDOM,
    "Dropout2d": _AT_RANDOM,
    "Dropout3d": _AT_RANDOM,
    "FractionalMaxPool2d": _AT_RANDOM,
    "FractionalMaxPool3d": _AT_RANDOM,
    **{name: _LAZY for name in NAMES if name.startswith(("Lazy", "Uninitialized"))},
    "ModuleDict": _PARTS,
    "ModuleList": _PARTS,
    "Parameter": _PARTS,
    "ParameterDict": _PARTS,
    "ParameterList": _PARTS,
    "RNNBase": _PARTS,
    "RNNCellBase": _PARTS,
    "Transformer": _PARTS,
    "clip_grad_norm_": "packages/optim/tests compare it",
    "clip_grad_value_": "packages/optim/tests compare it",
    "functional": _PARTS,
    "init": _PARTS,
    "parallel": _PARTS,
    "utils": _PARTS,
}
SETTINGS_APART = {
    **dict.fromkeys(("lower", "p", "upper"), _AT_RANDOM),
    **dict.fromkeys(
        (
            "dilation_rate", "dropout_rate", "embeddings_initializer", "feature_group_count",
            "features", "filters", "go_backwards", "groups", "ignore_class", "input_dim",
            "intermediate_dim", "kernel_dilation", "kernel_init", "kernel_initializer",
            "output_dim", "pool_size", "qkv_features", "rate", "recurrent_activation", "strides",
            "units", "use_bias", "use_scale", "weight_init", "window_shape",
        ),
        "words of Keras and Flax",
    ),
    **dict.fromkeys(
        (
            "decoder_layer", "dim_feedforward", "embed_dim", "encoder_layer", "kdim", "nhead",
            "layer_norm_eps", "norm", "num_heads", "vdim",
        ),
        _TWINS,
    ),
    **dict.fromkeys(
        (
            "head_dim", "hidden_dropout_prob", "intermediate_size", "max_position_embeddings",
            "n_embd", "n_head", "n_layer", "n_positions", "num_attention_heads", "num_classes",
            "num_hidden_layers", "num_key_value_heads", "resid_pdrop", "rms_norm_eps",
            "rope_theta", "sliding_window", "tie_word_embeddings", "type_vocab_size", "vocab_size",
        ),
        "of whole models: tests/layers/test_models.py",
    ),
}  # fmt: skip
MASK = np.array([[False, True, True], [False, False, True], [True, False, False]])
PADDING = np.array([[False, False, True], [False, False, False]])
ATTRIBUTES = [
    ("Bilinear", (5, 6, 7), "out_features"),
    ("Conv2d", (8, 4, 3), "in_channels"),
    ("Conv2d", (8, 4, 3), "out_channels"),
    ("ConvTranspose2d", (8, 4, 3), "in_channels"),
    ("ConvTranspose2d", (8, 4, 3), "out_channels"),
    ("Linear", (2, 3), "in_features"),
    ("BatchNorm", (4,), "num_features"),
    ("Bilinear", (5, 6, 7), "in1_features"),
    ("Conv2d", (2, 3, 5), "kernel_size"),
    ("Dropout", (0.25,), "p"),
    ("Embedding", (10, 4), "num_embeddings"),
    ("LayerNorm", (4,), "normalized_shape"),
    ("Linear", (2, 3), "out_features"),
    ("Lstm", (3, 4), "hidden_size"),
    ("MultiHeadAttention", (8, 2), "num_heads"),
]


def test_weights_of_a_model_come_from_a_file() -> None:
    resnet: Any = nn.models.resnet18
    for word in ("weights", "pretrained"):
        with pytest.raises(px.UnknownArgumentError, match="load_file"):
            resnet(**{word: "DEFAULT"})


def test_every_name_and_setting_is_compared_or_says_why_not() -> None:
    assert {row[0] for row in LAYERS} ^ set(APART) == set(NAMES)
    used = {word for row in CALLS for word in re.findall(r"\b(\w+)=", row[0])} & set(SETTINGS)
    assert used ^ set(SETTINGS_APART) == set(SETTINGS)
    assert not used & set(SETTINGS_APART)


@pytest.mark.parametrize(("kind", "sizes", "name"), ATTRIBUTES)
def test_a_size_is_that_of_the_layer(kind: str, sizes: tuple[int, ...], name: str) -> None:
    layer = getattr(nn, kind)(*sizes)
    places = {"in_channels": 0, "in_features": 0, "out_channels": 1, "out_features": -1}
    places |= {"hidden_size": 1, "kernel_size": 2, "num_heads": 1}
    with pytest.raises(px.UnknownNameError) as caught:
        getattr(layer, name)
    assert eval(str(caught.value.hint), {"layer": layer}) == sizes[places.get(name, 0)]


def test_what_is_said_of_methods_runs() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    names = {"model": model, "px": px, "nn": nn, "device": px.Cpu(), "layer": model.layers[0]}
    names |= {
        "x": px.ones((1, 2)),
        "layers": [],
        "i": 1,
        "function": lambda path, part: None,
        "table": px.ones((2, 3)),
    }
    ran = 0
    for name, hint in METHODS.items():
        code = hint.partition("  # ")[0].partition("; ")[0].partition(", or ")[0]
        if re.search(r"self|channels|\(path\b|record|optimizer|backward|name=|look", code) is None:
            exec(code, dict(names))
            ran += 1
        assert hint.count("(") == hint.count(")"), name
    assert ran > 20


def test_a_weight_of_a_binary_loss_is_no_weight_of_the_yes() -> None:
    loose: Any = nn
    with pytest.raises(px.UnknownArgumentError) as caught:
        loose.BinaryCrossEntropyLoss(weight=(2.0, 3.0))
    code = re.search(r"loss = (.*); weights= is", str(caught.value.hint))
    assert code is not None
    x, y, weight = (px.asarray(v) for v in ([[1.0, -2.0]], [[1.0, 0.0]], [2.0, 3.0]))
    found = eval(code[1], {"nn": nn, "px": px, "x": x, "y": y, "weight": weight})
    each = px.asarray([0.31326169, 0.126928])
    px.testing.assert_close(found, (each * weight).mean())


def _called(layer: Any, inputs: str, convert: Any) -> Any:
    given = {name: convert(value) for name, value in GIVEN.items()}
    out = layer(*eval(f"({inputs},)", given))
    return out[0] if isinstance(out, tuple) else out


def _loaded(layer: Any, theirs: Any) -> Any:
    """Our layer with the weights of the other."""
    state = theirs.state_dict() if hasattr(theirs, "state_dict") else {}
    record = {name: value.numpy() for name, value in state.items()}
    return layer.load_record(record, layout="pytorch") if record and layer.num_params() else layer


def _compared(layer: Any, theirs: Any, inputs: str) -> str:
    from tests.names.beside import difference, to_ours, to_torch

    mine = _called(_loaded(layer, theirs), inputs, to_ours)
    return difference(mine, _called(theirs, inputs, to_torch), 1e-4)


@pytest.mark.long
@pytest.mark.parametrize(("name", "code", "inputs"), LAYERS, ids=[row[0] for row in LAYERS])
def test_a_layer_is_that_of_pytorch(name: str, code: str, inputs: str) -> None:
    from tests.names.beside import MODULES

    theirs = eval(code, MODULES)
    theirs = theirs.eval() if hasattr(theirs, "eval") else theirs
    layer = eval(NAMES[name].partition("  #")[0], MODULES | {"channels": 2 if "3d" in name else 4})
    assert _compared(layer, theirs, inputs) == ""


# What torch.nn.init is called with, where our hint has the same numbers.
FILLED = {
    "constant_": "0.5", "kaiming_normal_": "", "kaiming_uniform_": "", "normal_": "std=0.02",
    "ones_": "", "orthogonal_": "", "trunc_normal_": "std=0.02", "uniform_": "-0.1, 0.1",
    "xavier_normal_": "", "xavier_uniform_": "", "zeros_": "",
}  # fmt: skip


def test_every_way_to_fill_a_weight_is_compared_or_takes_a_tensor() -> None:
    assert {name for name in INITIALIZERS if name not in FILLED} == {"dirac_", "eye_", "sparse_"}


@pytest.mark.long
@pytest.mark.parametrize("name", FILLED)
def test_first_values_have_the_distribution_of_pytorch(name: str) -> None:
    from tests.names.beside import stats, torch

    px.seed(0)
    torch.manual_seed(0)
    layer = nn.Linear(200, 100)
    names: dict[str, Any] = {"layer": layer, "nn": nn}
    exec(INITIALIZERS[name], names)
    made = names["layer"]
    there = torch.empty(100, 200)
    eval(f"init.{name}(there, {FILLED[name]})", {"init": torch.nn.init, "there": there})
    part = made.bias if "bias" in INITIALIZERS[name] else made.weight
    mine, theirs = part.value.numpy().ravel(), there.numpy().ravel()
    assert stats.ks_2samp(mine, theirs[: mine.size]).statistic < (
        0.027 if mine.size > 100 else 0.01
    )


MASKS = [
    ("attention(x, mask=mask)", "attention(x, x, x, attn_mask=mask)"),
    ("attention(x, padding=padding)", "attention(x, x, x, key_padding_mask=padding)"),
    ("encoder(x, mask=mask)", "encoder(x, src_mask=mask)"),
    ("encoder(x, padding=padding)", "encoder(x, src_key_padding_mask=padding)"),
    ("decoder(x, x, mask=mask)", "decoder(x, x, tgt_mask=mask)"),
    ("decoder(x, x, padding=padding)", "decoder(x, x, tgt_key_padding_mask=padding)"),
    ("decoder(x, x, memory_padding=padding)", "decoder(x, x, memory_key_padding_mask=padding)"),
]
# Arguments that are the same tensor by another name.
SAME_ARGUMENTS = {
    "h0", "hx", "initial_state", "input", "memory", "output_size", "per_sample_weights", "target",
    "tgt_is_causal", "use_causal_mask",
}  # fmt: skip


def test_every_argument_of_others_is_compared_or_is_the_same_tensor() -> None:
    words = {word for _, theirs in MASKS for word in re.findall(r"\b(\w+)=", theirs)}
    assert set(ARGUMENTS) - words <= SAME_ARGUMENTS


@pytest.mark.long
@pytest.mark.parametrize(("ours", "theirs"), MASKS, ids=[row[1] for row in MASKS])
def test_masks_of_layers_mean_what_they_mean_in_pytorch(ours: str, theirs: str) -> None:
    from tests.names.beside import difference, to_ours, to_torch, torch

    there = {
        "attention": torch.nn.MultiheadAttention(4, 2, batch_first=True).eval(),
        "decoder": torch.nn.TransformerDecoderLayer(4, 2, 8, 0.0, batch_first=True).eval(),
        "encoder": torch.nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True).eval(),
    }
    here: dict[str, Any] = {
        "attention": nn.MultiHeadAttention(4, 2),
        "decoder": nn.TransformerDecoderLayer(4, 2, 8, 0.0),
        "encoder": nn.TransformerEncoderLayer(4, 2, 8, 0.0),
    }
    here = {name: _loaded(layer, there[name]) for name, layer in here.items()}
    given = {"x": GIVEN["c"], "mask": MASK, "padding": PADDING}
    mine = eval(ours, here | {name: to_ours(value) for name, value in given.items()})
    other = eval(theirs, there | {name: to_torch(value) for name, value in given.items()})
    other = other[0] if isinstance(other, tuple) else other
    assert difference(mine, other, 1e-4) == ""


def _written(code: str) -> Any:
    """The layer of a line, with the settings that our errors say."""
    from tests.names.beside import MODULES

    try:
        return eval(code, MODULES)
    except px.UnknownNameError as error:
        called = ast.unparse(ast.parse(code).body[0].value.func)  # type: ignore[attr-defined]
        return _written(code.replace(called, str(error.hint).partition("(")[0]))
    except px.UnknownArgumentError as error:
        setting = str(error.hint).removesuffix("=...")  # another hint would not be a line of code
        return _written(re.sub(rf"\b{error.got}=", f"{setting}=", code))


@pytest.mark.long
@pytest.mark.parametrize(("code", "other", "inputs"), CALLS, ids=[row[0] for row in CALLS])
def test_a_setting_does_what_it_does_in_pytorch(code: str, other: str, inputs: str) -> None:
    from tests.names.beside import MODULES

    theirs = eval(other.replace("nn.", "torch.nn."), MODULES).eval()
    assert _compared(_written(code), theirs, inputs) == ""
