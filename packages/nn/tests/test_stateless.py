"""Layers without parameters: their settings are fields, and their configs are made of these."""

import pickle
from dataclasses import fields
from typing import Any, assert_type

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import Backend, Float, Tensor

CPU = pt.Numpy()


def test_a_setting_is_read_from_layer_and_config() -> None:
    loss = nn.HuberLoss(2.0, device=CPU)
    assert_type(loss.delta, float)
    assert loss.delta == loss.settings.delta == 2.0
    assert loss.settings == nn.HuberLossConfig(2.0)
    assert_type(nn.HuberLossConfig(2.0).init(), nn.HuberLoss)
    assert nn.HuberLossConfig(2.0).init().settings == loss.settings
    assert loss.field_names() == ["settings"]


def test_configs_have_the_types_of_their_number_of_axes() -> None:
    assert nn.MaxPool3dConfig((1, 2, 3)).init().settings.kernel_size == (1, 2, 3)
    with pytest.raises(nn.ConfigError, match=r"MaxPool2dConfig\.kernel_size"):
        nn.MaxPool2dConfig((1, 2, 3))  # type: ignore[arg-type]  # refused
    with pytest.raises(nn.ConfigError, match=r"MaxPool1d.*\.padding"):
        nn.MaxPool1d(2, padding=((1, 1), (1, 1)))  # type: ignore[arg-type]  # refused


@pytest.mark.parametrize("layer", [nn.HuberLoss(0.5), nn.MaxPool2d(3), nn.Dropout(0.25)])
def test_layer_and_config_are_pickled_and_read_from_json(layer: nn.Layer[Any]) -> None:
    config = layer.settings
    assert pickle.loads(pickle.dumps(config)) == config
    assert pickle.loads(pickle.dumps(layer)).settings == config
    assert type(config).from_dict(config.to_dict()) == config
    assert config.to_dict()["kind"] == type(layer).__name__


def test_settings_that_a_layer_refuses_are_those_of_its_config() -> None:
    for make in (nn.HuberLossConfig, nn.HuberLoss):
        with pytest.raises(nn.ConfigError, match=r"HuberLossConfig\.delta makes no sense"):
            make(-1.0)
    with pytest.raises(nn.ConfigError, match=r"LpPool1dConfig\.p makes no sense"):
        nn.LpPool1d(0.5, 2)


def test_a_layer_keeps_its_settings() -> None:
    loss = nn.HuberLoss()
    with pytest.raises(AttributeError, match="does not change"):
        loss.delta = 2.0
    assert loss.delta == 1.0


class Doubled(nn.HuberLoss):
    def forward(self, prediction: Tensor[Float], target: Tensor[Float]) -> Tensor[Float]:
        return super().forward(prediction, target) * 2.0


def test_a_subclass_of_such_a_layer_is_called_with_its_fields() -> None:
    loss = Doubled.from_fields(settings=nn.HuberLossConfig(reduction="sum"))
    one, zero = pt.ones(3, device=CPU), pt.zeros(3, device=CPU)
    assert float(loss(one, zero)) == 3.0
    assert "DoubledConfig" not in globals()


def test_the_config_says_what_the_layer_does() -> None:
    for layer in (nn.HuberLoss, nn.AvgPool2d, nn.Pad):
        config = getattr(nn, f"{layer.__name__}Config")
        assert config.__doc__.startswith(f"Settings of ``{layer.__name__}``.")
        for each in fields(config):
            assert f"    {each.name}: " in config.__doc__
            assert f"    {each.name}: " in (layer.__doc__ or "")


def test_a_device_decides_if_a_dropout_trains() -> None:
    device: Backend = CPU
    assert nn.Dropout(0.5).training is None
    assert nn.Dropout(0.5, device=device).training is False
