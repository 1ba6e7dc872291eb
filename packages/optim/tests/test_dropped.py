"""A step whose result nobody kept: the next one of the very same model is an error."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import phlox_nn as nn
import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_tensor import GradientError, Tensor

LOST = r"thrown away(.|\n)*hint: model = optimizer.step"


def ones_of(module: nn.Module) -> dict[str, Tensor]:
    return {p.id: pt.ones(p.shape, device=p.device) for p in module.param_list()}


def thrown_away(optimizer: optim.Optimizer, model: nn.Module) -> None:
    said = r"the new module is thrown away.*\nhint: model = optimizer.step\(0.1, model, grads\)"
    with pytest.warns(UserWarning, match=said) as caught:
        optimizer.step(0.1, model, ones_of(model))
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("config", [optim.AdamConfig(), optim.SgdConfig()], ids=["adam", "sgd"])
def test_a_step_whose_result_was_thrown_away_is_an_error_at_the_next(
    config: optim.OptimizerConfig,
) -> None:
    model, optimizer = nn.Linear(2, 1), config.init()
    thrown_away(optimizer, model)
    with pytest.raises(GradientError, match=LOST):
        optimizer.step(0.1, model, ones_of(model))
    assert optimizer.steps == 1
    optimizer.step(0.1, model, ones_of(model), strict=False)
    assert optimizer.steps == 2


def test_it_is_one_through_a_view_of_the_model_and_through_a_scaling() -> None:
    model, optimizer, scaling = nn.Linear(2, 1), optim.SgdConfig().init(), optim.LossScaling()
    scaling.scaled(pt.ones(()))
    scaling.step(optimizer, 0.1, nn.Sequential(model), ones_of(model))
    with pytest.raises(GradientError, match=LOST):
        scaling.step(optimizer, 0.1, nn.Sequential(model), ones_of(model))


def test_a_model_is_stepped_on_trial() -> None:
    model, optimizer = nn.Linear(2, 1), optim.SgdConfig().init()
    for rate in (1.0, 0.1, 0.01):
        trial = optimizer.step(rate, model, ones_of(model))
    assert trial.weight.value.tolist() != model.weight.value.tolist()


def test_a_model_goes_back_to_an_earlier_one() -> None:
    model, optimizer = nn.Linear(2, 1), optim.SgdConfig().init()
    best = model
    for _ in range(3):
        model = optimizer.step(0.1, model, ones_of(model))
    model = optimizer.step(0.1, best, ones_of(best))
    tree = optimizer.into_record()
    thrown_away(optimizer, model)
    model = optimizer.load_record(tree).step(0.1, model, ones_of(model))
    assert optimizer.steps == 5


def test_a_skipped_step_gives_the_model_again() -> None:
    model, optimizer = nn.Linear(2, 1, bias=False), optim.SgdConfig().init()
    bad = {model.weight.id: pt.full((2, 1), float("nan"))}
    for grads in (bad, bad, ones_of(model), bad, bad):
        model = optimizer.step(0.1, model, grads, skip_nonfinite=True)
    assert (optimizer.steps, optimizer.skipped) == (1, 4)


def test_parts_of_a_model_take_turns() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    model, optimizer = nn.Sequential(first, second), optim.AdamConfig().init()
    for part in (first, second, first, second):
        grads = {p.id: pt.ones(p.shape) for p in part.param_list()}
        model = optimizer.step(0.1, model, grads)
    one, other = optim.AdamConfig().init(), optim.AdamConfig().init()
    for _ in range(3):  # two optimizers, as of a generator and of what judges it
        first = one.step(0.1, first, ones_of(first))
        second = other.step(0.1, second, ones_of(second))
    tied = nn.Sequential(first, first)
    for _ in range(2):
        tied = one.step(0.1, tied, ones_of(tied), strict=False)
    assert (optimizer.steps, one.steps, other.steps) == (4, 5, 3)


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))]
)
def test_a_copy_of_the_optimizer_starts_at_any_model(again: object) -> None:
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    thrown_away(optimizer, model)
    assert callable(again)
    copied: Any = again(optimizer)
    thrown_away(copied, model)
    with pytest.raises(GradientError, match=LOST):
        copied.step(0.1, model, ones_of(model))


def test_an_optimizer_that_was_loaded_refuses_a_model_that_was_not(tmp_path: Path) -> None:
    checkpoints = record.Checkpointer(tmp_path)
    pt.seed(1)
    model, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    model = optimizer.step(0.1, model, ones_of(model))
    checkpoints.save(1, model=model, optimizer=optimizer)
    for seed in (1, 2):  # the same ids, and others
        pt.seed(seed)
        fresh, resumed = nn.Linear(2, 1), optim.AdamConfig().init()
        found = checkpoints.restore(model=fresh, optimizer=resumed)
        with pytest.raises(GradientError, match="the model was not") as caught:
            resumed.step(0.1, fresh, ones_of(fresh))
        assert "strict=False" not in str(caught.value)
        assert found is not None
        loaded = found["model"]
        after = resumed.step(0.1, loaded, ones_of(loaded))
        assert after.weight.value.tolist() == second_step(model).weight.value.tolist()


def second_step(model: nn.Linear) -> nn.Linear:
    """The model after a second step of Adam, by gradients of ones as the first."""
    pt.seed(1)
    first, optimizer = nn.Linear(2, 1), optim.AdamConfig().init()
    thrown_away(optimizer, first)
    return optimizer.step(0.1, model, ones_of(model))
