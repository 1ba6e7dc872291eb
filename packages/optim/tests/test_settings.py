"""Settings, groups and records that make no sense are refused where they are given."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_nn import ConfigError
from phlox_tensor import ArgumentError, RecordError, WrongTypeError

LOOSE: Any = optim  # what a checker would refuse

RATES: list[tuple[Any, str, dict[str, Any]]] = [
    (optim.ConstantSchedulerConfig, "lr", {}),
    (optim.CosineSchedulerConfig, "initial_lr", {"steps": 10}),
    (optim.CosineSchedulerConfig, "min_lr", {"initial_lr": 0.1, "steps": 10}),
    (optim.InverseSquareRootSchedulerConfig, "peak_lr", {}),
    (optim.LinearSchedulerConfig, "final_lr", {"initial_lr": 0.1, "steps": 10}),
    (optim.OneCycleSchedulerConfig, "max_lr", {"steps": 10}),
    (optim.PlateauSchedulerConfig, "initial_lr", {}),
]


@pytest.mark.parametrize("rate", [inf, -0.1, nan])
@pytest.mark.parametrize(("config", "name", "others"), RATES)
def test_rates_are_finite_and_not_negative(
    config: Any, name: str, others: dict[str, Any], rate: float
) -> None:
    with pytest.raises(ConfigError, match=rf"{config.__name__}\.{name} makes no sense: got"):
        config(**{name: rate}, **others)
    config(**{name: 0.05}, **others)


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (optim.LbfgsConfig, {"tolerance_grad": -1.0}),
        (optim.LbfgsConfig, {"tolerance_change": nan}),
        (optim.LossScalingConfig, {"growth": nan}),
        (optim.MultiStepSchedulerConfig, {"initial_lr": 1.0, "milestones": (1,), "gamma": -1.0}),
        (optim.PlateauSchedulerConfig, {"initial_lr": 1.0, "epsilon": nan}),
        (optim.StepSchedulerConfig, {"initial_lr": 1.0, "step_size": 1, "gamma": 0.0}),
    ],
)
def test_numbers_that_no_setting_can_be(config: Any, settings: dict[str, Any]) -> None:
    name = list(settings)[-1]
    with pytest.raises(ConfigError, match=rf"{config.__name__}\.{name} makes no sense: got"):
        config(**settings)


def test_a_rate_beyond_floats_is_refused_by_the_step() -> None:
    schedule = optim.ExponentialSchedulerConfig(0.1, 2.0)
    assert schedule.rate(5000) == inf
    assert optim.ExponentialSchedulerConfig(0.0, 2.0).rate(5000) == 0.0
    model = nn.Linear(1, 1, bias=False)
    with pytest.raises(ArgumentError, match="the learning rate is not finite"):
        optim.SgdConfig().init().step(
            schedule.rate(5000), model, {model.weight.id: pt.ones((1, 1))}
        )


@pytest.mark.parametrize("factor", [nan, inf, -1.0, True, "2"])
def test_a_group_has_a_factor_that_is_a_number(factor: Any) -> None:
    with pytest.raises(ArgumentError, match="lr_factor: got"):
        optim.Group("weight", optim.Sgd(), factor)
    with pytest.raises(ConfigError, match=r"groups\['weight'\]|annotat|lr_factor"):
        optim.SgdConfig(groups={"weight": {"lr_factor": factor}})


def test_a_group_has_a_place_and_a_rule() -> None:
    group: Any = optim.Group
    with pytest.raises(WrongTypeError, match="the rule is none: got NoneType"):
        group("weight", None)
    with pytest.raises(ArgumentError, match="not a path, and not a function"):
        group(3, optim.Sgd())
    with pytest.raises(ArgumentError, match="a function of other arguments"):
        group(lambda path: True, optim.Sgd())


@pytest.mark.parametrize("made", [optim.Adam, optim.Sgd, optim.Muon, optim.Lbfgs])
@pytest.mark.parametrize("given", [0.1, {"weight": 1}, optim.ClipByNorm(1.0)])
def test_rules_are_made_of_their_config(made: Any, given: Any) -> None:
    with pytest.raises(WrongTypeError, match=r"(?s)made of its config alone: got .*Config\(\)"):
        made(given)


def test_a_rule_takes_no_rate() -> None:
    rule: Any = optim.Adam
    with pytest.raises(WrongTypeError, match=r"(?s)got lr, expected AdamConfig.*step\(0.1, model"):
        rule(lr=0.1)


def test_the_record_of_a_plateau_knows_which_way_is_better() -> None:
    low, high = (optim.PlateauSchedulerConfig(0.1, best=best) for best in ("low", "high"))
    kept: Any = low.init().into_record()
    assert low.init().load_record(kept).into_record() == kept
    with pytest.raises(RecordError, match=r"of another schedule.*of the low.*of the high"):
        high.init().load_record(kept)
    plain = {name: kept[name] for name in ("rate", "best", "worse", "cooling")}
    assert low.init().load_record(plain).rate == 0.1  # of a version that kept less
    for name, odd in (
        ("rate", "x"),
        ("rate", nan),
        ("best", None),
        ("worse", -1),
        ("cooling", 0.5),
    ):
        with pytest.raises(RecordError, match="not a record of a schedule by a measure"):
            low.init().load_record({**kept, name: odd})


def test_a_scale_grows_after_more_good_steps_than_a_smaller_interval() -> None:
    scaling = optim.LossScalingConfig(4.0, interval=2).init()
    scaling.load_record({"scale": 4.0, "good": 5})
    model = nn.Linear(1, 1, bias=False)
    scaling.step(optim.SgdConfig().init(), 0.1, model, {model.weight.id: pt.ones((1, 1))})
    assert scaling.scale == 8.0
    odd: Any
    for odd in ({"scale": 4.0, "good": -1}, {"scale": inf, "good": 0}):
        with pytest.raises(RecordError, match="not a record of a scaling"):
            scaling.load_record(odd)
    anything: Any = scaling
    with pytest.raises(AttributeError, match="takes no attribute from outside"):
        anything.interval = 3


def test_counts_in_the_record_of_an_optimizer_are_integers() -> None:
    kept: Any = optim.SgdConfig().init().into_record()
    for name in ("steps", "skipped"):
        with pytest.raises(RecordError, match="not a record of an optimizer"):
            optim.SgdConfig().init().load_record({**kept, name: True})


def test_statistics_are_an_effect_of_a_step_without_trained_parameters() -> None:
    norm = nn.BatchNorm(2).no_grad()
    value, before = pt.asarray([1.0, 2.0]), norm.running_mean.value

    class Statistics:
        def get(self, leaf: Any, /) -> None:
            return None

        def proposed(self, leaf: Any, /) -> Any:
            return value if leaf is before else None

    out = optim.SgdConfig().init().step(0.1, norm, Statistics())
    assert np.array_equal(out.running_mean.value.numpy(), value.numpy())
    assert out.weight is norm.weight


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LOOSE.WarmUpSchedulerConfig(optim.PlateauSchedulerConfig(1.0), 3), "plateau.rate"),
        (
            lambda: LOOSE.SequentialSchedulerConfig(
                [optim.ConstantSchedulerConfig(0.1), optim.PlateauSchedulerConfig(1.0)], [3]
            ),
            "plateau.rate",
        ),
        (lambda: LOOSE.GroupsConfig(optim.LbfgsConfig(), {}), "loss_of"),
        (lambda: LOOSE.GroupsConfig(optim.SgdConfig(), {"*": optim.LbfgsConfig()}), "loss_of"),
    ],
)
def test_what_takes_more_at_each_step_is_no_part_of_others(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be made of a .*\nhint: .*{said}"):
        make()


@pytest.mark.parametrize(
    ("config", "settings", "field"),
    [
        (optim.AdamConfig, {"epsilon": inf}, "epsilon"),
        (optim.MultiStepSchedulerConfig, {"initial_lr": 0.1, "milestones": (-3,)}, "milestones"),
        (optim.NoamSchedulerConfig, {"factor": -1.0}, "factor"),
        (optim.SequentialSchedulerConfig, {"milestones": (5, 5)}, "milestones"),
        (optim.SequentialSchedulerConfig, {"milestones": (-5, 5)}, "milestones"),
    ],
)
def test_what_one_config_refuses_its_neighbor_refuses_too(
    config: Any, settings: dict[str, Any], field: str
) -> None:
    if config is optim.SequentialSchedulerConfig:
        settings = {"schedules": (optim.ConstantSchedulerConfig(0.1),) * 3, **settings}
    with pytest.raises(ConfigError, match=field):
        config(**settings)
