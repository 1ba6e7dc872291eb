"""Compiled training steps give the bits of the steps as they are written."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import phlox as px
from benchmarks import networks
from phlox import Autodiff, Backend, Cpu, Numpy, Tensor, Wgpu, nn, optim, record
from tests.training.models import NetConfig, batches

CPU, NUMPY = Cpu(), Numpy()


def wgpu() -> Wgpu:
    """The GPU backend, where it runs."""
    try:
        return Wgpu()
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")


class Run:
    """A training: what a step needs, and what it leaves."""

    def __init__(self, device: Backend, model: Any, optimizer: Any, *, compiled: bool) -> None:
        px.seed(7)
        self.device = device
        self.model = model
        self.optimizer = optimizer.init()
        self.schedule = optim.CosineSchedulerConfig(1e-2, steps=40).init()
        loss_of: Any = nn.CrossEntropyLossConfig(smoothing=0.05).init()
        optimizer, schedule = self.optimizer, self.schedule

        def step(model: Any, x: Tensor, y: Tensor) -> tuple[Any, Tensor]:
            loss = loss_of(model(x), y)
            return optimizer.step(schedule.step(), model, loss.backward()), loss

        self.step: Callable[..., Any] = px.compile(step) if compiled else step
        self.losses: list[Any] = []

    def go(self, data: Batches) -> Run:
        for x, y in data:
            given = px.asarray(x, device=self.device), px.asarray(y, device=self.device)
            self.model, loss = self.step(self.model, *given)
            self.losses.append(loss.item())
        assert getattr(self.step, "fallbacks", 0) == 0
        return self

    def all(self) -> Any:
        model = {path: p.value.numpy().tobytes() for path, p in self.model.params().items()}
        kept = px.tree.map(
            lambda x: x.numpy().tobytes() if isinstance(x, Tensor) else x,
            self.optimizer._state.get(),
        )
        random = px.random.generator().state()
        return self.losses, model, kept, self.schedule.into_record(), self.optimizer.steps, random


Batches = list[tuple[np.ndarray, np.ndarray]]


def images(count: int, size: int = 8) -> Batches:
    return [(x.numpy(), y.numpy()) for x, y in batches(count, NUMPY, size)]


def rows(count: int, size: int = 8) -> Batches:
    rng = np.random.default_rng(1)
    pairs = [(rng.normal(size=(size, 6)), rng.integers(0, 3, size)) for _ in range(count)]
    return [(x.astype(np.float32), y) for x, y in pairs]


class Words(nn.Module):
    """A small encoder over rows cut into words."""

    body: networks.Encoder
    head: nn.Linear

    def forward(self, x: Tensor) -> Tensor:
        words = x.reshape(x.shape[0], 3, 2).repeat(4, axis=2)
        return self.head(self.body(words).mean(axis=1))


def mlp(device: Backend) -> Any:
    return networks.mlp(6, 5, 3, device)


def cnn(device: Backend) -> Any:
    return NetConfig().init(device)


def encoder(device: Backend) -> Any:
    return Words(networks.encoder(2, 8, 2, 16, device), nn.Linear(8, 3, device=device))


class Sentences(nn.Module):
    """A recurrent network over rows cut into words."""

    body: nn.Lstm
    head: nn.Linear

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.body(x.reshape(x.shape[0], 3, 2))
        return self.head(states[:, -1])


def recurrent(device: Backend) -> Any:
    return Sentences(nn.Lstm(2, 5, device=device), nn.Linear(5, 3, device=device))


def normed(device: Backend) -> Any:
    return nn.Sequential(
        nn.Linear(6, 8, device=device),
        nn.BatchNorm(8, device=device),
        nn.Activation("gelu"),
        nn.Dropout(0.2),
        nn.Linear(8, 3, device=device),
    ).train(device)


CLIP = optim.ClipByGlobalNorm(1.0)
CASES = {
    "mlp-adam": (mlp, rows, optim.AdamConfig()),
    "mlp-amsgrad": (mlp, rows, optim.AdamConfig(amsgrad=True, weight_decay=0.01)),
    "mlp-momentum": (mlp, rows, optim.SgdConfig(momentum=0.9, nesterov=True)),
    "mlp-sgd": (mlp, rows, optim.SgdConfig()),
    "normed-lion": (normed, rows, optim.LionConfig(weight_decay=0.01)),
    "recurrent-adam": (recurrent, rows, optim.AdamConfig()),
    "cnn-adamw-clipped": (cnn, images, optim.AdamWConfig(grad_clipping=CLIP)),
    "encoder-adam": (encoder, rows, optim.AdamConfig()),
}


def trained(device: Backend, name: str, steps: int, *, compiled: bool) -> Run:
    make, data, optimizer = CASES[name]
    px.seed(0)
    return Run(device, make(device), optimizer, compiled=compiled).go(data(steps))


@pytest.mark.parametrize("name", CASES)
def test_fifty_compiled_steps_have_the_bits_of_eager_ones(name: str) -> None:
    device = Autodiff(CPU)
    eager = trained(device, name, 50, compiled=False).all()
    fast = trained(device, name, 50, compiled=True)
    assert fast.all() == eager
    assert fast.step.versions <= 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CASES)
def test_fifty_steps_of_ops_that_wait_have_the_bits_of_eager_ones(name: str) -> None:
    eager = trained(Autodiff(CPU), name, 50, compiled=False).all()
    lazy = px.Fusion(CPU, least=0)
    assert trained(Autodiff(lazy), name, 50, compiled=False).all() == eager
    assert lazy.fallbacks == 0


@pytest.mark.parametrize("name", ["mlp-adam", "cnn-adamw-clipped"])
def test_compiled_steps_on_the_reference(name: str) -> None:
    device = Autodiff(NUMPY)
    eager = trained(device, name, 8, compiled=False).all()
    assert trained(device, name, 8, compiled=True).all() == eager


@pytest.mark.parametrize("name", ["mlp-adam", "cnn-adamw-clipped"])
def test_compiled_steps_on_the_gpu(name: str) -> None:
    device = Autodiff(wgpu())
    eager = trained(device, name, 6, compiled=False).all()
    fast = trained(device, name, 6, compiled=True)
    # A driver may round a product and a sum of one kernel once.
    np.testing.assert_allclose(fast.all()[0], eager[0], rtol=1e-5)
    assert fast.step.versions <= 2  # type: ignore[attr-defined]
    (text,) = [source for source in fast.step.sources if "_step" in source]  # type: ignore[attr-defined]
    assert " = repeated_" in text  # forward and backward pass, without the ops


def test_ops_that_only_check_their_indices_run_on_the_gpu_too() -> None:
    device = wgpu()

    @px.compile
    def scaled(x: Tensor, at: Tensor[px.Int], rate: float) -> Tensor:
        px.take(x, at, axis=0)
        px.take(x, at, axis=0)
        return x * rate

    x = px.ones(3, device=device)
    inside, outside = (px.asarray([0, last], device=device) for last in (2, 3))
    assert [scaled(x, inside, 2.0 * n).tolist() for n in range(4)] == [
        [2.0 * n] * 3 for n in range(4)
    ]
    with pytest.raises(px.IndexOutOfRangeError, match="take"):
        scaled(x, outside, 2.0).tolist()


def test_compiled_steps_with_checkpoints() -> None:
    from phlox_autodiff import BalancedCheckpointing

    device = Autodiff(CPU, BalancedCheckpointing())
    eager = trained(device, "cnn-adamw-clipped", 8, compiled=False).all()
    assert trained(device, "cnn-adamw-clipped", 8, compiled=True).all() == eager


def test_check_mode_agrees_with_a_whole_training(monkeypatch: pytest.MonkeyPatch) -> None:
    eager = trained(Autodiff(CPU), "cnn-adamw-clipped", 8, compiled=False).all()
    monkeypatch.setenv("PHLOX_COMPILE", "check")
    assert trained(Autodiff(CPU), "cnn-adamw-clipped", 8, compiled=True).all() == eager


def test_batches_of_several_sizes_and_eager_steps_in_between() -> None:
    device = Autodiff(CPU)
    data = [*images(4), *images(2, 5), *images(3), *images(3, 5), *images(2)]

    def mixed(compiled: bool) -> Any:
        px.seed(0)
        run = Run(device, cnn(device), optim.AdamWConfig(), compiled=compiled)
        run.go(data)
        if compiled:  # by hand, and then compiled again
            run.step, step = run.step.__wrapped__, run.step  # type: ignore[attr-defined]
            run.go(data[:2])
            run.step = step
        else:
            run.go(data[:2])
        return run.go(data[:3]).all()

    assert mixed(True) == mixed(False)


def test_saving_and_resuming_midway() -> None:
    device = Autodiff(CPU)
    data = images(12)
    px.seed(0)
    whole = Run(device, cnn(device), optim.AdamWConfig(), compiled=True)
    whole.go(data[:6])
    recorder = record.NamedMsgpackRecorder()
    saved = recorder.to_bytes(
        {
            "model": whole.model.into_record(),
            "optimizer": whole.optimizer.into_record(),
            "schedule": whole.schedule.into_record(),
        }
    )
    random = px.random.generator().state()
    whole.go(data[6:])
    end = whole.all()
    found = recorder.from_bytes(saved)
    again = Run(device, cnn(device), optim.AdamWConfig(), compiled=True)
    again.model = again.model.load_record(found["model"])
    again.optimizer.load_record(found["optimizer"])
    again.schedule.load_record(found["schedule"])
    px.random.generator().set_state(*random)
    again.go(data[6:])
    assert again.all()[1:] == end[1:]
    assert again.losses == end[0][6:]


def test_going_back_to_an_older_model_and_state_is_followed() -> None:
    """What came from a replay must not be taken for what the cells hold."""
    run = Run(Autodiff(CPU), mlp(Autodiff(CPU)), optim.AdamConfig(), compiled=True)
    data = rows(8)
    run.go(data[:5])
    model, record = run.model, run.optimizer.into_record()
    run.go(data[5:])
    end = run.all()[1:3]
    run.model = model
    run.optimizer.load_record(record)
    run.schedule.load_record({"position": 5})
    run.go(data[5:])
    assert run.all()[1:3] == end


def test_a_model_that_is_compiled_predicts() -> None:
    device = Autodiff(CPU)
    px.seed(0)
    model = cnn(device)
    predict = px.compile(lambda model, x: model(x).argmax(axis=-1))
    for x, _ in images(5):
        given = px.asarray(x, device=device)
        plain = model.valid()
        assert predict(plain, given.inner()).tolist() == plain(given.inner()).argmax(-1).tolist()
    whole = px.compile(model.valid())
    for x, _ in images(4):
        given = px.asarray(x, device=CPU)
        assert whole(given).numpy().tobytes() == model.valid()(given).numpy().tobytes()
    assert (predict.versions, whole.versions) == (1, 1)
    assert (predict.fallbacks, whole.fallbacks) == (0, 0)


def test_gradients_that_are_returned_are_told_how() -> None:
    step = px.compile(lambda model, x: model(x).sum().backward())
    device = Autodiff(CPU)
    with pytest.raises(px.CompileError, match=r"got Gradients(.|\n)*hint: px\.value_and_grad\("):
        step(mlp(device), px.ones((2, 6), device=device))
    parts = px.compile(lambda x: map(abs, [x]))
    with pytest.raises(px.CompileError, match=r"hint: a list of what it gives"):
        parts(px.ones(2))


def test_transforms_inside_are_compiled() -> None:
    px.seed(0)
    model = mlp(Autodiff(CPU)).valid()

    def loss_of(model: Any, x: Tensor) -> Tensor:
        return model(x).square().mean()

    both = px.compile(px.value_and_grad(loss_of))
    hessian = px.compile(px.grad(lambda x: px.grad(lambda y: (y.sin() * y).sum())(x).sum()))
    for x, _ in rows(4):
        given = px.asarray(x, device=CPU)
        value, grads = both(model, given)
        expected, wanted = px.value_and_grad(loss_of)(model, given)
        assert value.item() == expected.item()
        for (path, mine), own in zip(grads.params().items(), wanted.params().values(), strict=True):
            assert mine.value.tolist() == own.value.tolist(), path
        second = hessian(given)
        by_hand = 2 * given.cos() - given * given.sin()
        assert np.allclose(second.numpy(), by_hand.numpy(), rtol=1e-5, atol=1e-5)
    assert (both.fallbacks, hessian.fallbacks) == (0, 0)


@pytest.mark.parametrize("given", [px.ones((3, 2)), {"a": [px.ones((3, 2))]}], ids=["bare", "tree"])
def test_a_compiled_function_under_vmap_runs_as_written_or_around_it_as_one(given: Any) -> None:
    double = lambda x: px.tree.map(lambda leaf: leaf * 2.0, x)  # noqa: E731 - compiled and mapped
    for each in (px.vmap(px.compile(double)), px.compile(px.vmap(double))):
        for _ in range(3):
            (leaf,) = px.tree.leaves(each(given))
            assert leaf.tolist() == [[2.0, 2.0]] * 3


def test_one_leaf_given_twice_has_one_gradient() -> None:
    def pulled(a: Tensor, b: Tensor) -> Tensor:
        found = a.grad((a * b).sum().backward())
        assert found is not None
        return found

    fast = px.compile(pulled)
    device = Autodiff(CPU)
    for value in (2.0, 3.0, 4.0, 5.0):
        w = px.full((1,), value, device=device).require_grad()
        v = px.full((1,), 10.0, device=device).require_grad()
        assert fast(w, w).tolist() == [2 * value]
        assert fast(w, v).tolist() == [10.0]
    assert fast.fallbacks == 0


class Tied(nn.Module):
    """One parameter at two places."""

    w: nn.Param
    again: nn.Param

    def forward(self, x: Tensor) -> Tensor:
        return (x * self.w.value + self.again.value).sum()


def test_shared_parameters_stay_shared() -> None:
    def run(compiled: bool) -> Any:
        w = nn.Param(px.ones(3, device=Autodiff(CPU)), id="w")
        model, optimizer = Tied(w, w), optim.AdamConfig().init()

        def step(model: Tied, x: Tensor) -> Tied:
            return optimizer.step(0.1, model, model(x).backward())

        run = px.compile(step) if compiled else step
        for i in range(6):
            model = run(model, px.full((3,), 1.0 + i, device=Autodiff(CPU)))
            assert model.w is model.again
        assert getattr(run, "fallbacks", 0) == 0
        return model.w.value.tolist()

    assert run(True) == run(False)


def test_running_statistics_move_and_are_read() -> None:
    device = Autodiff(CPU)
    run = Run(device, cnn(device), optim.AdamWConfig(), compiled=True)
    before = run.model.norm.running_mean.value.tolist()
    seen = [before]
    for pair in images(5):
        run.go([pair])
        seen.append(run.model.norm.running_mean.value.tolist())
    assert len({tuple(s) for s in seen}) == len(seen)


def test_collected_updates_and_nan_watching_see_the_function() -> None:
    device = Autodiff(CPU)
    norm = nn.BatchNorm(2, device=device)
    fast = px.compile(lambda norm, x: norm(x).detach())
    x = px.ones((4, 2), device=device)
    for _ in range(3):
        fast(norm, x)
    with nn.collect() as updates:
        fast(norm, x)
    assert len(updates) == 2
    root = px.compile(lambda x: x.sqrt())
    for _ in range(3):
        root(px.ones(2, device=device))
    with px.detect_nan(), pytest.raises(px.GradientError, match="sqrt"):
        root(-px.ones(2, device=device))


def test_nothing_of_old_models_is_kept() -> None:
    device = Autodiff(CPU)
    run = Run(device, mlp(device), optim.AdamConfig(), compiled=True)
    run.go(rows(5))
    old = weakref.ref(run.model)
    run.go(rows(1))
    gc.collect()
    assert old() is None
    held = CPU.memory().current
    run.go(rows(300))
    gc.collect()
    assert CPU.memory().current <= held + 4096


def test_recorded_runs_keep_none_of_their_states() -> None:
    device = Autodiff(CPU)

    def held(steps: int, *, compiled: bool, collected: bool) -> int:
        gc.collect()
        start = CPU.memory().current
        run = Run(device, networks.mlp(6, 500, 3, device), optim.AdamConfig(), compiled=compiled)
        run.go(rows(steps))
        if collected:
            gc.collect()
            return CPU.memory().current - start
        del run
        return CPU.memory().current - start

    assert held(5, compiled=True, collected=True) <= held(5, compiled=False, collected=True) + 4096
    assert held(1, compiled=True, collected=False) <= 4096  # goes without the collector


def test_changing_shapes_do_not_grow() -> None:
    from phlox_fusion.trees import flat, layout

    device = Autodiff(CPU)
    model = mlp(device)
    predict = px.compile(lambda model, x: model(x).detach(), versions=8)

    def go(count: int) -> None:
        for size in range(1, count):
            predict(model, px.ones((size % 50 + 1, 6), device=device))

    with pytest.warns(UserWarning, match="shapes"):
        go(60)
    layouts = len(layout._LAYOUTS)
    held = CPU.memory().current
    go(200)
    gc.collect()
    assert predict.versions == 8
    assert len(flat._FLAT) < 50
    assert len(layout._LAYOUTS) <= layouts + 8
    assert CPU.memory().current <= held + 2**16


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_calls_of_changing_shapes_do_not_grow() -> None:
    device = Autodiff(CPU)
    model = mlp(device)
    body = px.compile(lambda model, x: model(x), versions=8)
    rng = np.random.default_rng(0)

    def go(count: int) -> int:
        for size in rng.geometric(0.4, count):
            body(model, px.ones((int(size), 6), device=device)).sum().backward()
        gc.collect()
        return CPU.memory().current

    with pytest.warns(UserWarning, match="shapes"):
        held = go(500)
    objects = len(gc.get_objects())
    assert go(10_000) <= held + 2**16
    assert len(gc.get_objects()) <= objects + 2_000
    assert body.versions == 8
