"""``@px.compile`` above a method of a class that holds a model."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest

import phlox as px
from phlox import Autodiff, Cpu, Tensor, nn, optim

TRAIN = Autodiff(Cpu())


class Trainer:
    """A class as people write it."""

    def __init__(self) -> None:
        self.model = nn.Linear(3, 2, device=TRAIN)
        self.optimizer = optim.AdamConfig().init()
        self.rate = 0.01

    @px.compile
    def predict(self, x: Tensor) -> Tensor:
        """Read the model from the object."""
        return self.model(x).detach()

    @px.compile
    def step(self, model: nn.Linear, x: Tensor) -> tuple[nn.Linear, Tensor]:
        """Train with the optimizer and the rate of the object."""
        loss = model(x).square().mean()
        return self.optimizer.step(self.rate, model, loss.backward()), loss

    @px.compile
    def assigns(self, x: Tensor) -> Tensor:
        """Change the object, which a replay would not."""
        self.model = nn.Linear(3, 2, device=TRAIN)
        return self.model(x)


def test_a_method_reads_the_model_and_settings_of_its_object() -> None:
    x = px.ones((4, 3), device=TRAIN)
    for _ in range(2):
        trainer = Trainer()
        losses = []
        for _ in range(5):
            trainer.model, loss = trainer.step(trainer.model, x)
            losses.append(loss.item())
        assert losses == sorted(losses, reverse=True)
        assert trainer.optimizer.steps == 5
        assert trainer.step is trainer.step


def test_a_model_that_is_replaced_is_another_one() -> None:
    trainer, x = Trainer(), px.ones((4, 3), device=TRAIN)
    for _ in range(3):
        for _ in range(3):
            out = trainer.predict(x.detach())
            assert out.tolist() == trainer.model(x).tolist()
        trainer.model = nn.Linear(3, 2, device=TRAIN)


def test_objects_have_their_own_and_end() -> None:
    x = px.ones((4, 3), device=TRAIN)
    first, second = Trainer(), Trainer()
    assert first.predict(x).tolist() == first.model(x).tolist()
    assert second.predict(x).tolist() == second.model(x).tolist()
    assert copy.copy(second).predict(x).tolist() == second.model(x).tolist()
    assert pickle.loads(pickle.dumps(first)).predict(x).tolist() == first.model(x).tolist()
    seen = weakref.ref(first)
    del first
    gc.collect()
    assert seen() is None


def test_a_method_that_changes_its_object_is_refused() -> None:
    with pytest.raises(px.CompileError, match="self"):
        Trainer().assigns(px.ones((4, 3), device=TRAIN))
