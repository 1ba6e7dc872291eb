"""What a model gives and costs, found out without computing."""

from __future__ import annotations

from typing import Any

import pytest

import phlox_nn as nn
import phlox_tensor as pt
from phlox_tensor import DeviceError, Numpy, Spec, Tensor

F32 = pt.float32


class Net(nn.Module):
    conv: nn.Conv2d
    norm: nn.BatchNorm
    heads: list[nn.Linear]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = pt.max_pool2d(self.norm(self.conv(x)).relu(), 2).flatten(1)
        return tuple(head(y) for head in self.heads)


def net(device: pt.Backend | None = None) -> Net:
    return Net(
        conv=nn.Conv2d(3, 8, 3, device=device),
        norm=nn.BatchNorm(8, device=device),
        heads=[nn.Linear(1800, 10, device=device), nn.Linear(1800, 2, device=device)],
    )


IMAGES = Spec((4, 3, 32, 32), F32)


def test_every_call_of_a_layer_has_a_row() -> None:
    rows = nn.summary(net(), IMAGES).rows
    assert [(row.path, row.layer) for row in rows] == [
        ("", "Net"),
        ("conv", "Conv2d"),
        ("norm", "BatchNorm"),
        ("heads.0", "Linear"),
        ("heads.1", "Linear"),
    ]
    assert rows[1].outputs == (Spec((4, 8, 30, 30), F32),)
    assert rows[0].outputs == (Spec((4, 10), F32), Spec((4, 2), F32))


def test_multiply_adds_are_those_of_products() -> None:
    found = nn.summary(net(), IMAGES)
    conv, first, second = 4 * 8 * 30 * 30 * 3 * 3 * 3, 4 * 1800 * 10, 4 * 1800 * 2
    assert [row.multiply_adds for row in found.rows] == [
        conv + first + second, conv, 0, first, second,
    ]  # fmt: skip
    assert found.multiply_adds == conv + first + second


def test_parameters_and_bytes_add_up() -> None:
    model = net()
    found = nn.summary(model, IMAGES)
    state = 16  # running mean and variance
    assert found.parameters == model.num_params() == found.rows[0].parameters
    outputs = 4 * (2 * 8 * 30 * 30 + 10 + 2)
    assert found.bytes == 4 * (model.num_params() + state + outputs)
    assert found.rows[3].bytes == 4 * (18_010 + 40)


def test_it_prints_a_table_with_totals() -> None:
    text = str(nn.summary(net(), IMAGES))
    assert text.splitlines()[0].split() == [
        "path", "layer", "output", "parameters", "multiply-adds", "bytes",
    ]  # fmt: skip
    assert "heads.1  Linear     float32[4, 2]" in text
    assert text.splitlines()[-1].split() == ["total", "21,852", "864,000", "318,064"]


def test_nothing_is_computed_and_lazy_parameters_stay_lazy() -> None:
    model = nn.Linear(10**6, 10**5)
    found = nn.summary(model, Spec((32, 10**6), F32))
    assert found.multiply_adds == 32 * 10**11
    assert not model.weight.is_initialized


def test_the_model_is_left_as_it_was() -> None:
    model = net(Numpy())
    before = [dict(vars(m)) for m in (model, model.conv, model.norm, *model.heads)]
    nn.summary(model, IMAGES)
    assert before == [dict(vars(m)) for m in (model, model.conv, model.norm, *model.heads)]


def test_tensors_and_plain_values_are_inputs_too() -> None:
    class Scaled(nn.Module):
        inner: nn.Linear

        def forward(self, x: Tensor, factor: float) -> Tensor:
            return self.inner(x) * factor

    found = nn.summary(Scaled(nn.Linear(3, 2)), pt.ones((5, 3)), 2.0)
    assert found.rows[0].outputs == (Spec((5, 2), F32),)


def test_a_layer_called_twice_has_two_rows_and_its_parameters_once() -> None:
    class Twice(nn.Module):
        inner: nn.Linear

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(self.inner(x))

    found = nn.summary(Twice(nn.Linear(3, 3)), Spec((5, 3), F32))
    assert [row.path for row in found.rows] == ["", "inner", "inner"]
    assert (found.parameters, found.multiply_adds) == (12, 2 * 45)


def test_a_model_that_asks_for_a_value_says_so() -> None:
    class Peeking(nn.Module):
        inner: nn.Linear

        def forward(self, x: Tensor) -> Any:
            return self.inner(x) if bool(x.sum() > 0) else x

    model = Peeking(nn.Linear(3, 3))
    with pytest.raises(DeviceError, match="no values"):
        nn.summary(model, Spec((5, 3), F32))
    assert "forward" not in vars(model.inner)


def test_ops_made_of_products_are_counted_by_them() -> None:
    class Attends(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return pt.tensordot(pt.attention(x, x, x), x, axes=0)

    found = nn.summary(Attends(), Spec((1, 2, 4, 8), F32))
    assert found.multiply_adds == 2 * 4 * 4 * 16 + 64 * 64


class AddsOnes(nn.Module):
    """Makes a constant on the default device on its way."""

    inner: nn.Linear

    def forward(self, x: pt.Tensor[pt.Float]) -> pt.Tensor[pt.Float]:
        return self.inner(x) + pt.ones(2)


def test_constants_made_on_the_way_have_no_data_either() -> None:
    found = nn.summary(AddsOnes(nn.Linear(3, 2)), pt.Spec((4, 3), pt.float32))
    assert found.rows[0].outputs == (pt.Spec((4, 2), pt.float32),)
