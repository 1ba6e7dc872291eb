"""200 steps beside PyTorch's (``tools/fixtures/optimizers.py``) and beside papers' formulas."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_tensor as pt
from phlox_nn import ConfigError, Param

Array = np.ndarray[Any, Any]
KNOWN = json.loads((Path(__file__).parent / "trajectories.json").read_text())
LR = 0.05

TORCH: dict[str, optim.OptimizerConfig] = {
    "adafactor": optim.AdafactorConfig(),
    "adafactor-decay": optim.AdafactorConfig(
        decay=-0.5, epsilon=1e-3, least_scale=1e-2, clipping=2.0, weight_decay=0.1
    ),
    "adagrad": optim.AdaGradConfig(),
    "adagrad-decay": optim.AdaGradConfig(
        lr_decay=0.01, epsilon=1e-3, weight_decay=0.1, initial_sum=0.5
    ),
    "adam": optim.AdamConfig(),
    "adam-amsgrad": optim.AdamConfig(beta_1=0.8, beta_2=0.9, weight_decay=0.1, amsgrad=True),
    "adamw": optim.AdamWConfig(),
    "adamw-amsgrad": optim.AdamWConfig(
        beta_1=0.8, beta_2=0.9, epsilon=1e-4, weight_decay=0.1, amsgrad=True
    ),
    "rmsprop": optim.RmsPropConfig(),
    "rmsprop-centered": optim.RmsPropConfig(
        alpha=0.9, epsilon=1e-4, weight_decay=0.1, momentum=0.5, centered=True
    ),
    "rmsprop-momentum": optim.RmsPropConfig(momentum=0.9),
    "sgd": optim.SgdConfig(),
    "sgd-dampening": optim.SgdConfig(weight_decay=0.1, momentum=0.9, dampening=0.3),
    "sgd-nesterov": optim.SgdConfig(weight_decay=0.1, momentum=0.9, nesterov=True),
}


class Net(nn.Module):
    a: Param
    b: Param


def start(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape) for shape in shapes or ((3, 2), (3,))]


def gradient(array: Array, step: int) -> Array:
    places = np.arange(array.size).reshape(array.shape)
    return np.asarray(0.02 * array + (1 + places) / 3 * np.cos(0.1 * step + places))


def stepped(optimizer: optim.OptimizerAdaptor, model: Net, step: int) -> Net:
    grads: Any = {
        p.id: pt.asarray(gradient(p.value.numpy(), step)) for p in model.params().values()
    }
    return optimizer.step(LR, model, grads)


@pytest.mark.parametrize("name", sorted(KNOWN["rules"]))
def test_a_trajectory_is_that_of_pytorch(name: str) -> None:
    optimizer = TORCH[name].init()
    model = Net(*(Param(pt.asarray(array)) for array in start()))
    for step in range(1, 201):
        model = stepped(optimizer, model, step)
        if str(step) in KNOWN["rules"][name]:
            got = np.concatenate([p.value.numpy().ravel() for p in model.params().values()])
            assert np.allclose(got, KNOWN["rules"][name][str(step)], rtol=1e-9, atol=1e-11), step


def test_every_rule_has_a_trajectory() -> None:
    configs = {v for v in vars(optim).values() if isinstance(v, type)}
    rules = {
        c
        for c in configs
        if issubclass(c, optim.OptimizerConfig) and c is not optim.OptimizerConfig
    }
    beside = {
        type(config) for config in (*TORCH.values(), *(config for config, _ in PAPERS.values()))
    }
    assert beside == rules - {optim.GroupsConfig}


def adan(proximal: bool, decay: float) -> Callable[[Array, Array, int, dict[str, Array]], Array]:
    """Algorithm 1 of Xie et al., 2022, with corrections of the three means."""

    def step(x: Array, g: Array, k: int, s: dict[str, Array]) -> Array:
        b1, b2, b3 = 0.02, 0.08, 0.01
        d = g - s.get("g", g)
        s["m"] = (1 - b1) * s.get("m", 0 * g) + b1 * g
        s["v"] = (1 - b2) * s.get("v", 0 * g) + b2 * d
        s["n"] = (1 - b3) * s.get("n", 0 * g) + b3 * (g + (1 - b2) * d) ** 2
        s["g"] = g
        eta = LR / (np.sqrt(s["n"] / (1 - (1 - b3) ** k)) + 1e-8)
        ahead = s["m"] / (1 - (1 - b1) ** k) + (1 - b2) * s["v"] / (1 - (1 - b2) ** k)
        if proximal:
            return np.asarray((x - eta * ahead) / (1 + LR * decay))
        return np.asarray(x * (1 - LR * decay) - eta * ahead)

    return step


def lion(x: Array, g: Array, k: int, s: dict[str, Array]) -> Array:
    """Algorithm 2 of Chen et al., 2023."""
    m = s.get("m", 0 * g)
    s["m"] = 0.99 * m + 0.01 * g
    return np.asarray(x - LR * (np.sign(0.9 * m + 0.1 * g) + 0.1 * x))


def muon(nesterov: bool, factor: float) -> Callable[[Array, Array, int, dict[str, Array]], Array]:
    """By singular values, on which the polynomial acts. Jordan et al., 2024."""

    def step(x: Array, g: Array, k: int, s: dict[str, Array]) -> Array:
        s["m"] = 0.95 * s.get("m", 0 * g) + g
        u, values, v = np.linalg.svd(g + 0.95 * s["m"] if nesterov else s["m"], full_matrices=False)
        values = values / np.sqrt((values**2).sum())
        for _ in range(5):
            values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
        return np.asarray(x * (1 - LR * 0.1) - LR * factor * (u * values) @ v)

    return step


def cautious(x: Array, g: Array, k: int, s: dict[str, Array]) -> Array:
    """Algorithm 1 of Liang et al., 2024."""
    u = _adam(g, k, s)
    agreed = u * g > 0
    return np.asarray(x * (1 - LR * 0.1) - LR * u * agreed / max(agreed.mean(), 1e-3))


def cautious_decay(x: Array, g: Array, k: int, s: dict[str, Array]) -> Array:
    """Chen et al., 2025."""
    u = _adam(g, k, s)
    return np.asarray(x - LR * (u + 0.1 * (u * x >= 0) * x))


def _adam(g: Array, k: int, s: dict[str, Array]) -> Array:
    s["m"] = 0.9 * s.get("m", 0 * g) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0 * g) + 0.001 * g**2
    return np.asarray(s["m"] / (1 - 0.9**k) / (np.sqrt(s["v"] / (1 - 0.999**k)) + 1e-8))


PAPERS: dict[str, tuple[optim.OptimizerConfig, Callable[..., Array]]] = {
    "adamw-cautious": (optim.AdamWConfig(weight_decay=0.1, cautious=True), cautious),
    "adamw-cautious-decay": (
        optim.AdamWConfig(weight_decay=0.1, cautious_weight_decay=True),
        cautious_decay,
    ),
    "adan": (optim.AdanConfig(weight_decay=0.02), adan(True, 0.02)),
    "adan-before": (optim.AdanConfig(weight_decay=0.02, proximal=False), adan(False, 0.02)),
    "lion": (optim.LionConfig(weight_decay=0.1), lion),
    "muon": (optim.MuonConfig(), muon(True, sqrt(3 / 2))),
    "muon-adamw": (
        optim.MuonConfig(nesterov=False, scaling="match_rms_adamw"),
        muon(False, 0.2 * sqrt(3)),
    ),
}


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_a_trajectory_is_that_of_the_paper(name: str) -> None:
    config, formula = PAPERS[name]
    optimizer = config.init()
    arrays = start((2, 3), (2, 3))
    states: list[dict[str, Array]] = [{}, {}]
    model = Net(*(Param(pt.asarray(array)) for array in arrays))
    for step in range(1, 201):
        model = stepped(optimizer, model, step)
        arrays = [
            formula(array, gradient(array, step), step, state)
            for array, state in zip(arrays, states, strict=True)
        ]
        for param, array in zip(model.params().values(), arrays, strict=True):
            assert np.allclose(param.value.numpy(), array, rtol=1e-8, atol=1e-9), step


def test_muon_of_a_tall_matrix_is_that_of_the_flat_one() -> None:
    rng = np.random.default_rng(3)
    x, g = pt.asarray(rng.normal(size=(5, 3))), pt.asarray(rng.normal(size=(5, 3)))
    rule = optim.Muon(optim.MuonConfig(scaling="match_rms_adamw"))
    tall, flat = rule.step(0.1, x, g, None)[0], rule.step(0.1, x.T, g.T, None)[0]
    assert np.allclose(tall.numpy(), flat.numpy().T, rtol=1e-12)
    with pytest.raises(ValueError, match="no matrix: got"):
        rule.step(0.1, pt.ones(3), pt.ones(3), None)


CURVES: dict[str, Any] = {
    "cosine": optim.CosineSchedulerConfig(1.0, 40, 0.1),
    "cosine-restarts": optim.CosineRestartsSchedulerConfig(1.0, 7, 1, 0.1),
    "cosine-restarts-growing": optim.CosineRestartsSchedulerConfig(1.0, 3, 2),
    "exponential": optim.ExponentialSchedulerConfig(1.0, 0.9),
    "linear": optim.LinearSchedulerConfig(1.0, 0.25, 20),
    "multi-step": optim.MultiStepSchedulerConfig(1.0, (3, 10, 11), 0.5),
    "one-cycle": optim.OneCycleSchedulerConfig(1.0, 40),
    "one-cycle-linear": optim.OneCycleSchedulerConfig(
        1.0, 40, rising=0.4, curve="linear", three_phases=True
    ),
    "polynomial": optim.PolynomialSchedulerConfig(1.0, 30, 2.0),
    "sequential": optim.SequentialSchedulerConfig(
        (
            optim.LinearSchedulerConfig(0.1, 1.0, 5),
            optim.ExponentialSchedulerConfig(1.0, 0.9),
        ),
        (5,),
    ),
    "step": optim.StepSchedulerConfig(1.0, 7, 0.5),
}


@pytest.mark.parametrize("name", sorted(KNOWN["schedules"]))
def test_a_schedule_is_that_of_pytorch(name: str) -> None:
    schedule = CURVES[name].init()
    assert [schedule.step() for _ in range(40)] == pytest.approx(KNOWN["schedules"][name], rel=1e-9)


PLATEAUS = {
    "high": optim.PlateauSchedulerConfig(1.0, "high", 0.5, 2, relative=False),
    "low": optim.PlateauSchedulerConfig(1.0, "low", 0.5, 3, 0.05, cooldown=2, min_lr=0.1),
}


@pytest.mark.parametrize("name", sorted(KNOWN["plateaus"]))
def test_a_schedule_by_a_measure_is_that_of_pytorch(name: str) -> None:
    rng = np.random.default_rng(1)
    measures = [float(x) for x in 1 / np.arange(1, 41) + rng.uniform(0, 0.3, 40)]
    schedule = PLATEAUS[name].init()
    got = []
    for i, measure in enumerate(measures):
        if i == 20:  # resumed
            schedule = PLATEAUS[name].init().load_record(schedule.into_record())
        got.append(schedule.step(measure))
    assert got == pytest.approx(KNOWN["plateaus"][name])
    assert len(set(got)) > 2
    assert schedule.rate == got[-1]


FORMULAS: dict[str, tuple[Any, Callable[[int], float]]] = {
    "composed-mean": (
        optim.ComposedSchedulerConfig((CURVES["step"], CURVES["linear"]), "mean"),
        lambda i: (0.5 ** (i // 7) + 1 - 0.75 * min(i / 20, 1)) / 2,
    ),
    "composed-product": (
        optim.ComposedSchedulerConfig((CURVES["step"], CURVES["exponential"])),
        lambda i: 0.5 ** (i // 7) * 0.9**i,
    ),
    "composed-sum": (
        optim.ComposedSchedulerConfig((CURVES["step"], CURVES["exponential"]), "sum"),
        lambda i: 0.5 ** (i // 7) + 0.9**i,
    ),
    "inverse-square-root": (
        optim.InverseSquareRootSchedulerConfig(0.5, 8),
        lambda i: 0.5 * ((i + 1) / 8 if i < 8 else sqrt(8 / (i + 1))),
    ),
    "noam": (
        optim.NoamSchedulerConfig(2.0, 10, 64),
        lambda i: 2 / 8 * min((i + 1) ** -0.5, (i + 1) * 10**-1.5),
    ),
    "warm-up": (
        optim.WarmUpSchedulerConfig(CURVES["exponential"], 4, 0.2),
        lambda i: 0.2 + 0.2 * i if i < 4 else 0.9 ** (i - 4),
    ),
}


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_a_schedule_is_its_formula(name: str) -> None:
    config, formula = FORMULAS[name]
    assert [config.rate(i) for i in range(40)] == pytest.approx([formula(i) for i in range(40)])


def test_schedules_go_round_and_none_is_without_a_row() -> None:
    configs = [*CURVES.values(), *(config for config, _ in FORMULAS.values())]
    for config in configs:
        assert type(config).from_dict(config.to_dict()) == config
    bases = (optim.SchedulerConfig, optim.ConstantSchedulerConfig)
    known = {c for c in vars(optim).values() if isinstance(c, type)}
    known = {c for c in known if issubclass(c, optim.SchedulerConfig)} - {*bases}
    assert known == {type(config) for config in configs}


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (optim.ComposedSchedulerConfig, {"schedules": ()}),
        (optim.CosineRestartsSchedulerConfig, {"initial_lr": 1.0, "period": 0}),
        (optim.MultiStepSchedulerConfig, {"initial_lr": 1.0, "milestones": (3, 1)}),
        (optim.OneCycleSchedulerConfig, {"max_lr": 1.0, "steps": 9, "rising": 1.5}),
        (optim.SequentialSchedulerConfig, {"schedules": (CURVES["step"],), "milestones": (4,)}),
        (optim.PlateauSchedulerConfig, {"initial_lr": 1.0, "factor": 1.0}),
        (optim.LossScalingConfig, {"backoff": 1.0}),
        (optim.MuonConfig, {"momentum": -1.0}),
        (optim.AdafactorConfig, {"clipping": 0.5}),
        (optim.AdanConfig, {"beta_3": 1.0}),
        (optim.LionConfig, {"beta_1": -0.1}),
        (optim.RmsPropConfig, {"alpha": 1.0}),
        (optim.AdaGradConfig, {"initial_sum": -1.0}),
        (optim.LbfgsConfig, {"history": 0}),
    ],
)
def test_settings_that_make_no_sense(config: Any, settings: dict[str, Any]) -> None:
    (*_, name) = settings
    with pytest.raises(ConfigError, match=rf"{config.__name__}\.{name} makes no sense: got"):
        config(**settings)
