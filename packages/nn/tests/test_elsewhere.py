"""What PyTorch's names and arguments are answered with."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_nn import _elsewhere
from phlox_nn.settings.elsewhere import SETTINGS
from phlox_tensor import ArgumentError, Backend, DeviceError, UnknownArgumentError, UnknownNameError

LOOSE: Any = nn


@pytest.mark.parametrize("name", _elsewhere.NAMES)
def test_a_name_of_pytorch_says_what_to_type(name: str) -> None:
    assert not hasattr(nn, name)
    with pytest.raises(UnknownNameError, match="phlox writes this otherwise") as error:
        getattr(nn, name)
    assert error.value.hint == _elsewhere.NAMES[name]


@pytest.mark.parametrize("name", ["Bert", "BertConfig", "resnet18", "save_gguf", "transcribe"])
def test_a_model_asked_of_the_package_is_found_among_models(name: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        getattr(nn, name)
    assert error.value.hint == f"nn.models.{name}"
    assert hasattr(nn.models, name)


def test_hints_name_what_there_is() -> None:
    names: dict[str, Any] = {"nn": nn, "px": pt, "channels": 2, "x": pt.ones((2, 3))}
    ran = 0
    for hint in _elsewhere.NAMES.values():
        code = hint.partition(" in ")[0]
        code = code.partition(": f")[0]
        if any(name in code for name in ("self.", "optim.", "train.")):
            ast.parse(code)
            continue
        eval(code, names)
        ran += 1
    assert ran > 20


@pytest.mark.parametrize(
    ("name", "near"),
    [("LSTM", "Lstm"), ("GRU", "Gru"), ("MSELoss", "MseLoss"), ("Liner", "Linear")],
)
def test_other_capitals_and_slips_are_understood(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        getattr(nn, name)
    assert error.value.hint == f"nn.{near}"


def test_private_and_far_names_are_plain_errors() -> None:
    with pytest.raises(AttributeError, match="_nothing"):
        _ = LOOSE._nothing
    with pytest.raises(UnknownNameError, match=r"no such name in phlox_nn$"):
        _ = LOOSE.zzzzzz
    assert "Linear" in dir(nn)


def test_modules_of_the_package_hide_no_function_of_tensors() -> None:
    with pytest.raises(UnknownNameError) as error:
        LOOSE.where(pt.asarray([True]), 1.0, 0.0)
    assert error.value.hint == "px.where"
    assert {"generation", "ids", "where"}.isdisjoint(dir(nn))


@pytest.mark.parametrize("name", _elsewhere.METHODS)
def test_a_method_of_pytorch_says_what_to_type(name: str) -> None:
    model = nn.Linear(2, 2)
    assert not hasattr(model, name)
    assert name not in dir(model)
    with pytest.raises(UnknownNameError) as error:
        getattr(model, name)
    assert error.value.hint == _elsewhere.METHODS[name]


def test_a_module_may_use_such_a_name_itself() -> None:
    class Own(nn.Module):
        half: float
        modules: list[nn.Linear]

        def apply(self) -> int:
            return 3

    class Late(nn.Module):
        def __init__(self) -> None:
            self.children = nn.Linear(2, 2)

    made = Own(0.5, [nn.Linear(2, 2)])
    assert (made.apply(), len(made.modules)) == (3, 1)
    assert Late().children.num_params() == 6
    assert "children" in dir(Late())
    assert "apply" in dir(made)
    loose: Any = Own
    with pytest.raises(TypeError, match="modules"):
        loose(0.5)


def test_training_without_a_device_says_which() -> None:
    model: Any = nn.Linear(2, 2)
    for arguments in ((), (True,), (False,)):
        with pytest.raises(DeviceError, match=r"hint: model = model.train\(Autodiff\(Cpu\(\)\)\)"):
            model.train(*arguments)


@pytest.mark.parametrize(
    "where", [3, None, lambda path: True, lambda: True, [0]], ids=["3", "none", "one", "no", "list"]
)
def test_what_is_frozen_is_a_path_or_a_function_of_two(where: Any) -> None:
    model = nn.Linear(2, 2)
    for op in ("freeze", "unfreeze"):
        with pytest.raises(ArgumentError, match=rf"\[{op}\] not a path(.|\n)*lambda path, param"):
            getattr(model, op)(where)
    frozen = model.freeze(lambda path, param: path.endswith("bias"))
    assert list(frozen.params(trainable=True)) == ["weight"]


def test_training_is_true_or_false() -> None:
    word: Any = "no"
    with pytest.raises(ArgumentError, match="got 'no', expected True or False"):
        nn.Dropout(0.5).with_training(word)


def test_a_list_is_no_layer() -> None:
    layers: Any = [nn.Linear(2, 2), nn.Linear(2, 1)]
    with pytest.raises(ArgumentError, match=r"got list(.|\n)*nn.Sequential\(\*layers\)"):
        nn.Sequential(layers)
    assert len(nn.Sequential(*layers)) == 2


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: nn.initializers.Normal(std=-1), "Normal.std makes no sense"),
        (lambda: nn.initializers.Uniform(1.0, 0.0), "Uniform.max makes no sense"),
        (lambda: nn.initializers.Normal(std=float("nan")), "Normal.std"),
    ],
)
def test_initializers_refuse_what_is_no_distribution(make: Callable[[], Any], match: str) -> None:
    with pytest.raises(nn.ConfigError, match=match):
        make()


def test_updates_of_another_module_are_an_error(recording: Backend) -> None:
    norm, other = nn.BatchNorm(1).with_training(True), nn.BatchNorm(1)
    with nn.collect() as updates:
        norm(pt.full((4, 1), 2.0))
    with pytest.raises(ArgumentError, match=r"state that the module lacks: got 2 of 2"):
        updates.apply(other)
    assert updates.apply(other, strict=False) is other
    assert updates.apply(nn.Sequential(norm, other)).num_params() == 4


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: LOOSE.Linear(in_features=2, out_features=3), r"d_input=\.\.\."),
        (lambda: LOOSE.Conv2d(3, 8, 3, padding_mode="reflect"), r'mode="reflect"\) before it'),
        (lambda: LOOSE.Lstm(3, 4, num_layers=2), r"n_layers=\.\.\."),
        (lambda: LOOSE.Lstm(3, 4, batch_first=True), r"axes are \(batch, length, size\) here"),
        (lambda: LOOSE.MaxPool2dConfig(2, return_indices=True), r"pool\.with_indices\(x\)"),
        (lambda: LOOSE.Dropout(p=0.1), r"prob=\.\.\."),
        (lambda: LOOSE.Linear(2, 3, biass=True), r"bias=\.\.\."),
    ],
)
def test_a_setting_by_the_name_of_pytorch_says_ours(make: Callable[[], Any], hint: str) -> None:
    with pytest.raises(UnknownArgumentError, match=rf"unknown argument: got .*\nhint: .*{hint}"):
        make()


def test_every_word_of_pytorch_stands_for_a_setting_or_an_argument_here() -> None:
    shown = [getattr(module, name) for module in (nn, nn.models) for name in dir(module)]
    configs: list[Any] = [c for c in shown if isinstance(c, type) and issubclass(c, nn.Config)]
    settings = {f.name for config in configs if config is not nn.Config for f in fields(config)}
    assert {ours for each in SETTINGS.values() for ours in each} <= settings
    layers: list[Any] = [c for c in shown if isinstance(c, type) and vars(c).get("_config")]
    taken = {name for layer in layers for name in signature(layer.forward).parameters}
    assert {ours for each in _elsewhere.ARGUMENTS.values() for ours in each} <= taken


def test_an_argument_by_the_name_of_pytorch_says_ours() -> None:
    x = pt.ones((1, 3, 4))
    layer: Any = nn.MultiHeadAttention(4, 2)
    with pytest.raises(UnknownArgumentError, match=r"got key_padding_mask(.|\n)*hint: padding="):
        layer(x, key_padding_mask=None)
    with pytest.raises(TypeError, match=r"Linear\.forward"):
        LOOSE.Linear(4, 2)()


def test_caches_and_states_of_others_are_refused() -> None:
    x, loose = pt.ones((1, 3, 4)), LOOSE
    decoder: Any = nn.TransformerDecoder(nn.TransformerDecoderLayerConfig(4, 2, 8), 2)
    encoder: Any = nn.TransformerEncoder(nn.TransformerEncoderLayerConfig(4, 2, 8), 2)
    caches = decoder.start(x)
    for wrong in (None, caches[:1], caches[0], x):
        with pytest.raises(ArgumentError, match=r"hint: cache = decoder\.start\(memory\)"):
            decoder.extend(x, wrong)
    for wrong in (encoder.extend(x)[1][:1], caches):
        with pytest.raises(ArgumentError, match="expected 2 of KeyValues, a tuple"):
            encoder.extend(x, wrong)
    zero = pt.zeros((1, 3))
    for wrong in (zero, (zero,), (zero,) * 3):
        with pytest.raises(ValueError, match=r"expected \(1, 3\), \(1, 3\)"):
            loose.LstmCell(4, 3)(x[:, 0], wrong)
    with pytest.raises(ValueError, match="no such axes: got"):
        nn.MaxUnpool2d(2)(pt.ones((1, 1, 2)), pt.asarray([[[0, 1]]]))


class _Pair(nn.Module):
    first: nn.Linear
    rest: int = 0


LOOSE_PAIR: Any = _Pair  # what a checker would refuse


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LOOSE_PAIR(nn.Linear(2, 2), restt=1), r"\[_Pair\].* got restt, .*\nhint: rest="),
        (lambda: LOOSE_PAIR.from_fields(frist=1), r"\[_Pair\].* got frist, .*\nhint: first="),
        (lambda: LOOSE.Sequential(layers=[]), r"\[Sequential\] unknown argument: got layers"),
        (lambda: LOOSE.Param(pt.ones(2), trainabel=False), r"\[Param\] unknown argument"),
        (lambda: LOOSE.Linear(2, 3).freeze(where="weight"), r"\[freeze\].* got where"),
        (lambda: LOOSE.LinearConfig(2, 3).init(devise="cpu"), r"\[init\].*\nhint: device="),
    ],
)
def test_an_unknown_argument_says_which_is_near(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(UnknownArgumentError, match=text):
        make()


def test_errors_inside_constructors_stay_as_they_are() -> None:
    class Odd(nn.Module):
        def __init__(self, size: int) -> None:
            self.layer = nn.Linear(size, **{"out": 3})  # type: ignore[arg-type]

    class Broken(nn.Module):
        def __init__(self, size: int) -> None:
            raise TypeError("mine")

    with pytest.raises(UnknownArgumentError, match=r"\[LinearConfig\] unknown argument: got out"):
        Odd(size=2)
    with pytest.raises(TypeError, match=r"^mine$"):
        Broken(size=2)


def test_a_change_of_a_config_says_which_field_is_near() -> None:
    with pytest.raises(nn.ConfigError, match=r"got bais, .*\nhint: bias=\.\.\."):
        nn.LinearConfig(2, 3).replace(bais=False)


@pytest.mark.parametrize("name", _elsewhere.MODELS)
def test_a_model_of_others_says_what_to_type(name: str) -> None:
    assert name not in dir(nn.models)
    with pytest.raises(UnknownNameError) as error:
        getattr(nn.models, name)
    assert error.value.hint == _elsewhere.MODELS[name]
    assert isinstance(eval(_elsewhere.MODELS[name], {"nn": nn}), nn.Module)


def test_models_name_the_settings_that_they_take() -> None:
    unknown: Any = nn.models.resnet18
    with pytest.raises(UnknownArgumentError, match="got num_classes, expected classes, device"):
        unknown(num_classes=3)


def test_a_mask_of_floats_says_where_it_belongs() -> None:
    layer, x = nn.MultiHeadAttention(4, 2), pt.zeros((1, 3, 4))
    mask: Any = pt.zeros((3, 3))
    with pytest.raises(pt.KindError, match="mask is no mask") as error:
        layer(x, mask=mask)
    assert error.value.hint == "bias=mask, which is added to the scores"
    assert layer(x, bias=mask).shape == (1, 3, 4)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("HeNormal", "nn.initializers.KaimingNormal()"),
        ("he_uniform", "nn.initializers.KaimingUniform()"),
        ("GlorotUniform", "nn.initializers.XavierUniform()"),
        ("lecun_normal", "nn.initializers.KaimingNormal(gain=1.0)"),
    ],
)
def test_initializers_of_keras_are_those_of_their_spread(name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        getattr(nn.initializers, name)
    assert caught.value.hint == hint
    eval(hint, {"nn": nn})


def test_words_for_initializers_are_no_words_for_borders() -> None:
    with pytest.raises(nn.ConfigError, match=r"initializer=nn.initializers.Zeros\(\)"):
        LOOSE.Linear(3, 2, initializer="zeros")
    with pytest.raises(nn.ConfigError, match='mode="constant"'):
        LOOSE.Pad(((1, 1),), mode="zeros")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LOOSE.Dropout(rate=0.1), "prob"),
        (lambda: LOOSE.Linear(3, 2, use_bias=False), "bias"),
        (lambda: LOOSE.Conv2d(3, filters=8, kernel_size=3), "channels_out"),
    ],
)
def test_words_of_keras_for_settings_are_known(make: Any, word: str) -> None:
    with pytest.raises(UnknownArgumentError, match=rf"hint: {word}="):
        make()
