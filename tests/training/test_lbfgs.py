"""L-BFGS beside PyTorch's, on losses without noise."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox as px
from phlox import Autodiff, Cpu, Numpy, nn, optim
from phlox.record import DoublePrecision, NamedMsgpackRecorder
from phlox_tensor import ArgumentError, RecordError

FOUND = json.loads(
    (Path(__file__).parents[2] / "packages/optim/tests/trajectories.json").read_text()
)
BOWLS, KNOWN = FOUND["bowls"], FOUND["searches"]
DEVICE = Autodiff(Numpy(float="float64"))


class Valley(nn.Module):
    """Rosenbrock's, whose parameters are in two pieces."""

    a: nn.Param
    b: nn.Param
    weight: float

    def loss(self) -> px.Tensor:
        x = px.concat([self.a.value.reshape(-1), self.b.value], axis=0)
        return (self.weight * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def valley(weight: float, device: Any = DEVICE) -> Valley:
    x = np.random.default_rng(0).normal(size=(3, 2)).reshape(-1)
    a, b = (px.asarray(part, device=device) for part in (x[:4].reshape(2, 2), x[4:]))
    return Valley(nn.Param(a), nn.Param(b), weight)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_steps_are_those_of_pytorch(name: str) -> None:
    wolfe = name == "lbfgs-wolfe"
    config = optim.LbfgsConfig(
        max_iterations=5, history=4, line_search="strong_wolfe" if wolfe else None
    )
    assert optim.LbfgsConfig.from_dict(config.to_dict()) == config
    optimizer, model = config.init(), valley(100.0 if wolfe else 1.0)
    recorder = NamedMsgpackRecorder(DoublePrecision)
    for i, (loss, *x) in enumerate(KNOWN[name]):
        model, before = optimizer.step(1.0 if wolfe else 0.2, model, Valley.loss)
        got = np.concatenate([p.value.numpy().reshape(-1) for p in model.param_list()])
        assert before == pytest.approx(loss, rel=1e-6, abs=1e-12), i
        assert np.allclose(got, x, rtol=1e-6, atol=1e-9), i
        if i == 4:  # resumed from bytes
            data = recorder.to_bytes(optimizer.into_record())
            optimizer = config.init().load_record(recorder.from_bytes(data, device=DEVICE.inner))


class Bowl(nn.Module):
    """One that wanders off, so that there is always a way to go."""

    x: nn.Param

    def loss(self, step: int) -> px.Tensor:
        places = px.arange(6, dtype="float64", device=DEVICE)
        far = self.x.value - (0.1 * step + places).cos()
        return ((1 + places) * far**2 / 2 + far**4 / 10).sum()


@pytest.mark.parametrize("name", sorted(BOWLS))
def test_200_steps_are_those_of_pytorch(name: str) -> None:
    wolfe = "strong_wolfe" if name == "lbfgs-wolfe" else None
    config = optim.LbfgsConfig.from_dict({"max_iterations": 3, "history": 5, "line_search": wolfe})
    optimizer = config.init()
    x = np.random.default_rng(0).normal(size=(3, 2)).reshape(-1)
    model = Bowl(nn.Param(px.asarray(x, device=DEVICE)))
    for step in range(1, 201):
        model, _ = optimizer.step(0.8, model, partial(Bowl.loss, step=step))
        if str(step) in BOWLS[name]:
            got = model.x.value.numpy()
            assert np.allclose(got, BOWLS[name][str(step)], rtol=1e-6, atol=1e-8), step


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_parameters_are_stepped_in_full_precision(dtype: Any) -> None:
    a, b = (p.value.detach() for p in valley(1.0).param_list())
    narrow, wide = (
        Valley(nn.Param(a.astype(dtype).astype(to)), nn.Param(b.astype(dtype).astype(to)), 1.0)
        for to in (dtype, "float32")
    )
    optimizer = optim.LbfgsConfig(max_iterations=2).init()
    got, _ = optimizer.step(0.5, narrow, lambda m: Valley.loss(m).astype("float32"))
    record: Any = optimizer.into_record()
    assert record["direction"].dtype is px.float32
    assert all(p.dtype.name == dtype for p in got.param_list())
    want, _ = optim.LbfgsConfig(max_iterations=2).init().step(0.5, wide, Valley.loss)
    for one, other in zip(got.param_list(), want.param_list(), strict=True):
        near = np.allclose(one.value.astype("float32").numpy(), other.value.numpy(), atol=0.05)
        assert near


@pytest.mark.parametrize("far", [1, 2])
def test_a_loss_that_is_no_number_stops_a_step_and_changes_nothing(far: int) -> None:
    model, calls = valley(1.0), []

    def loss(m: Valley) -> px.Tensor:
        calls.append(1)
        return m.loss() * (px.nan if len(calls) >= far else 1.0)

    optimizer = optim.LbfgsConfig().init()
    before = optimizer.into_record()
    with pytest.raises(px.GradientError, match=r"not finite: got a loss of nan"):
        optimizer.step(0.1, model, loss)
    assert optimizer.into_record() == before
    assert len(calls) == far


def test_the_valley_is_crossed() -> None:
    model, optimizer = (
        valley(100.0, Autodiff(Cpu(float="float64"))),
        optim.Lbfgs(optim.LbfgsConfig(line_search="strong_wolfe")),
    )
    model = model.map(lambda _, p: p.with_value(px.zeros_like(p.value.detach())))
    for _ in range(12):
        model, _ = optimizer.step(1.0, model, Valley.loss)
    assert float(model.loss()) < 1e-10
    again, loss = optimizer.step(1.0, model, Valley.loss)
    assert loss < 1e-10
    assert "iterations=" in repr(optimizer)
    assert np.allclose(again.b.value.numpy(), 1.0)


def test_what_has_no_gradient_or_no_record_is_refused() -> None:
    optimizer = optim.Lbfgs()
    other = valley(1.0)
    with pytest.raises(px.PhloxError, match="no gradient belongs"):
        optimizer.step(1.0, valley(1.0), lambda _: other.loss())
    with pytest.raises(ValueError, match="not a record of L-BFGS"):
        optimizer.load_record({"rule": "Adam"})
    mixed = valley(1.0).replace(b=nn.Param(px.ones(2, dtype="float32", device=DEVICE)))
    with pytest.raises(ValueError, match="do not make one vector: got float32"):
        optimizer.step(1.0, mixed, Valley.loss)


@pytest.mark.parametrize("wrong", [None, 3.0, lambda model: 3, lambda model: None])
def test_what_is_no_loss_of_a_module_is_refused(wrong: Any) -> None:
    with pytest.raises(px.WrongTypeError, match="a function from a module to its loss"):
        optim.Lbfgs().step(1.0, valley(1.0), wrong)
    grads = valley(1.0).loss().backward()
    with pytest.raises(px.WrongTypeError, match="got Gradients"):
        optim.Lbfgs().step(1.0, valley(1.0), grads)  # type: ignore[arg-type]


def test_a_model_on_two_recording_devices_is_that_on_one() -> None:
    here = Numpy(float="float64")
    x, y = (np.random.default_rng(i).normal(size=(5, 2)) for i in range(2))
    found = []
    for device in (Autodiff(here), Autodiff(Autodiff(here))):
        px.seed(0)
        model: Any = nn.Linear(2, 2, device=device)
        inputs, targets = px.asarray(x, device=device), px.asarray(y, device=device)
        optimizer = optim.LbfgsConfig(line_search="strong_wolfe").init()

        def loss(m: Any, x: px.Tensor = inputs, y: px.Tensor = targets) -> px.Tensor:
            return (m(x) - y).square().mean()

        for _ in range(2):
            model, _ = optimizer.step(1.0, model, loss)
        found.append([p.value.detach().numpy() for p in model.param_list()])
        assert all(p.value.requires_grad for p in model.param_list())
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "change", [{"changes": 3}, {"direction": 3}, {"iterations": 0.5}, {"steps": [3]}]
)
def test_a_record_of_other_values_is_refused(change: dict[str, Any]) -> None:
    model, optimizer = valley(1.0), optim.Lbfgs()
    for _ in range(2):
        model, _ = optimizer.step(1.0, model, Valley.loss)
    kept: Any = optimizer.into_record()
    optim.Lbfgs().load_record(kept)
    with pytest.raises(RecordError, match=r"not a record of L-BFGS"):
        optim.Lbfgs().load_record({**kept, **change})


def test_curvature_is_that_of_the_parameters_it_was_seen_on() -> None:
    model, optimizer = valley(1.0), optim.Lbfgs()
    model, _ = optimizer.step(1.0, model, Valley.loss)
    kept = optimizer.into_record()
    with pytest.raises(ArgumentError, match="the curvature in the state is of other parameters"):
        optim.Lbfgs().load_record(kept).step(1.0, valley(1.0), Valley.loss)
    _ = optim.Lbfgs().load_record(kept).step(1.0, model, Valley.loss)


def test_the_memory_follows_the_model_to_another_device() -> None:
    optimizer, model = optim.LbfgsConfig(max_iterations=3).init(), valley(1.0)
    model, first = optimizer.step(1.0, model, Valley.loss)
    model = model.train(Autodiff(Cpu(float="float64")))
    model, second = optimizer.step(1.0, model, Valley.loss)
    assert second < first
    optimizer = optim.LbfgsConfig(max_iterations=3).init().load_record(optimizer.into_record())
    model = model.train(DEVICE)
    _, third = optimizer.step(1.0, model, Valley.loss)
    assert third < second
