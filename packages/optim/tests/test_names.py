"""What PyTorch's names of optimizers and schedulers are here."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import phlox_optim as optim
import phlox_tensor as pt
from phlox_nn import Config, ConfigError
from phlox_optim._elsewhere import SETTINGS
from phlox_tensor import UnknownArgumentError, UnknownNameError, WrongTypeError

LOOSE: Any = optim  # what a checker would refuse
OWNERS: list[Any] = [
    optim.AdamConfig().init(),
    optim.CosineSchedulerConfig(0.1, steps=3).init(),
    optim.LbfgsConfig().init(),
    optim.PlateauSchedulerConfig(0.1).init(),
]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("load_state_dict", "load_record"),
        ("param_groups", "GroupsConfig"),
        ("state_dict", "into_record"),
        ("zero_grad", "nothing to reset"),
    ],
)
def test_a_name_of_pytorch_says_what_to_type(owner: Any, name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError, match=hint):
        getattr(owner, name)


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
def test_other_names_are_missing_as_anywhere(owner: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'stepp'"):
        owner.stepp()
    assert not hasattr(owner, "__array__")
    for same in (copy.deepcopy(owner), pickle.loads(pickle.dumps(owner))):
        assert same.into_record() == owner.into_record()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LOOSE.AdamConfig(beta1=0.9), r"\[AdamConfig\].*got beta1, .*\nhint: beta_1="),
        (lambda: LOOSE.AdamConfig(betas=(0.9, 0.99)), r"hint: beta_1=\.\.\., beta_2=\.\.\.$"),
        (lambda: LOOSE.AdamConfig(lr=0.1), r"hint: the rate is an argument of each step"),
        (lambda: LOOSE.AdamConfig().init(lr=0.1), r"\[init\] unknown argument: got lr"),
        (lambda: LOOSE.AdamConfig(foreach=True), r"hint: leave it out: .* by one call"),
        (lambda: LOOSE.AdamWConfig(fused=True), r"hint: leave it out: .* by one call"),
        (lambda: LOOSE.SgdConfig(maximize=True), r"hint: leave it out, .*\(-loss\).backward"),
        (lambda: LOOSE.AdamConfig(capturable=True), r"hint: leave it out: px.compile"),
        (lambda: LOOSE.CosineSchedulerConfig(lr=0.1, steps=9), r"hint: initial_lr="),
        (lambda: LOOSE.CosineSchedulerConfig(0.1, T_max=9), r"hint: steps="),
        (lambda: LOOSE.CosineSchedulerConfig(0.1, 9).init(epoch=1), r"\[init\].*got epoch"),
        (lambda: LOOSE.OneCycleSchedulerConfig(0.1, total_steps=9), r"hint: steps="),
        (lambda: LOOSE.ClipByGlobalNorm(max_norm=1.0), r"hint: threshold="),
        (lambda: LOOSE.Group("*", optim.Sgd(), lr_facto=0.1), r"\[Group\].*\nhint: lr_factor="),
        (lambda: LOOSE.Lbfgs(lr=0.1), r"\[Lbfgs\] unknown argument: got lr"),
        (lambda: LOOSE.OptimizerAdaptor(optim.Sgd(), cliping=None), r"hint: clipping="),
        (lambda: OWNERS[0].step(0.1, None, {}, stric=False), r"\[step\].*\nhint: strict="),
    ],
)
def test_an_unknown_argument_says_what_is_meant(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(UnknownArgumentError, match=text):
        make()


@pytest.mark.parametrize("name", ["ASGD", "Adamax", "NAdam", "RAdam", "Rprop", "SparseAdam"])
def test_a_rule_that_is_not_built_is_not_taken_for_another(name: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"class {name}\(optim.SimpleOptimizer\)") as caught:
        getattr(optim, name)
    assert "optim.Adam" not in str(caught.value)


def test_an_unknown_setting_of_a_group_says_which_is_meant() -> None:
    text = r"AdamConfig\.groups\['\*\.bias'\] is refused.*got weight_decy.*\nhint: weight_decay="
    with pytest.raises(ConfigError, match=text):
        optim.AdamConfig(groups={"*.bias": {"weight_decy": 0.0}})


def test_every_word_of_pytorch_stands_for_a_setting() -> None:
    configs: list[Any] = [
        c for c in vars(optim).values() if isinstance(c, type) and issubclass(c, Config)
    ]
    settings = {field.name for config in configs for field in fields(config)}
    assert {ours for each in SETTINGS.values() for ours in each} <= settings


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LOOSE.LossScaling(optim.Lbfgs()), r"got Lbfgs, .*\nhint: scaling = optim\.Loss"),
        (lambda: LOOSE.LossScaling(optim.AdamConfig()), r"got AdamConfig, .*\n.*scaling\.step\("),
        (lambda: LOOSE.OptimizerAdaptor(optim.Lbfgs()), r"got Lbfgs, .*\n.*step\(1\.0, model"),
        (lambda: LOOSE.OptimizerAdaptor(optim.LbfgsConfig()), r"\nhint: .*step\(1\.0, model, loss"),
        (lambda: LOOSE.OptimizerAdaptor(optim.AdamConfig()), r"\nhint: config\.init\(\), which"),
        (lambda: LOOSE.OptimizerAdaptor(optim.AdamConfig().init()), r"\nhint: leave the adaptor"),
        (lambda: LOOSE.OptimizerAdaptor(3), r"got int, .*\nhint: optim\.Adam\(\)"),
        (lambda: LOOSE.AdamConfig()(0.1), r"\[AdamConfig\] a config is called(.|\n)*config\.init"),
    ],
)
def test_parts_in_the_wrong_place_say_what_to_type(make: Callable[[], Any], text: str) -> None:
    with pytest.raises(WrongTypeError, match=text):
        make()


def test_losses_of_quasi_newton_steps_are_not_scaled() -> None:
    scaling: Any = optim.LossScaling()
    scaling.scaled(pt.ones(()))
    with pytest.raises(WrongTypeError, match=r"\[step\].*got Lbfgs, .*\nhint: scaling = optim"):
        scaling.step(optim.Lbfgs(), 1.0, None, None)


def test_a_step_as_pytorch_writes_it_says_how_it_is_written_here() -> None:
    optimizer: Any = optim.SgdConfig().init()
    with pytest.raises(TypeError, match=r"got no arguments, expected lr, (.|\n)*hint: model = opt"):
        optimizer.step()
    with pytest.raises(TypeError, match=r"got float and float, (.|\n)*optim.AdamWConfig\(\)"):
        LOOSE.AdamW(0.9, 0.999)


CONFIGS = [
    optim.AdaGradConfig, optim.AdafactorConfig, optim.AdamConfig, optim.AdamWConfig,
    optim.AdanConfig, optim.LionConfig, optim.MuonConfig, optim.RmsPropConfig, optim.SgdConfig,
]  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_a_rate_where_optimizers_of_others_take_it_is_refused(config: Any) -> None:
    with pytest.raises(TypeError, match="more values than settings that have a place") as one:
        config(0.1)
    assert "optimizer.step(lr, model, grads)" in str(one.value)
