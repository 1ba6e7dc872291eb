"""Models of a replay make the tensors of their parameters when somebody asks for them."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np

import phlox as px
from phlox import nn, optim, record

DEVICE = px.Autodiff(px.Cpu())


def _loss(model: Any, x: Any) -> Any:
    return model(x).square().mean()


def _steps(count: int, frozen: bool = False) -> tuple[Any, Any]:
    """A model after some steps, the last of which are replayed, and its input."""
    px.seed(3)
    model: Any = nn.Linear(4, 3, device=DEVICE)
    model = model.freeze("bias") if frozen else model
    rule = optim.AdamConfig().init()
    x = px.random.normal((5, 4), device=DEVICE)
    step = px.compile(lambda model, x: rule.step(0.1, model, _loss(model, x).backward()))
    for _ in range(count):
        model = step(model, x)
    return model, x


def _eager(count: int) -> Any:
    px.seed(3)
    model: Any = nn.Linear(4, 3, device=DEVICE)
    rule = optim.AdamConfig().init()
    x = px.random.normal((5, 4), device=DEVICE)
    for _ in range(count):
        model = rule.step(0.1, model, _loss(model, x).backward())
    return model


def test_a_tensor_that_nobody_asks_for_is_not_made() -> None:
    model, _ = _steps(6)
    assert model.weight._value is None
    assert model.weight.is_initialized
    assert (model.weight.shape, model.weight.dtype) == ((4, 3), px.float32)
    assert model.weight.device is DEVICE
    assert model.weight._value is None
    assert model.weight.value.requires_grad
    assert model.weight.value is model.weight.value
    assert np.array_equal(
        model.weight.value.detach().numpy(), _eager(6).weight.value.detach().numpy()
    )


def test_threads_get_one_tensor() -> None:
    model, _ = _steps(6)
    ready = Barrier(4)

    def ask(_: int) -> Any:
        ready.wait()
        return model.weight.value

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert all(each is found[0] for each in found)


def test_gradients_find_the_leaf_of_the_parameter() -> None:
    model, x = _steps(6)
    grads = _loss(model, x).backward().of(model)
    assert grads.weight.value.shape == (4, 3)
    after = optim.SgdConfig().init().step(0.1, model, _loss(model, x).backward())
    moved = model.weight.value.detach().numpy() - after.weight.value.detach().numpy()
    assert np.allclose(moved, 0.1 * grads.weight.value.numpy(), rtol=1e-3, atol=1e-6)


def test_what_is_frozen_stays_so() -> None:
    model, _ = _steps(6, frozen=True)
    assert model.bias.frozen
    assert not model.bias.value.requires_grad
    assert model.weight.value.requires_grad


def test_gradients_of_a_replay_have_values() -> None:
    model, x = _steps(2)
    fast = px.compile(px.grad(_loss))
    grads = fast(model, x)
    for _ in range(3):
        grads = fast(model, x)
    wanted = px.grad(_loss)(model, x)
    assert not grads.weight.holds_value
    assert np.array_equal(grads.weight.value.numpy(), wanted.weight.value.numpy())
    rule = optim.SgdConfig().init()
    stepped, plain = rule.step(0.1, model, grads), rule.step(0.1, model, wanted)
    assert np.array_equal(
        stepped.weight.value.detach().numpy(), plain.weight.value.detach().numpy()
    )


def test_it_is_copied_pickled_recorded_and_moved_as_any_model(tmp_path: Path) -> None:
    wanted = _eager(6).weight.value.detach().numpy()
    made = [_steps(6)[0] for _ in range(4)]
    recorder = record.NamedMsgpackRecorder()
    recorder.record(made[3].into_record(), tmp_path / "model.mpk")
    found = [
        copy.deepcopy(made[0]),
        pickle.loads(pickle.dumps(made[1])),
        made[2].valid(),
        nn.Linear(4, 3, device=DEVICE).load_record(recorder.load(tmp_path / "model.mpk")),
    ]
    for model in found:
        assert np.array_equal(model.weight.value.detach().numpy(), wanted)
