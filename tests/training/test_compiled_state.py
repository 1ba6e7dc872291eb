"""What remembers something between steps is followed by compiled functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

import phlox as px
from phlox import Cpu, nn, optim


def schedule(made: Callable[[Any], Any]) -> list[float]:
    place = optim.CosineSchedulerConfig(0.5, steps=8).init()
    f = made(lambda x: x * place.step())
    return [f(px.ones(())).item() for _ in range(6)]


def plateau(made: Callable[[Any], Any]) -> list[float]:
    place = optim.PlateauSchedulerConfig(0.5, patience=0).init()
    f = made(lambda x: x * place.rate)
    seen = []
    for _ in range(6):
        seen.append(f(px.ones(())).item())
        place.step(1.0)
    return seen


def plateau_inside(made: Callable[[Any], Any]) -> list[float]:
    place = optim.PlateauSchedulerConfig(0.5, patience=1, min_lr=0.01, cooldown=1).init()
    f = made(lambda x: x * place.step(1.0))
    return [f(px.ones(())).item() for _ in range(9)]


def scale(made: Callable[[Any], Any]) -> list[float]:
    scaling = optim.LossScalingConfig(4.0, interval=2).init()
    optimizer = optim.SgdConfig().init()
    model = nn.Linear(2, 1, device=Cpu())
    f = made(px.grad(lambda model, x: scaling.scaled(model(x).sum())))
    seen = []
    for step in range(7):
        grads = f(model, px.full((1, 2), float("inf") if step == 5 else 1.0))
        seen.append(grads.bias.value.item())
        model = scaling.step(optimizer, 0.1, model, grads)
    return seen


RUNS: Final[dict[str, tuple[str, Callable[[Callable[[Any], Any]], list[float]]]]] = {
    "plateau": ("PlateauScheduler", plateau),
    "plateau inside": ("PlateauScheduler", plateau_inside),
    "scale": ("LossScaling", scale),
    "schedule": ("Scheduler", schedule),
}
# Optimizers have whole trainings in test_compile.py; a step of Lbfgs reads the loss.
ELSEWHERE: Final = {"Lbfgs", "Optimizer", "OptimizerAdaptor"}


@pytest.mark.parametrize("name", RUNS)
def test_a_compiled_function_follows_what_changes_between_its_calls(name: str) -> None:
    _, run = RUNS[name]
    px.seed(0)
    eager = run(lambda f: f)
    px.seed(0)
    assert run(px.compile) == eager
    assert len(set(eager)) > 2


def test_all_that_remembers_is_tested() -> None:
    found = {n for n, c in vars(optim).items() if inspect.isclass(c) and hasattr(c, "into_record")}
    assert found == {kind for kind, _ in RUNS.values()} | ELSEWHERE


class Holder:
    """An object of somebody's own, whose attributes nobody looks at."""

    def __init__(self, layer: Any) -> None:
        self.layer = layer


@pytest.mark.parametrize("made", [px.compile, lambda f: px.compile(px.compile(f))])
def test_a_model_from_outside_may_be_used_first_inside(made: Callable[[Any], Any]) -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        px.seed(4)
        first, held = nn.Linear(3, 4, device=Cpu()), Holder(nn.Linear(4, 2, device=Cpu()))

        def forward(x: px.Tensor) -> px.Tensor:
            noise = px.random.normal((2, 4), device=x.device)
            out: px.Tensor = held.layer(first(x) + noise)
            return out

        f = wrap(forward)
        return [f(px.ones((2, 3), device=Cpu())).tolist() for _ in range(5)]

    assert run(made) == run(lambda f: f)


def test_a_layer_that_a_function_makes_is_another_one_at_each_call() -> None:
    def run(wrap: Callable[[Any], Any]) -> list[Any]:
        px.seed(4)
        f = wrap(lambda x: nn.Linear(3, 2, device=x.device)(x))
        return [f(px.ones((1, 3), device=Cpu())).tolist() for _ in range(5)]

    found = run(px.compile)
    assert found == run(lambda f: f)
    assert len({str(each) for each in found}) == 5


_OPTIMIZERS = [
    optim.AdaGradConfig(),
    optim.AdafactorConfig(),
    optim.AdamConfig(),
    optim.AdamWConfig(),
    optim.AdanConfig(),
    optim.GroupsConfig(optim.AdamWConfig(), {"weight": optim.MuonConfig()}),
    optim.LionConfig(),
    optim.RmsPropConfig(),
    optim.SgdConfig(momentum=0.9),
]


@pytest.mark.parametrize("config", _OPTIMIZERS, ids=lambda c: type(c).__name__)
def test_no_optimizer_is_recorded_ever_again(config: Any) -> None:
    device = px.Autodiff(Cpu())

    def trained(compiled: bool) -> Any:
        px.seed(0)
        model: Any = nn.Linear(4, 3, device=device)
        optimizer = config.init()

        def step(model: Any, x: px.Tensor) -> Any:
            return optimizer.step(1e-2, model, model(x).square().mean().backward())

        run: Any = px.compile(step) if compiled else step
        for at in range(12):
            model = run(model, px.full((2, 4), 1.0 + at, device=device))
        if compiled:
            assert run.versions <= 3
        return model.weight.value.tolist(), model.bias.value.tolist()

    assert trained(True) == trained(False)
