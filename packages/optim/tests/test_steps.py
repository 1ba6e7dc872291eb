"""What a step refuses, skips, keeps and prints."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_nn import Param
from phlox_tensor import ArgumentError, GradientError, Numpy, Tensor


class Leaves:
    """Stands in for what ``loss.backward()`` gives."""

    def __init__(self, found: dict[Any, Tensor]) -> None:
        self.found = found

    def get(self, leaf: Any, /) -> Tensor | None:
        return self.found.get(id(leaf))

    def __repr__(self) -> str:
        return f"Leaves(of {len(self.found)})"


def ones_of(module: nn.Module) -> dict[str, Tensor]:
    return {p.id: pt.ones(p.shape, device=p.device) for p in module.param_list() if p.trainable}


def leaves_of(module: nn.Module) -> Leaves:
    return Leaves({id(p.value): pt.ones(p.shape) for p in module.param_list()})


STEP = optim.SgdConfig(momentum=0.5)


def test_gradients_of_another_model_are_an_error() -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = STEP.init()
    with pytest.raises(GradientError, match=r"no gradient belongs.*Leaves\(of 2\).*weight, bias"):
        optimizer.step(0.1, model, leaves_of(other))
    with pytest.raises(GradientError, match=r"keys of gradients are no ids"):
        optimizer.step(0.1, model, ones_of(other))
    assert optimizer.step(0.1, model, leaves_of(other), strict=False) is model
    assert optimizer.step(0.1, model, ones_of(other), strict=False) is model


def test_gradients_of_the_model_before_the_step_are_an_error() -> None:
    model, optimizer = nn.Linear(2, 1), STEP.init()
    stale = leaves_of(model)
    model = optimizer.step(0.1, model, stale)
    with pytest.raises(GradientError, match="with the very model that step gets"):
        optimizer.step(0.1, model, stale)


def test_unknown_keys_are_named_and_paths_get_a_hint() -> None:
    model = nn.Linear(2, 1)
    grads = {**ones_of(model), "weight": pt.ones((2, 1))}
    with pytest.raises(GradientError, match=r"got weight(.|\n)*model.params\(\)\['weight'\].id"):
        STEP.init().step(0.1, model, grads)


@pytest.mark.parametrize("grads", [{}, Leaves({})], ids=["dict", "leaves"])
def test_a_step_without_effect_is_an_error(grads: Any) -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(GradientError, match="no gradient belongs to a trained parameter"):
        STEP.init().step(0.1, model, grads)
    assert STEP.init().step(0.1, model, grads, strict=False) is model


def test_gradients_of_frozen_parameters_alone_are_an_error() -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(GradientError, match="expected a module with such parameters"):
        STEP.init().step(0.1, model.no_grad(), ones_of(model))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_step_with_a_number_that_is_not_finite_is_skipped_and_counted(bad: float) -> None:
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    model = optimizer.step(0.1, model, ones_of(model), skip_nonfinite=True)
    before = optimizer.into_record()["states"]
    grads = ones_of(model)
    assert model.bias is not None
    grads[model.bias.id] = pt.asarray([bad])
    assert optimizer.step(0.1, model, grads, skip_nonfinite=True) is model
    assert (optimizer.steps, optimizer.skipped) == (1, 1)
    assert repr(optimizer.into_record()["states"]) == repr(before)
    resumed = optim.AdamConfig().init().load_record(optimizer.into_record())
    assert (resumed.steps, resumed.skipped) == (1, 1)
    assert repr(resumed).endswith("steps=1, skipped=1)")
    after = optimizer.step(0.1, model, grads)
    assert after.bias is not None
    assert not np.isfinite(after.bias.value.numpy()).all()


class Nested(optim.SimpleOptimizer):
    """A rule whose state is a tree: lists in tuples in dicts."""

    def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> Any:
        if state is None:
            state = {"past": (), "of": [0, "word", None]}
        past = (*state["past"][-2:], (grad * lr, [grad, {"deep": tensor}]))
        count, *rest = state["of"]
        new = {"past": past, "of": [count + 1, *rest], "scale": (0.5,)}
        return tensor - past[0][0], new


def history(optimizer: optim.OptimizerAdaptor) -> bytes:
    """All that an optimizer knows, wherever it lies."""
    return record.JsonRecorder(record.DoublePrecision).to_bytes(optimizer.into_record())


@pytest.mark.parametrize(
    "recorder",
    [record.CompactMsgpackGzRecorder, record.JsonRecorder, record.NamedMsgpackRecorder],
    ids=lambda r: r.__name__,
)
def test_a_state_is_a_tree_that_is_saved_and_moved(recorder: Any, tmp_path: Path) -> None:
    here, there = Numpy(float="float64"), Numpy(float="float64", int="int32")
    optimizer = optim.OptimizerAdaptor(Nested())
    model = nn.Linear(2, 1, device=here)
    for _ in range(3):
        model = optimizer.step(0.1, model, ones_of(model))
    writer = recorder(record.DoublePrecision)
    path = writer.record(optimizer.into_record(), tmp_path / "state")
    like = optim.OptimizerAdaptor(Nested()).into_record() if recorder.needs_like else None
    resumed = optim.OptimizerAdaptor(Nested())
    resumed.load_record(writer.load(path, like=like, device=there))
    assert history(resumed) == history(optimizer)
    for _ in range(2):  # the states come from another device, then lie where they belong
        again = resumed.step(0.1, model, ones_of(model))
        model = optimizer.step(0.1, model, ones_of(model))
        assert np.array_equal(again.weight.value.numpy(), model.weight.value.numpy())
        state = next(iter(resumed._state.get().kept.values()))
        assert state["past"][0][1][1]["deep"].device is here
        assert history(resumed) == history(optimizer)


@pytest.mark.parametrize(
    "odd",
    [{1: 2}, {"()": [1]}, [{1, 2}], ({"a": np.ones(1)},)],
    ids=["key", "()", "set", "array"],
)
def test_a_state_that_could_not_be_saved_is_refused_at_once(odd: Any) -> None:
    class Odd(optim.SimpleOptimizer):
        def step(self, lr: float, tensor: Tensor, grad: Tensor, state: Any) -> Any:
            return tensor, odd

    model = nn.Linear(2, 1)
    with pytest.raises(ArgumentError, match=r"cannot be kept in a state"):
        optim.OptimizerAdaptor(Odd()).step(0.1, model, ones_of(model))


@pytest.mark.parametrize("config", [optim.AdamConfig(), optim.SgdConfig()], ids=["adam", "sgd"])
def test_nothing_of_models_and_gradients_is_kept(config: Any) -> None:
    optimizer = config.init()
    model = nn.Linear(7, 5, bias=False)
    after = optimizer.step(0.1, model, ones_of(model))
    key = model.weight.id
    del model, after
    gc.collect()
    params = [o for o in gc.get_objects() if type(o) is Param]
    found = [p for p in params if p.id == key and p.shape == (7, 5)]  # others may share seeds
    assert found == []
    tensors = [o for o in gc.get_objects() if type(o) is Tensor and o.shape == (7, 5)]
    assert len(tensors) == (2 if isinstance(config, optim.AdamConfig) else 0)  # the two means


def test_weights_put_in_by_hand_do_not_lose_their_state_in_silence() -> None:
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    model = optimizer.step(0.1, model, ones_of(model))
    swapped = model.replace(weight=Param(model.weight.value))
    with pytest.raises(GradientError, match=r"new parameters weight and 1 states of others"):
        optimizer.step(0.1, swapped, ones_of(swapped))
    kept = model.replace(weight=model.weight.with_value(pt.zeros((2, 1))))
    _ = optimizer.step(0.1, kept, ones_of(kept))
    optimizer.step(0.1, swapped, ones_of(swapped), strict=False)
    states: Any = optimizer.into_record()["states"]
    assert states[swapped.weight.id]["time"] == 1
    assert states[kept.weight.id]["time"] == 2


def test_parameters_that_join_later_start_afresh() -> None:
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    model = optimizer.step(0.1, model, {model.weight.id: pt.ones((2, 1))})
    model = optimizer.step(0.1, model, ones_of(model))
    states: Any = optimizer.into_record()["states"]
    assert [states[p.id]["time"] for p in model.param_list()] == [2, 1]


def test_loading_changes_the_optimizer_itself() -> None:
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    model = optimizer.step(0.1, model, ones_of(model))
    tree = optimizer.into_record()
    model = optimizer.step(0.1, model, ones_of(model))
    assert optimizer.load_record(tree) is optimizer
    assert optimizer.steps == 1
    states: Any = optimizer.into_record()["states"]
    assert states[model.weight.id]["time"] == 1


def test_optimizers_and_configs_print_their_settings() -> None:
    config = optim.SgdConfig(momentum=0.9, grad_clipping=optim.ClipByNorm(1.0))
    assert repr(config) == (
        "SgdConfig(grad_clipping=ClipByNorm(threshold=1.0), groups={}, decayed='all', "
        "weight_decay=0.0, momentum=0.9, dampening=0.0, nesterov=False)"
    )
    optimizer = config.init()
    model = nn.Linear(2, 1)
    _ = optimizer.step(0.1, model, ones_of(model))
    assert (
        repr(optimizer) == f"OptimizerAdaptor(Sgd({config!r}), ClipByNorm(threshold=1.0), steps=1)"
    )
    assert repr(optim.OptimizerAdaptor(Nested())) == "OptimizerAdaptor(Nested(), steps=0)"


def test_dampening_needs_momentum_and_no_look_ahead() -> None:
    with pytest.raises(nn.ConfigError, match="dampening"):
        optim.SgdConfig(dampening=0.5)
    with pytest.raises(nn.ConfigError, match="nesterov"):
        optim.SgdConfig(momentum=0.9, dampening=0.1, nesterov=True)


def test_a_closure_without_a_module_is_refused() -> None:
    closure: Any = lambda: pt.ones(())  # noqa: E731 - of a type that mypy does not check
    with pytest.raises(pt.WrongTypeError, match="takes no module"):
        optim.LbfgsConfig().init().step(1.0, nn.Linear(2, 1), closure)
