"""Training through every layer: it learns, it resumes, it repeats, and devices agree."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from examples.mnist.model import DigitsConfig
from phlox import Autodiff, Backend, BalancedCheckpointing, Cpu, Numpy, Wgpu, nn, optim, record
from phlox.random import Generator, use_generator
from tests.training.models import CLASSES, NetConfig, Training, batches

CPU = Autodiff(Cpu())
DEVICES: list[Backend] = [
    CPU,
    Autodiff(Numpy()),
    Autodiff(Wgpu()),
    Autodiff(Cpu(), checkpointing=BalancedCheckpointing()),
    Autodiff(Autodiff(Cpu())),
]
RECORDERS = [
    record.CompactMsgpackGzRecorder,
    record.CompactMsgpackRecorder,
    record.JsonGzRecorder,
    record.JsonRecorder,
    record.NamedMsgpackGzRecorder,
    record.NamedMsgpackRecorder,
]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_a_model_learns(device: Backend) -> None:
    px.seed(1)
    training = Training(device)
    losses = training.run(40)
    assert np.mean(losses[:5]) > 0.9
    assert np.mean(losses[-5:]) < 0.5
    valid = training.model.valid()
    assert valid.devices == [device.inner]
    assert device.inner is not None
    images, labels = next(batches(1, device.inner, size=60, seed=99))
    share = (valid(images).argmax(axis=1) == labels).astype("float32").mean().item()
    assert share > 0.9
    assert valid(images).tolist() == valid(images).tolist()


def test_devices_agree_on_a_run() -> None:
    """The same seed gives the same start, batches and dropout; rounding alone differs."""
    runs = {}
    for device in DEVICES:
        px.seed(2)
        runs[device] = Training(device).run(12)
    for device, losses in runs.items():
        assert np.allclose(losses, runs[CPU], rtol=2e-3), device


def test_checkpointing_changes_no_bit() -> None:
    bits = []
    for device in (CPU, Autodiff(Cpu(), checkpointing=BalancedCheckpointing())):
        px.seed(3)
        training = Training(device)
        training.run(5)
        bits.append(training.bits())
    assert bits[0] == bits[1]


@pytest.mark.parametrize("device", [CPU, Autodiff(Wgpu())], ids=repr)
def test_a_run_repeats_bit_by_bit(device: Backend) -> None:
    bits = []
    for _ in range(2):
        px.seed(4)
        training = Training(device)
        losses = training.run(5)
        bits.append((losses, training.bits()))
    assert bits[0] == bits[1]


@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: r.__name__)
@pytest.mark.parametrize("device", [CPU, Autodiff(Wgpu())], ids=repr)
def test_stopping_and_resuming_gives_the_same_bits(
    device: Backend, recorder: Any, tmp_path: Path
) -> None:
    px.seed(5)
    whole = Training(device)
    whole.run(3, seed=0)
    writer = recorder(record.FullPrecision)
    writer.record(whole.into_record(), tmp_path / "checkpoint")
    after = whole.run(3, seed=1)

    px.seed(1234)  # another process starts from other numbers
    resumed = Training(device)
    like = resumed.into_record() if recorder.needs_like else None
    resumed.load_record(writer.load(tmp_path / "checkpoint", device=device.inner, like=like))
    assert resumed.run(3, seed=1) == after
    assert resumed.bits() == whole.bits()
    assert resumed.schedule.rate == whole.schedule.rate


@pytest.mark.parametrize("device", [CPU, Autodiff(Numpy()), Autodiff(Wgpu())], ids=repr)
def test_two_threads_train_two_models_as_if_alone(device: Backend) -> None:
    def train(seed: int, out: dict[int, Any]) -> None:
        with use_generator(Generator(seed)):
            training = Training(device)
            losses = training.run(6, seed=seed)
            out[seed] = losses, training.bits()

    alone: dict[int, Any] = {}
    for seed in (1, 2):
        train(seed, alone)
    together: dict[int, Any] = {}
    threads = [threading.Thread(target=train, args=(seed, together)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_every_parameter_of_the_demo_gets_a_gradient() -> None:
    px.seed(6)
    device = CPU
    model = DigitsConfig().init(device)
    rng = np.random.default_rng(0)
    images = px.asarray(rng.normal(size=(8, 1, 28, 28)).astype(np.float32), device=device)
    labels = px.asarray(np.arange(8) % 10, device=device)
    grads = nn.CrossEntropyLoss()(model(images), labels).backward()
    for path, param in model.params().items():
        gradient = grads.get(param.value)
        if not param.trainable:
            assert gradient is None, path
            continue
        assert gradient is not None, path
        assert gradient.shape == param.shape, path
        assert np.isfinite(gradient.numpy()).all(), path
        # A bias in front of batch norm is shifted away: its gradient is rounding alone.
        if not path.startswith("conv") or not path.endswith("bias"):
            assert np.abs(gradient.numpy()).max() > 1e-6, path


def test_every_parameter_of_every_layer_gets_a_gradient() -> None:
    px.seed(7)
    training = Training(CPU)
    images, labels = next(batches(1, CPU))
    grads = training.loss(training.model(images), labels).backward()
    found = {path for path, p in training.model.params().items() if p.value in grads}
    assert found == {path for path, p in training.model.params().items() if p.trainable}


def test_running_statistics_move_in_training_alone() -> None:
    px.seed(8)
    training = Training(CPU)
    before = training.model.norm.running_mean.value.tolist()
    valid = training.model.valid()
    training.run(1)
    assert training.model.norm.running_mean.value.tolist() != before
    assert valid.norm.running_mean.value.tolist() == before
    still = training.model.with_training(False)
    middle = still.norm.running_mean.value.tolist()
    images, _ = next(batches(1, CPU))
    still(images)
    assert still.norm.running_mean.value.tolist() == middle


def test_gradients_through_a_model_in_inference() -> None:
    """For adversarial examples and the like: the input is the leaf, nothing else moves."""
    px.seed(9)
    model = Training(CPU).model.with_training(False).no_grad()
    images, labels = next(batches(1, CPU))
    images = images.require_grad()
    grads = nn.CrossEntropyLoss()(model(images), labels).backward()
    gradient = images.grad(grads)
    assert gradient is not None
    assert np.abs(gradient.numpy()).max() > 0
    assert all(p.value not in grads for p in model.params().values())


def test_accumulating_gradients_by_hand() -> None:
    """Two halves of a batch give the gradient of the whole, found by parameter id."""
    px.seed(10)
    model = nn.Linear(4, CLASSES, device=CPU)
    rng = np.random.default_rng(0)
    x = px.asarray(rng.normal(size=(8, 4)).astype(np.float32), device=CPU)
    y = px.asarray(rng.integers(0, CLASSES, 8), device=CPU)
    loss = nn.CrossEntropyLoss()
    whole = loss(model(x), y).backward()
    total: dict[str, Any] = {}
    for half in (slice(0, 4), slice(4, 8)):
        grads = (loss(model(x[half]), y[half]) * 0.5).backward()
        for param in model.params().values():
            part = param.value.grad(grads)
            total[param.id] = part if param.id not in total else total[param.id] + part
    rule = optim.SgdConfig()
    a = rule.init().step(0.1, model, whole)
    b = rule.init().step(0.1, model, total)
    for path, param in a.params().items():
        other = b.params()[path].value.numpy()
        assert np.allclose(param.value.numpy(), other, rtol=1e-5, atol=1e-7)


def test_a_model_is_saved_here_and_served_there(tmp_path: Path) -> None:
    px.seed(11)
    training = Training(CPU)
    training.run(2)
    config = NetConfig()
    recorder = record.NamedMsgpackRecorder(record.HalfPrecision)
    config.save(tmp_path / "net.json")
    training.model.save_file(tmp_path / "net", recorder)
    images, _ = next(batches(1, Cpu()))
    logits = {}
    for device in (Cpu(), Numpy(), Wgpu()):
        loaded = recorder.load(tmp_path / "net", device=device)
        model = NetConfig.load(tmp_path / "net.json").init_with(loaded)
        assert model.devices == [device]
        logits[device] = model(images.to_device(device)).numpy()
    want = training.model.valid()(images).numpy()
    for out in logits.values():
        assert np.allclose(out, logits[Cpu()], rtol=1e-4, atol=1e-5)
        assert np.allclose(out, want, rtol=2e-2, atol=2e-2)  # the weights were halved


def _train_in_a_child(queue: Any) -> None:
    px.seed(12)
    queue.put(Training(CPU).run(2))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_trains_on_the_cpu(method: str) -> None:
    px.seed(12)
    here = Training(CPU).run(2)  # the thread pool runs before a fork
    context = multiprocessing.get_context(method)
    queue: Any = context.Queue()
    child = context.Process(target=_train_in_a_child, args=(queue,))  # type: ignore[attr-defined]
    child.start()
    there = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    assert there == here


@pytest.mark.long
@pytest.mark.parametrize("device", [CPU, Autodiff(Wgpu())], ids=repr)
def test_many_steps_keep_memory_flat(device: Backend) -> None:
    """What the device counts, and what the process takes, after warming up and at the end."""
    px.seed(13)
    training = Training(device, steps=10_000)
    steps = 10_000 if device is CPU else 600
    data = list(batches(8, device, size=2))
    seen = []
    for i, batch in enumerate(itertools.islice(itertools.cycle(data), steps)):
        loss = training.step(*batch)
        if i % 50 == 0:
            loss.item()
        if i in (steps // 4, steps - 1):
            device.sync()
            del loss
            seen.append((device.memory().current, _resident()))
    (early, small), (late, large) = seen
    assert late <= early * 1.05 + 65_536
    assert large <= small + 24 * 2**20


def _resident() -> int:
    """Bytes of this process that lie in memory."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("only Linux tells how much memory a process takes now")
    line = next(n for n in status.read_text().splitlines() if n.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: r.__name__)
def test_the_same_seed_gives_the_same_files(recorder: Any, tmp_path: Path) -> None:
    """Ids of parameters, states of the optimizer, order and gzip included."""
    files = []
    for name in ("first", "second"):
        px.seed(11)
        training = Training(CPU)
        training.run(2)
        path = recorder().record(training.into_record(), tmp_path / name)
        files.append(path.read_bytes())
    assert files[0] == files[1]
