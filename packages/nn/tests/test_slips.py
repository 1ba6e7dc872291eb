"""Slips of everyday use: each is an error that says what to type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import _elsewhere
from phlox_tensor import (
    ArgumentError,
    IndexOutOfRangeError,
    KindError,
    Spec,
    UnknownNameError,
    WrongTypeError,
    float32,
)

LOOSE: Any = nn


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (LOOSE.Linear, r"got none, expected d_input, d_output\nhint: d_input=\.\.\., d_output="),
        (
            lambda: LOOSE.Linear(3),
            r"got d_input, expected d_input, d_output\nhint: d_output=\.\.\.",
        ),
        (lambda: LOOSE.LinearConfig(bias=False), r"got bias, expected d_input, d_output"),
        (lambda: LOOSE.Flatten(1, 2, 3), r"more values than settings: got 3, expected start_axis"),
    ],
)
def test_settings_without_a_value_are_named(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(WrongTypeError, match=text):
        make()


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: LOOSE.Conv2d(3, 4, [3, 3]), r"kernel_size=\(3, 3\)"),
        (lambda: LOOSE.LayerNorm([2, 3]), r"d_model=\(2, 3\)"),
        (lambda: LOOSE.CrossEntropyLoss(weights=[1.0, 2.0]), r"weights=\(1\.0, 2\.0\)"),
    ],
)
def test_a_list_in_the_place_of_a_tuple_says_the_tuple(make: Callable[[], Any], hint: str) -> None:
    with pytest.raises(nn.ConfigError, match=rf"got \[.*\nhint: {hint}"):
        make()
    with pytest.raises(nn.ConfigError) as error:
        LOOSE.Conv2d(3, 4, [3, 3, 3])  # three are wrong as a tuple too
    assert error.value.hint is None


def test_functions_of_a_path_and_what_stands_there_are_asked_for() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    loose: Any = model
    one: Any = lambda param: param  # noqa: E731 - what a user would type
    uses: list[tuple[Callable[[], Any], str]] = [
        (lambda: loose.map(one), r"\[map\].*\n?hint: model\.map\(lambda path, param"),
        (lambda: loose.visit(one), r"\[visit\].*\n?hint: model\.visit\(lambda path, param"),
        (lambda: nn.map_modules(loose, one), r"hint: nn\.map_modules\(model, lambda path, module"),
        (lambda: nn.visit_modules(loose, one), r"hint: nn\.visit_modules\(model, lambda path, mo"),
        (lambda: nn.visit_modules(loose, lambda a, b: None, one), r"\[visit_modules\]"),
    ]
    for use, text in uses:
        with pytest.raises(WrongTypeError, match=text):
            use()
    nothing: Any = lambda path, module: None  # noqa: E731 - the same
    with pytest.raises(WrongTypeError, match=r"layers\.0 becomes no module: got NoneType"):
        nn.map_modules(model, nothing)

    def fails(path: str, param: nn.Param) -> nn.Param:
        raise TypeError("of its own")

    with pytest.raises(TypeError, match="of its own"):
        model.map(fails)


def test_a_summary_takes_what_the_model_takes() -> None:
    model, x = nn.Linear(3, 2), pt.ones((2, 3))
    with pytest.raises(ArgumentError, match=r"hint: nn\.summary\(model, \*inputs\)"):
        nn.summary(model, (x,))
    with pytest.raises(ArgumentError, match=r"hint: nn\.summary\(model, px\.Spec\(\(2, 3\)"):
        nn.summary(model, (2, 3))
    assert nn.summary(model, Spec((2, 3), float32)).parameters == 8
    with pytest.raises(pt.ShapeError, match="inner sizes differ"):
        nn.summary(model, pt.ones((2, 4)))


def test_a_sequence_of_layers_does_not_grow_and_says_how() -> None:
    model: Any = nn.Sequential(nn.Linear(3, 2))
    for name in ("append", "extend", "insert"):
        with pytest.raises(UnknownNameError, match=r"hint: model = nn\.Sequential\("):
            getattr(model, name)
    for place in (1, -2):
        with pytest.raises(
            IndexOutOfRangeError, match=r"got -?\d, expected -1 to 0\nhint: nn\.Seq"
        ):
            model[place]
    assert [type(layer) for layer in model] == [nn.Linear]
    for wrong, hint in (
        (nn.Linear, r"Linear\(\.\.\.\)"),
        (nn.LinearConfig(2, 2), r"config\.init\(\)"),
    ):
        with pytest.raises(ArgumentError, match=rf"hint: {hint}"):
            LOOSE.Sequential(wrong)


def test_settings_that_were_not_made_a_layer_of_say_so() -> None:
    config: Any = nn.LinearConfig(3, 2)
    for name in ("forward", "valid", "weight"):
        with pytest.raises(UnknownNameError, match=r"hint: config\.init\(\) makes the Linear"):
            getattr(config, name)
    with pytest.raises(UnknownNameError, match=r"hint: config\.d_input"):
        _ = config.d_inpt
    assert not hasattr(config, "_hidden")
    assert not hasattr(config, "weight")


@pytest.mark.parametrize("loss", [nn.MseLoss(), nn.L1Loss(), nn.BinaryCrossEntropyLoss()])
def test_targets_of_another_kind_name_the_loss(loss: Any) -> None:
    x = pt.ones((2, 3))
    for targets in (pt.ones((2, 3)).astype("int32"), pt.ones((2, 3)).astype("bool")):
        with pytest.raises(KindError, match=r"_loss\] predictions and targets are of different"):
            loss(x, targets)
    signs = pt.asarray([[1, -1, 1], [-1, 1, 1]])  # where they only choose
    assert LOOSE.HingeEmbeddingLoss()(x, signs).shape == ()


def test_targets_that_are_no_classes_name_the_loss() -> None:
    x = pt.ones((2, 3))
    for loss, targets in ((nn.MultiMarginLoss(), pt.zeros((2,))), (nn.MultiLabelMarginLoss(), x)):
        with pytest.raises(KindError, match=r"margin_loss\] targets are not class indices"):
            LOOSE.Module.__call__(loss, x, targets)


@pytest.mark.parametrize("name", _elsewhere.INITIALIZERS)
def test_an_initializer_of_pytorch_says_what_to_type(name: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        getattr(nn.initializers, name)
    hint = _elsewhere.INITIALIZERS[name]
    assert error.value.hint == hint
    before = nn.Linear(2, 3)
    names: dict[str, Any] = {"nn": nn, "px": pt, "layer": before, "x": pt.ones((2, 3))}
    exec(hint.replace("px.eye(3)", "px.ones((2, 3))"), names)
    assert isinstance(names["layer"], nn.Linear)
    assert names["layer"] is not before


def test_a_near_initializer_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"hint: nn\.initializers\.Orthogonal"):
        _ = LOOSE.initializers.Ortogonal
    with pytest.raises(AttributeError, match="_nothing"):
        _ = LOOSE.initializers._nothing


def writer() -> nn.models.Gpt:
    pt.seed(0)
    return nn.models.GptConfig(words=6, positions=40, d_model=4, n_layers=1, n_heads=1).init()


def test_a_share_chooses_among_the_likeliest() -> None:
    gpt, start = writer(), pt.asarray([[1]])
    likeliest = gpt.generate(start, 20, temperature=0.0).tolist()
    assert gpt.generate(start, 20, top_p=1e-6).tolist() == likeliest
    pt.seed(3)
    free = gpt.generate(start, 20).tolist()
    pt.seed(3)
    assert gpt.generate(start, 20, top_p=1.0).tolist() == free
    assert free != likeliest


@pytest.mark.parametrize("share", [0.0, -0.5, 1.5])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ArgumentError, match=r"top_p is no share: got .*, expected 0 < top_p <= 1"):
        writer().generate(pt.asarray([[1]]), 2, top_p=share)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            nn.LinearConfig(3, 2),
            r"\[LinearConfig\].*expected the Linear that.*\nhint: layer = config\.init\(\)",
        ),
        (nn.MseLossConfig(), r"\[MseLossConfig\](.|\n)*hint: layer = config\.init\(\)"),
    ],
)
def test_a_config_that_is_called_says_to_make_the_layer_first(config: Any, text: str) -> None:
    with pytest.raises(WrongTypeError, match=text):
        config(pt.ones((1, 3)))
    with pytest.raises(ArgumentError, match=r"not a layer: got \w+Config(.|\n)*config\.init\(\)"):
        nn.Sequential(config)


def test_a_name_near_a_setting_may_be_one_of_what_the_config_makes() -> None:
    with pytest.raises(UnknownNameError, match=r"hint: config\.bias; config\.init\(\) makes the"):
        _ = LOOSE.LinearConfig(3, 2).biases


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: LOOSE.CrossEntropyLoss(weights=pt.asarray([1.0, 2.0])), r"weights=tuple\("),
        (lambda: LOOSE.Interpolate(2, mode="area"), r"nn\.AdaptiveAvgPool2d\(size\)"),
        (lambda: LOOSE.Interpolate(2, mode="bilinear"), 'mode="linear"'),
        (lambda: LOOSE.Interpolate(2, mode="nearest-exact"), 'mode="nearest_exact"'),
        (lambda: LOOSE.Linear(2, 3, initializer="kaiming"), r"nn\.initializers\.KaimingUniform"),
        (lambda: LOOSE.Linear(2, 3, initializer=pt.ones), r"nn\.initializers\.Ones\(\)"),
        (lambda: LOOSE.Pad(((1, 1),), mode="replicate"), 'mode="edge"'),
        (lambda: LOOSE.Pad(((1, 1),), mode="wrap"), 'mode="circular"'),
        (lambda: LOOSE.Sequential({"a": nn.Linear(2, 3)}), r"nn\.Sequential\(\*layers"),
    ],
)  # fmt: skip
def test_values_of_other_libraries_say_what_to_type(call: Any, hint: str) -> None:
    with pytest.raises(ValueError, match=rf"hint: .*{hint}"):
        call()


def test_tokens_that_are_no_tensor_say_what_generate_takes() -> None:
    config = nn.models.GptConfig(words=7, positions=8, d_model=4, n_heads=2, n_layers=1)
    model: Any = config.init()
    for tokens, count in (([[1, 2]], 3), (pt.asarray([[1, 2]]), 2.5)):
        with pytest.raises(TypeError, match=r"hint: model\.generate\(px\.asarray"):
            model.generate(tokens, count)
    with pytest.raises(pt.UnknownArgumentError):
        model.generate(pt.asarray([[1, 2]]), max_new_tokens=3)


def test_an_error_says_in_which_layer_it_is_raised() -> None:
    inner = nn.Sequential(nn.Activation("relu"), nn.Linear(4, 5))
    model = nn.Sequential(nn.Linear(2, 3), inner)
    with pytest.raises(pt.ShapeError, match="inner sizes differ") as caught:
        model(pt.ones((1, 2)))
    assert caught.value.__notes__ == ["in layers.1.layers.1: Linear(d_input=4, d_output=5)"]
    with pytest.raises(pt.ShapeError) as alone:
        nn.Linear(4, 5)(pt.ones((1, 2)))
    assert not hasattr(alone.value, "__notes__")
