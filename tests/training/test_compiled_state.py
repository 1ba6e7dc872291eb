"""What remembers something between steps is followed by compiled functions."""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Callable
from typing import Any, Final

import pytest

import phlox as px
from phlox import Cpu, Tensor, nn, optim


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
            assert (run.versions <= 3, run.fallbacks) == (True, 0)
        return model.weight.value.tolist(), model.bias.value.tolist()

    assert trained(True) == trained(False)


def _net() -> Any:
    px.seed(0)
    return nn.Linear(4, 3, device=px.Autodiff(Cpu()))


def test_what_reads_at_each_step_is_named_when_it_is_compiled() -> None:
    device = px.Autodiff(Cpu())
    scaling, plateau = optim.LossScalingConfig().init(), optim.PlateauSchedulerConfig(0.1).init()
    optimizer = optim.AdamConfig().init()

    def loss_of(model: Any, x: px.Tensor) -> px.Tensor:
        return model(x).square().mean()

    def scaled(model: Any, x: px.Tensor) -> Any:
        return scaling.step(optimizer, 0.1, model, scaling.scaled(loss_of(model, x)).backward())

    def skipping(model: Any, x: px.Tensor) -> Any:
        return optimizer.step(0.1, model, loss_of(model, x).backward(), skip_nonfinite=True)

    def measured(model: Any, x: px.Tensor) -> Any:
        loss = loss_of(model, x)
        return optimizer.step(plateau.step(loss), model, loss.backward())

    told = {
        scaled: r"LossScaling\.step decides(.|\n)*scaling\.step\(optimizer, lr, model, grads\)",
        skipping: r"skip_nonfinite=True decides(.|\n)*value_and_grad",
        measured: r"PlateauScheduler\.step decides(.|\n)*plateau\.step\(loss\) outside",
    }
    for step, text in told.items():
        with pytest.raises(px.CompileError, match=text):
            px.compile(step)(_net(), px.ones((2, 4), device=device))


def test_scaled_gradients_are_compiled_and_steps_taken_outside() -> None:
    device = px.Autodiff(Cpu())

    def trained(made: Callable[[Any], Any]) -> Any:
        model = _net()
        scaling, optimizer = optim.LossScalingConfig(2.0).init(), optim.AdamConfig().init()
        grads_of = made(px.value_and_grad(lambda model, scale, x: model(x).square().mean() * scale))
        for at in range(6):
            x = px.full((2, 4), float("inf") if at == 3 else 1.0 + at, device=device)
            _, grads = grads_of(model, scaling.scale, x)
            model = scaling.step(optimizer, 0.1, model, grads)
        return model.weight.value.tolist(), scaling.scale, optimizer.skipped

    assert trained(px.compile) == trained(lambda f: f)
    assert trained(px.compile)[1:] == (1.0, 1)


_CONSTANT = optim.ConstantSchedulerConfig(0.1)
_SCHEDULES = [
    _CONSTANT,
    optim.ComposedSchedulerConfig((_CONSTANT, optim.StepSchedulerConfig(0.1, 3))),
    optim.CosineRestartsSchedulerConfig(0.1, 4),
    optim.CosineSchedulerConfig(0.1, 8),
    optim.ExponentialSchedulerConfig(0.1, 0.9),
    optim.InverseSquareRootSchedulerConfig(0.1, 3),
    optim.LinearSchedulerConfig(0.1, 0.0, 8),
    optim.MultiStepSchedulerConfig(0.1, (3, 6)),
    optim.NoamSchedulerConfig(0.1, 3, 8),
    optim.OneCycleSchedulerConfig(0.1, 20),
    optim.PolynomialSchedulerConfig(0.1, 8),
    optim.SequentialSchedulerConfig((_CONSTANT, optim.StepSchedulerConfig(0.1, 3)), (5,)),
    optim.StepSchedulerConfig(0.1, 3),
    optim.WarmUpSchedulerConfig(optim.CosineSchedulerConfig(0.1, 8), 3),
]


@pytest.mark.parametrize("config", _SCHEDULES, ids=lambda c: type(c).__name__)
def test_no_schedule_is_recorded_ever_again(config: Any) -> None:
    followed, eager = config.init(), config.init()
    fast = px.compile(lambda x: x * followed.step())
    for _ in range(12):
        assert fast(px.ones(1)).item() == (px.ones(1) * eager.step()).item()
    assert fast.versions <= 3


SHARE = 1.0


class Shared(nn.Module):
    """A module whose forward pass reads a global name."""

    inner: nn.Linear

    def forward(self, x: px.Tensor) -> px.Tensor:
        return self.inner(x) * SHARE


def _shared(x: px.Tensor) -> px.Tensor:
    return x * SHARE


def test_what_modules_and_transformed_functions_read_is_followed() -> None:
    global SHARE  # noqa: PLW0603 - what the test is about
    model = Shared(nn.Linear(1, 1))
    row = nn.Sequential(nn.Linear(1, 1), model)
    value, rows, again = px.value_and_grad(_shared), px.vmap(_shared), px.checkpoint(_shared)
    inner, kernel = px.compile(_shared), px.kernel(_shared)
    one = px.ones((1, 1))
    cases: list[tuple[Any, tuple[Any, ...], Callable[..., Any]]] = [
        (px.compile(lambda m, x: m(x)), (model, one), model),
        (px.compile(lambda m, x: m(x)), (row, one), row),
        (px.compile(lambda x: model(x)), (one,), model),  # noqa: PLW0108 - a name from outside
        (px.compile(model), (one,), model),
        (px.compile(lambda x: value(x)[0]), (one,), _shared),
        (px.compile(lambda x: rows(x) * 1.0), (one,), _shared),
        (px.compile(lambda x: again(x) * 1.0), (one,), _shared),
        (px.compile(lambda x: inner(x) * 1.0), (one,), _shared),
        (px.compile(lambda x: kernel(x) * 1.0), (one,), _shared),
        (px.compile(value), (one,), lambda x: (_shared(x), None)),
    ]
    try:
        for fast, given, plain in cases:
            for share in (1.0, 3.0, 1.0):
                SHARE = share
                for _ in range(3):
                    found, wanted = fast(*given), plain(given[-1])
                    if isinstance(found, tuple):
                        found, wanted = found[0], wanted[0]
                    assert found.tolist() == wanted.tolist()
            assert fast.versions == 2
    finally:
        SHARE = 1.0


def test_a_compiled_module_shows_the_module() -> None:
    model = nn.Linear(3, 2)
    fast: Any = px.compile(model)
    assert fast.weight is model.weight
    assert [*fast.params()] == [*model.params()]
    assert repr(fast) == "<compiled Linear: 0 versions>"
    fast(px.ones((1, 3)))
    assert repr(fast) == "<compiled Linear: 1 version>"
    with pytest.raises(AttributeError, match="wieght"):
        fast.wieght  # noqa: B018 - the look is the test
    again = pickle.loads(pickle.dumps(fast))
    assert again(px.ones((1, 3))).tolist() == model(px.ones((1, 3))).tolist()
    method: Any = px.compile(model.forward)
    with pytest.raises(AttributeError, match="'Compiled' object has no attribute 'weight'"):
        method.weight  # noqa: B018 - as above


class Rate:
    """An object in a field."""

    def __init__(self) -> None:
        self.value = 1.0


class Fields(nn.Module):
    """Fields that may change although the module does not."""

    def __init__(self) -> None:
        self.last = nn.Linear(1, 1)
        self.settings: dict[str, Any] = {"rate": 1.0, "rates": [1.0]}
        self.layers = [nn.Linear(1, 1)]
        self.rate = Rate()
        self.rates = {1.0}

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        rates = self.settings["rate"] * self.settings["rates"][0] * self.rate.value
        return self.last(x) * rates * sum(self.rates)


class Outer(nn.Module):
    """The same, inside of another module."""

    def __init__(self) -> None:
        self.inside = Fields()

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x)


CHANGES: dict[str, Callable[[Fields], Any]] = {
    "a dict": lambda m: m.settings.update(rate=5.0),
    "a layer more": lambda m: m.layers.append(nn.Linear(1, 1)),
    "an object": lambda m: setattr(m.rate, "value", 3.0),
    "another layer": lambda m: m.layers.__setitem__(0, nn.Linear(1, 1)),
    "inside of a dict": lambda m: m.settings["rates"].__setitem__(0, 7.0),
    "a set": lambda m: m.rates.add(4.0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("made", [Fields, Outer])
def test_what_changes_in_fields_of_a_module_is_followed(
    made: Callable[[], Any], change: Callable[[Fields], Any]
) -> None:
    model = made()
    x = px.ones((1, 1))
    fasts: list[tuple[Any, tuple[Any, ...]]] = [
        (px.compile(lambda model, x: model(x)), (model, x)),
        (px.compile(lambda both: both[0](both[1])), ((model, x),)),
        (px.compile(lambda x: model(x) * 1.0), (x,)),
    ]
    for _ in range(2):
        for fast, given in fasts:
            for _ in range(3):
                assert fast(*given).item() == model(x).item()
        change(model if made is Fields else model.inside)
    assert [fast.versions for fast, _ in fasts] == [2, 2, 2]


def test_lists_of_a_model_that_steps_give_are_followed() -> None:
    device = px.Autodiff(Cpu())

    class Stack(nn.Module):
        def __init__(self) -> None:
            self.layers = [nn.Linear(2, 2, device=device) for _ in range(2)]
            self.settings = {"rate": 1.0}

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x)
            return x * self.settings["rate"]

    rule = optim.SgdConfig().init()
    x = px.ones((3, 2), device=device)

    @px.compile
    def step(model: Stack, x: Tensor) -> tuple[Stack, Tensor]:
        loss = model(x).square().mean()
        return rule.step(1e-2, model, loss.backward()), loss

    model = Stack()
    for round_ in range(3):
        for _ in range(4):
            expected = model(x).square().mean().item()
            model, loss = step(model, x)
            assert loss.item() == expected
        if round_ == 0:
            model.settings["rate"] = 2.0
        else:
            model.layers[0] = nn.Linear(2, 2, device=device)


@pytest.mark.parametrize("device", [Cpu(), px.Autodiff(Cpu())])
def test_check_mode_compares_what_is_left_in_cells(
    device: px.Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, other = px.Cell(0), px.Cell(0)
    names = ["_".join(["PHLOX", "TEST", name]) for name in ("STEP", "OTHER")]  # of no code

    def counted(x: px.Tensor) -> px.Tensor:
        (other if names[1] in os.environ else count).set(count.get() + int(os.environ[names[0]]))
        return x * 2

    x = px.ones(3, device=device)
    x = x if device is Cpu() else x.require_grad()
    monkeypatch.setenv("PHLOX_TEST_STEP", "1")
    fast = px.compile(counted, check=True)
    for _ in range(4):
        fast(x)
    assert count.get() == 4
    monkeypatch.setenv("PHLOX_TEST_STEP", "5")
    with pytest.raises(px.DisagreementError, match="what it leaves in a cell that holds int"):
        fast(x)
    monkeypatch.setenv("PHLOX_TEST_OTHER", "")
    with pytest.raises(px.DisagreementError, match="what it leaves in a cell that holds int"):
        fast(x)


def test_states_of_a_record_are_loaded_where_the_parameters_are() -> None:
    device = px.Autodiff("numpy")
    recorder = px.record.NamedMsgpackRecorder()
    x = px.ones((3, 4), device=device)

    def begun() -> tuple[nn.Linear, Any, Any]:
        px.seed(0)
        optimizer = optim.AdamWConfig().init()

        @px.compile
        def step(model: nn.Linear) -> nn.Linear:
            grads = px.grad(lambda model: model(x).square().mean())(model)
            return optimizer.step(0.1, model, grads)

        return nn.Linear(4, 2, device=device), optimizer, step

    model, optimizer, step = begun()
    for _ in range(3):
        model = step(model)
    saved = recorder.to_bytes({"model": model.into_record(), "optimizer": optimizer.into_record()})
    expected = step(model).weight.value.tolist()

    def gone_on() -> Any:
        model, optimizer, step = begun()
        record: Any = recorder.from_bytes(saved)
        optimizer.load_record(record["optimizer"])
        return step(model.load_record(record["model"])).weight.value.tolist()

    with pytest.raises(
        px.CompileError, match=r"got Cpu\(\), expected (.|\n)*hint: with px.use_device"
    ):
        gone_on()
    with px.use_device(device):
        assert gone_on() == expected
