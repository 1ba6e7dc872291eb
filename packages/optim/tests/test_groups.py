"""Settings, rates and optimizers of their own for some parameters; scaled losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_nn import ConfigError
from phlox_nn.where import fits
from phlox_optim import _groups
from phlox_tensor import RecordError


class Net(nn.Module):
    body: nn.Linear
    head: nn.Linear


def net() -> Net:
    return Net(nn.Linear(3, 2), nn.Linear(2, 2))


def grads_of(model: Net, value: float = 1.0) -> Any:
    return {p.id: pt.full(p.shape, value) for p in model.params().values()}


def moved(before: Net, after: Net) -> dict[str, float]:
    """How far each parameter went, which is the same for all its values."""
    found = {}
    for path, param in before.params().items():
        way = (param.value - after.params()[path].value).numpy()
        assert np.allclose(way, way.flat[0])
        found[path] = round(float(way.flat[0]), 9)
    return found


def test_of_each_setting_the_last_group_that_has_it_counts() -> None:
    groups: Any = {
        "head": {"lr_factor": 10.0},
        "*.bias": {"lr_factor": 0.5},
        "head.weight": {"momentum": 0.5, "nesterov": True},
    }
    config = optim.SgdConfig(groups=groups)
    assert optim.SgdConfig.from_dict(config.to_dict()) == config
    model = net()
    optimizer = config.init()
    after = optimizer.step(0.1, model, grads_of(model))
    assert moved(model, after) == {
        "body.weight": 0.1,
        "body.bias": 0.05,
        "head.weight": 1.5,  # the rate of one group, the momentum of another
        "head.bias": 0.05,
    }
    again = optimizer.step(0.1, after, grads_of(model))
    assert moved(after, again)["head.weight"] == 1.75
    assert "groups=3" in repr(optimizer)


def test_a_rate_of_its_own_brings_no_decay_back() -> None:
    groups: Any = {"*.bias": {"weight_decay": 0.0}, "head": {"lr_factor": 10.0}}
    model = net()
    optimizer = optim.SgdConfig(weight_decay=0.5, groups=groups).init()
    after = optimizer.step(0.1, model, grads_of(model, 0.0))
    for path, param in model.params().items():
        share = {"body.weight": 0.95, "head.weight": 0.5}.get(path, 1.0)
        want = param.value.numpy() * share
        assert np.allclose(after.params()[path].value.numpy(), want, rtol=1e-6, atol=1e-7)


class Normed(nn.Module):
    first: nn.Linear
    norm: nn.LayerNorm
    last: nn.Linear


def decayed(config: optim.OptimizerConfig) -> dict[str, bool]:
    """Which weights a step without gradients makes smaller."""
    model = Normed(nn.Linear(3, 2), nn.LayerNorm(2), nn.Linear(2, 2, bias=False))
    model = model.map(lambda path, p: p.with_value(p.value.zeros() + 1))
    grads = {p.id: p.value.zeros() for p in model.params().values()}
    after = config.init().step(0.1, model, grads).params()
    return {path: bool((p.value != 1).all().item()) for path, p in after.items()}


MATRICES = {
    "first.weight": True,
    "first.bias": False,
    "norm.weight": False,
    "norm.bias": False,
    "last.weight": True,
}
NO_CLIPPING: Any = {"weight_decay": 0.1, "decayed": "matrices"}


@pytest.mark.parametrize(
    "config",
    [
        optim.AdaGradConfig(**NO_CLIPPING),
        optim.AdamWConfig(**NO_CLIPPING),
        optim.LionConfig(**NO_CLIPPING),
        optim.SgdConfig(**NO_CLIPPING),
        optim.SgdConfig(groups={"norm": {"lr_factor": 2.0}}, **NO_CLIPPING),
        optim.SgdConfig(groups={"*": {"weight_decay": 0.2}}, **NO_CLIPPING),
        optim.GroupsConfig(optim.SgdConfig(**NO_CLIPPING), {"last": optim.MuonConfig()}),
        optim.GroupsConfig(optim.SgdConfig(), {"*": optim.AdamWConfig(**NO_CLIPPING)}),
    ],
    ids=lambda config: config.kind,
)
def test_matrices_alone_decay_where_asked(config: optim.OptimizerConfig) -> None:
    assert type(config).from_dict(config.to_dict()) == config
    assert decayed(config) == MATRICES
    assert decayed(optim.SgdConfig(weight_decay=0.1)) == dict.fromkeys(MATRICES, True)


def test_a_module_of_matrices_alone_may_be_asked_too() -> None:
    model = nn.Linear(3, 2, bias=False)
    grads = {p.id: pt.ones(p.shape) for p in model.params().values()}
    plain = optim.SgdConfig(weight_decay=0.5)
    one, other = (
        config.init().step(0.1, model, grads).weight.value
        for config in (plain, plain.replace(decayed="matrices"))
    )
    assert one.tolist() == other.tolist()


def test_settings_of_groups_that_do_not_fit_together_are_refused() -> None:
    model = net()
    groups: Any = {"*": {"momentum": 0.5, "nesterov": True}, "head": {"momentum": 0.0}}
    with pytest.raises(
        ConfigError, match=r"groups\['head'\] is refused: .*nesterov makes no sense"
    ):
        optim.SgdConfig(groups=groups).init().step(0.1, model, grads_of(model))


def test_weights_without_decay() -> None:
    model = net()
    config = optim.AdamWConfig(weight_decay=0.5, groups={"*.bias": {"weight_decay": 0.0}})
    plain = optim.AdamWConfig(weight_decay=0.0)
    after = config.init().step(0.1, model, grads_of(model))
    without = plain.init().step(0.1, model, grads_of(model))
    for path, param in after.params().items():
        shrunk = model.params()[path].value * 0.05 if "weight" in path else 0.0
        want = without.params()[path].value - shrunk
        assert np.allclose(param.value.numpy(), want.numpy(), rtol=1e-13)


def test_several_optimizers_and_their_record() -> None:
    config = optim.GroupsConfig(optim.AdamConfig(), {"*.weight": optim.MuonConfig()})
    assert optim.GroupsConfig.from_dict(config.to_dict()) == config
    model = net()
    optimizer = config.init()
    after = optimizer.step(0.1, model, grads_of(model))
    assert optimizer.into_record()["rule"] == "Adam Muon"
    resumed = config.init().load_record(optimizer.into_record())
    want = optimizer.step(0.1, after, grads_of(model, -2.0)).params()
    for path, param in resumed.step(0.1, after, grads_of(model, -2.0)).params().items():
        assert np.array_equal(param.value.numpy(), want[path].value.numpy())
    with pytest.raises(RecordError, match="got Adam Muon, expected Adam"):
        optim.AdamConfig().init().load_record(optimizer.into_record())


def test_a_function_says_who_is_in_a_group() -> None:
    model = net()
    group = optim.Group(lambda path, p: len(p.shape) == 1, optim.Sgd(), 3.0)
    after = optim.OptimizerAdaptor(optim.Sgd(), groups=[group]).step(0.1, model, grads_of(model))
    assert moved(model, after) == {
        "body.weight": 0.1, "body.bias": 0.3, "head.weight": 0.1, "head.bias": 0.3,
    }  # fmt: skip


def test_a_group_of_nobody_is_an_error() -> None:
    model = net()
    optimizer = optim.SgdConfig(groups={"tail.*": {"lr_factor": 2.0}}).init()
    with pytest.raises(ValueError, match="a group fits no weight: got 'tail"):
        optimizer.step(0.1, model, grads_of(model))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"*": {"lr": 10.0}}, "has a rate of its own: got lr, expected lr_factor"),
        ({"*": {"momentum": -1.0}}, "momentum makes no sense"),
        ({"*": {"lr_factor": "high"}}, "lr_factor 'high'"),
        ({"*": {"groups": None}}, "got groups"),
        ({"*": {"decayed": "matrices"}}, "got decayed"),
    ],
)
def test_groups_that_make_no_sense(groups: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        optim.SgdConfig(groups=groups)
    clipped = optim.SgdConfig(grad_clipping=optim.ClipByValue(1.0))
    with pytest.raises(ConfigError, match=r"GroupsConfig\.base makes no sense"):
        optim.GroupsConfig(clipped, {})
    with pytest.raises(ConfigError, match="expected decayed of the base and of the others"):
        optim.GroupsConfig(optim.SgdConfig(), {}, decayed="matrices")


def test_sums_of_gradients_are_divided_before_they_are_clipped() -> None:
    model = net()
    optimizer = optim.SgdConfig(grad_clipping=optim.ClipByValue(1.0)).init()
    after = optimizer.step(0.1, model, grads_of(model, 2.0), divide_by=4.0)
    assert set(moved(model, after).values()) == {0.05}


def test_parameters_that_others_step_are_clipped_together_and_left_alone() -> None:
    model = net()
    optimizer = optim.AdamConfig(grad_clipping=optim.ClipByGlobalNorm(1e-3)).init()
    whole = optim.AdamConfig(grad_clipping=optim.ClipByGlobalNorm(1e-3)).init()
    expected = whole.step(0.1, model, grads_of(model, 2.0))
    chosen = {model.param_list()[0].id}
    after = optimizer.step(0.1, model, grads_of(model, 2.0), only=chosen)
    for param, new, all_ in zip(
        model.param_list(), after.param_list(), expected.param_list(), strict=True
    ):
        same = all_ if param.id in chosen else param
        assert new.value.tolist() == same.value.tolist()
    states: Any = optimizer.into_record()["states"]
    assert set(states) == chosen


def test_a_scale_grows_after_good_steps_and_falls_after_bad_ones() -> None:
    scaling = optim.LossScalingConfig(scale=8.0, interval=2).init()
    optimizer = optim.SgdConfig().init()
    model = net()
    assert scaling.scaled(pt.asarray(3.0)).item() == 24.0
    scales = []
    for value in (8.0, 8.0, 16.0, float("inf"), 8.0, 8.0):
        after = scaling.step(optimizer, 0.1, model, grads_of(model, value))
        scales.append(scaling.scale)
        assert set(moved(model, after).values()) == ({0.1} if np.isfinite(value) else {0.0})
        model = after
    assert scales == [8.0, 16.0, 16.0, 8.0, 8.0, 16.0]
    assert (optimizer.steps, optimizer.skipped) == (5, 1)
    resumed = optim.LossScaling().load_record(scaling.into_record())
    assert (resumed.scale, resumed.into_record()) == (16.0, scaling.into_record())
    with pytest.raises(RecordError, match="not a record of a scaling"):
        resumed.load_record({"scale": -1.0})


def test_a_scaling_whose_scale_nobody_asked_for_takes_no_step() -> None:
    model, scaling = net(), optim.LossScaling()
    optimizer = optim.SgdConfig().init()
    with pytest.raises(pt.GradientError, match=r"\nhint: grads = scaling.scaled\(loss\)"):
        scaling.step(optimizer, 0.1, model, grads_of(model))
    scale = scaling.scale  # for a loss that is scaled by hand
    after = scaling.step(optimizer, 0.1, model, grads_of(model, scale))
    assert set(moved(model, after).values()) == {0.1}


def test_another_optimizer_has_a_rate_of_its_own() -> None:
    base = optim.SgdConfig(groups={"head.*": {"lr_factor": 0.5}})
    others: Any = {"*.weight": optim.LionConfig()}
    config = optim.GroupsConfig(base, others, {"*.weight": 20.0})
    assert optim.GroupsConfig.from_dict(config.to_dict()) == config
    model = net()
    assert moved(model, config.init().step(0.01, model, grads_of(model, 3.0))) == {
        "body.weight": 0.2,  # by the sign
        "body.bias": 0.03,
        "head.weight": 0.1,  # half of it, as the base has it for the head
        "head.bias": 0.015,
    }
    undecayed = optim.SgdConfig(decayed="matrices")
    config = optim.GroupsConfig(optim.SgdConfig(), {"head": undecayed}, {"head": 4.0})
    assert moved(model, config.init().step(0.01, model, grads_of(model)))["head.bias"] == 0.04


@pytest.mark.parametrize(
    ("factors", "text"),
    [
        ({"head.*": 2.0}, r"paths of others, not 'head\.\*'"),
        ({"*": -1.0}, "at least 0"),
        ({"*": float("inf")}, "at least 0"),
        ({"*": float("nan")}, "at least 0"),
    ],
)
def test_a_rate_of_its_own_is_for_one_of_the_others(factors: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        optim.GroupsConfig(optim.SgdConfig(), {"*": optim.LionConfig()}, factors)


@pytest.mark.parametrize("factor", [float("nan"), float("inf"), -1.0])
def test_a_factor_of_a_rate_is_finite(factor: float) -> None:
    with pytest.raises(ConfigError, match="lr_factor"):
        optim.SgdConfig(groups={"*": {"lr_factor": factor}})
    with pytest.raises(pt.ArgumentError, match="lr_factor"):
        optim.Group("*", optim.Sgd(), factor)


class Halving(optim.Optimizer):
    """An optimizer of one's own, by another one for the weights that it halves before."""

    def __init__(self) -> None:
        self.inner, self.left_out = optim.SgdConfig().init(), 0

    @property
    def skipped(self) -> int:
        return self.left_out

    def step(
        self,
        lr: float,
        module: Any,
        grads: Any,
        *,
        strict: bool = True,
        skip_nonfinite: bool = False,
        divide_by: float = 1.0,
    ) -> Any:
        before = self.inner.skipped
        after = self.inner.step(
            lr / 2,
            module,
            grads,
            strict=strict,
            skip_nonfinite=skip_nonfinite,
            divide_by=divide_by,
        )
        self.left_out += self.inner.skipped - before
        return after

    def into_record(self) -> dict[str, Any]:
        return self.inner.into_record()

    def load_record(self, record: Any) -> Halving:
        self.inner.load_record(record)
        return self


def test_an_optimizer_of_ones_own_takes_gradients_of_a_scaled_loss() -> None:
    scaling = optim.LossScalingConfig(scale=8.0, interval=2).init()
    optimizer, model = Halving(), net()
    assert scaling.scaled(pt.asarray(3.0)).item() == 24.0
    after = scaling.step(optimizer, 0.1, model, grads_of(model, 8.0))
    assert set(moved(model, after).values()) == {0.05}
    assert scaling.step(optimizer, 0.1, after, grads_of(after, float("nan"))) is after
    assert (optimizer.skipped, scaling.scale) == (1, 4.0)


def test_patterns_are_matched_again_where_paths_or_parameters_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    calls: list[str] = []

    def counted(where: Any, path: str, param: nn.Param) -> bool:
        calls.append(path)
        return fits(where, path, param)

    monkeypatch.setattr(_groups, "fits", counted)
    model: Any = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    grads = {param.id: pt.ones(param.shape) for param in model.param_list()}
    config = optim.SgdConfig(groups={"layers.0.*": {"lr_factor": 0.0}})
    optimizer = config.init()
    after: Any = optimizer.step(0.1, model, grads)
    first = len(calls)
    assert first == 4
    after = optimizer.step(0.1, after, grads)
    assert len(calls) == first
    turned = after.replace(layers=tuple(reversed(after.layers)))
    last = optimizer.step(0.1, turned, grads)
    assert len(calls) == 2 * first
    assert last.layers[0].weight.value.tolist() == turned.layers[0].weight.value.tolist()
    assert last.layers[1].weight.value.tolist() != turned.layers[1].weight.value.tolist()
