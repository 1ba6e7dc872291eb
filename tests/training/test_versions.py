"""Equal structure is one version: what has state is an argument like any other."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Tensor, nn, optim

pytestmark = pytest.mark.filterwarnings("ignore:.*changes runs at each call")

TRAIN = Autodiff(Cpu())
LOSS = nn.CrossEntropyLoss()


def counted(function: Callable[..., Any]) -> tuple[Any, list[int]]:
    """A compiled function, and a list with an entry for each time that Python ran it."""
    runs: list[int] = []

    def note() -> None:
        runs.append(1)

    def run(*args: Any) -> Any:
        note()
        return function(*args)

    return px.compile(run), runs


def pair(seed: int = 0, config: optim.OptimizerConfig | None = None) -> tuple[Any, Any]:
    px.seed(seed)
    net = nn.Sequential(
        nn.Linear(6, 5, device=TRAIN), nn.Activation("relu"), nn.Linear(5, 3, device=TRAIN)
    )
    return net, (config or optim.AdamConfig()).init()


def data() -> tuple[Tensor, Tensor]:
    x = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    return px.asarray(x, device=TRAIN), px.asarray(np.arange(8) % 3, device=Cpu())


def step(model: Any, optimizer: Any, x: Tensor, y: Tensor, lr: float) -> Any:
    loss = LOSS(model(x), y)
    return optimizer.step(lr, model, loss.backward()), loss


def losses(run: Callable[..., Any], config: Any = None, steps: int = 6) -> list[float]:
    model, optimizer = pair(config=config)
    x, y = data()
    found = []
    for _ in range(steps):
        model, loss = run(model, optimizer, x, y, 0.05)
        found.append(float(loss))
    assert optimizer.steps == steps
    return found


def test_a_new_model_and_optimizer_record_nothing() -> None:
    fast, runs = counted(step)
    expected = losses(step)
    for turn in range(12):
        assert losses(fast) == expected
        if turn == 1:
            # The first step, which has no state, and the later ones: two runs of each, and one
            # that looks whether the fourth call still does the same.
            assert len(runs) <= 6
    assert len(runs) <= 10  # of 72 calls: it looks again, ever more rarely
    assert fast.versions == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.SgdConfig(momentum=0.9),
        lambda: optim.AdamWConfig(groups={"layers.2.*": {"lr_factor": 0.1}}),
        lambda: optim.AdamConfig(grad_clipping=optim.ClipByGlobalNorm(0.1)),
        lambda: optim.GroupsConfig(optim.AdamConfig(), {"layers.0.weight": optim.MuonConfig()}),
        optim.AdafactorConfig,
        lambda: optim.LionConfig(decayed="matrices"),
    ],
)
def test_optimizers_of_equal_settings_are_one_version(make: Callable[[], Any]) -> None:
    fast, runs = counted(step)
    expected = losses(step, make())
    assert losses(fast, make()) == expected
    for _ in range(5):
        assert losses(fast, make()) == expected
    assert len(runs) <= 8  # of 36 calls
    assert fast.versions <= 2


def test_other_settings_are_other_versions() -> None:
    fast = px.compile(step)
    for config in (optim.AdamConfig(), optim.AdamConfig(beta_1=0.5)) * 2:
        assert losses(fast, config) == losses(step, config)
    assert fast.versions == 4
    fast = px.compile(step)
    for clipping in (None, optim.ClipByNorm(0.01), optim.ClipByNorm(0.1)):
        sgd = optim.SgdConfig(grad_clipping=clipping)
        assert losses(fast, sgd) == losses(step, sgd)
    assert fast.versions == 3  # plain steps keep no state, so that the first one is no other


def test_the_warning_names_the_setting_that_changes() -> None:
    fast = px.compile(step)
    for at in range(4):
        losses(fast, optim.AdamConfig(beta_1=0.125 * at), steps=3)
    with pytest.warns(UserWarning, match="Adaptor with beta_1=0.375, then with beta_1=0.5"):
        losses(fast, optim.AdamConfig(beta_1=0.5), steps=3)


def test_optimizers_by_turns_keep_their_states_apart() -> None:
    fast = px.compile(step)
    x, y = data()
    pairs = [pair(seed=0) for _ in range(3)]
    plain = [pair(seed=0) for _ in range(3)]
    for turn in range(5):
        for at in range(3):
            rate = 0.01 * (1 + at)
            model, loss = fast(*pairs[at], x, y, rate)
            pairs[at] = model, pairs[at][1]
            model, own = step(*plain[at], x, y, rate)
            plain[at] = model, plain[at][1]
            assert float(loss) == float(own), (turn, at)
    assert [o.steps for _, o in pairs] == [5] * 3
    assert fast.versions == 2


def test_two_runs_on_two_optimizers_agree() -> None:
    fast = px.compile(step)
    x, y = data()
    for turn in range(4):
        model, optimizer = pair()
        _, loss = fast(model, optimizer, x, y, 0.05)
        assert (optimizer.steps, float(loss)) == (1, losses(step, steps=1)[0]), turn
    assert fast.versions == 1


def test_an_optimizer_comes_back_as_the_one_that_was_given() -> None:
    fast = px.compile(lambda m, o, x, y: (*step(m, o, x, y, 0.1), o))
    x, y = data()
    for _ in range(5):
        model, optimizer = pair()
        *_, out = fast(model, optimizer, x, y)
        assert out is optimizer


def test_schedules_cells_and_generators_are_arguments_too() -> None:
    def run(schedule: Any, count: Any, numbers: Any, x: Tensor) -> Tensor:
        count.set(count.get() + 1)
        with px.random.use_generator(numbers):
            noise = px.random.uniform(x.shape)
        return x * schedule.step() + noise + count.get()

    fast, runs = counted(run)
    config = optim.LinearSchedulerConfig(1.0, 0.0, steps=10)
    for turn in range(4):
        mine = config.init(), px.Cell(3), px.random.Generator(turn)
        own = config.init(), px.Cell(3), px.random.Generator(turn)
        for _ in range(4):
            assert fast(*mine, px.ones(3)).tolist() == run(*own, px.ones(3)).tolist()
        assert (mine[1].get(), mine[2].state()) == (own[1].get(), own[2].state())
    assert (len(runs) <= 4, fast.versions) == (True, 1)  # of 16 calls


@pytest.mark.parametrize("steps", [1, 3])
def test_schedules_of_configs_that_are_equal_agree_at_every_call(steps: int) -> None:
    fast, runs = counted(lambda schedule, x: x * schedule.step())
    for _ in range(24 // steps):
        mine, own = (optim.CosineSchedulerConfig(0.5, steps=9).init() for _ in range(2))
        for _ in range(steps):
            assert fast(mine, px.ones(2)).tolist() == (px.ones(2) * own.step()).tolist()
    assert (len(runs), fast.versions) == (4, 1)


def test_what_has_state_goes_after_it_was_an_argument() -> None:
    fast = px.compile(lambda cell, schedule, x: x * schedule.step() + cell.get())
    gone: list[weakref.ref[Any]] = []
    for _ in range(4):
        cell, schedule = px.Cell(px.ones(3)), optim.ConstantSchedulerConfig(0.1).init()
        for _ in range(3):
            fast(cell, schedule, px.ones(3))
        gone += [weakref.ref(cell), weakref.ref(schedule)]
        del cell, schedule
    model, optimizer = pair()
    run = px.compile(step)
    for _ in range(3):
        model, _ = run(model, optimizer, *data(), 0.1)
    gone.append(weakref.ref(optimizer))
    del model, optimizer, run, fast
    gc.collect()
    assert [known() for known in gone] == [None] * 9


def test_states_inside_of_containers_and_a_part_of_a_graph() -> None:
    def run(trained: dict[str, Any], x: Tensor) -> Tensor:
        trained["count"].set(trained["count"].get() + 1)
        return (x * trained["w"]).square() * trained["count"].get()

    fast, runs = counted(run)
    for turn in range(4):
        count, own = px.Cell(turn), px.Cell(turn)
        for _ in range(3):
            w = px.full((2,), 2.0 + turn, device=TRAIN).require_grad()
            x = px.ones(2, device=TRAIN)
            slope = w.grad(fast({"w": w, "count": count}, x).sum().backward())
            expected = w.grad(run({"w": w, "count": own}, x).sum().backward())
            assert slope.tolist() == expected.tolist()
        assert count.get() == own.get() == turn + 3
    assert (len(runs) <= 6, fast.versions) == (True, 1)  # two calls, and two passes back


def test_check_mode_compares_the_state_of_the_argument() -> None:
    fast = px.compile(step, check=True)
    for _ in range(3):
        assert losses(fast) == losses(step)


def test_a_cell_at_two_places_is_another_form() -> None:
    def run(a: Any, b: Any, x: Tensor) -> Tensor:
        a.set(a.get() + 1)
        b.set(b.get() * 2)
        return x + a.get() + b.get()

    fast = px.compile(run)
    for _ in range(4):
        one, two = px.Cell(1), px.Cell(5)
        assert fast(one, two, px.zeros(1)).item() == 12.0
        assert fast(one, one, px.zeros(1)).item() == 12.0
        assert (one.get(), two.get()) == (6, 10)


def test_an_optimizer_that_is_an_argument_and_a_name_is_refused() -> None:
    _, optimizer = pair()

    def run(model: Any, given: Any, x: Tensor, y: Tensor) -> Any:
        return step(model, given, x, y, 0.1), optimizer.steps

    model, _ = pair()
    with pytest.raises(px.CompileError, match="is an argument, and is reached in another way too"):
        px.compile(run)(model, optimizer, *data())


def test_a_rule_of_yours_is_a_version_of_its_own() -> None:
    class Sign(optim.SimpleOptimizer):
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def step(self, lr: float, tensor: Any, grad: Any, state: Any) -> Any:
            return tensor - lr * self.factor * grad.sign(), state

    fast = px.compile(step)
    x, y = data()
    for factor in (1.0, 2.0):
        rule = Sign(factor)
        mine, own = (optim.OptimizerAdaptor(rule) for _ in range(2))
        (model, _), (plain, _) = pair(), pair()
        for at in range(6):
            rule.factor += at == 3
            model, loss = fast(model, mine, x, y, 0.01)
            plain, expected = step(plain, own, x, y, 0.01)
            assert float(loss) == float(expected)


def test_a_call_among_fifty_versions_runs_what_one_among_two_runs() -> None:
    def functions_of_a_turn(count: int) -> int:
        fast = px.compile(lambda x: (x * 2 + 1).relu().exp())
        arrays = [px.ones(10 + at, device=Cpu()) for at in range(count)]
        with warnings.catch_warnings(action="ignore"):  # it was recorded ten times
            for array in arrays * 5:
                fast(array)
        called: list[str] = []
        sys.setprofile(lambda frame, event, _: called.append(event) if event == "call" else None)
        try:
            for array in arrays:
                fast(array)
        finally:
            sys.setprofile(None)
        assert fast.versions == count
        return len(called) // count

    assert functions_of_a_turn(50) == functions_of_a_turn(2) > 4
