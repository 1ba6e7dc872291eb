"""Checkpoints: the last few, the best, and what a crash leaves."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phlox_record as pr
import phlox_tensor as pt
from phlox_tensor import ArgumentError


class Counter:
    """What a scheduler looks like: it changes itself."""

    def __init__(self, at: int = 0) -> None:
        self.at = at

    def into_record(self) -> pr.Record:
        return {"at": self.at}

    def load_record(self, record: Any) -> Counter:
        self.at = record["at"]
        return self


def test_everything_comes_back_bit_for_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tensors: Any = {
        name: pt.asarray(rng.standard_normal(5).astype(name)) for name in ("f2", "f4", "f8")
    }
    checkpoints = pr.Checkpointer(tmp_path / "run" / "a")
    pt.random.seed(3)
    pt.random.uniform(10)
    state = pt.random.generator().state()
    checkpoints.save(7, tensors=tensors, counter=Counter(5), position=[2, 40])
    pt.random.seed(9)
    counter = Counter()
    found = pr.Checkpointer(tmp_path / "run" / "a").restore(
        tensors=None, counter=counter, position=None
    )
    assert found is not None
    assert (found["step"], found["position"], counter.at) == (7, [2, 40], 5)
    assert pt.random.generator().state() == state
    for name, tensor in tensors.items():
        assert found["tensors"][name].dtype is tensor.dtype
        assert found["tensors"][name].numpy().tobytes() == tensor.numpy().tobytes()


def test_the_last_and_the_best_are_kept(tmp_path: Path) -> None:
    checkpoints = pr.Checkpointer(tmp_path, keep_last=2, best="loss")
    losses = [5.0, 1.0, math.nan, 3.0, 2.0, 1.0]
    for step, loss in enumerate(losses):
        checkpoints.save(step, metrics={"loss": loss})
    assert checkpoints.steps == [1, 4, 5]
    assert checkpoints.best_step == 1
    assert pr.Checkpointer(tmp_path, best="loss").best_step == 1  # read from the files
    assert pr.Checkpointer(tmp_path, best="loss", largest=True).best_step == 4
    assert checkpoints.open(1)["metrics"] == {"loss": 1.0}
    best = checkpoints.restore(1)
    assert best == {"step": 1}


def test_without_a_checkpoint_there_is_nothing_to_restore(tmp_path: Path) -> None:
    checkpoints = pr.Checkpointer(tmp_path)
    assert checkpoints.restore(model=None) is None
    with pytest.raises(pr.RecordError, match="no such checkpoint"):
        checkpoints.open()
    with pytest.raises(pr.RecordError, match="no such checkpoint"):
        checkpoints.restore(3)


def test_forgotten_parts_are_an_error(tmp_path: Path) -> None:
    checkpoints = pr.Checkpointer(tmp_path)
    checkpoints.save(1, model={"w": 1}, optimizer={"m": 2})
    with pytest.raises(pr.RecordError, match="got model, expected model, optimizer"):
        checkpoints.restore(model=None)
    with pytest.raises(pr.RecordError, match="other parts were saved"):
        checkpoints.restore(model=None, optimizer=None, schedule=None)


def test_a_class_in_place_of_its_object_is_refused(tmp_path: Path) -> None:
    class Model:
        def into_record(self) -> Any:
            return {}

    saved = pr.Checkpointer(tmp_path)
    for call in (lambda: saved.save(1, model=Model), lambda: saved.restore(model=Model)):
        with pytest.raises(ArgumentError, match=r"a part is a class(.|\n)*model=Model\(\.\.\.\)"):
            call()


def test_wrong_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="keep"):
        pr.Checkpointer(tmp_path, keep_last=0)
    with pytest.raises(ArgumentError, match="with names"):
        pr.Checkpointer(tmp_path, recorder=pr.CompactMsgpackRecorder())
    checkpoints = pr.Checkpointer(tmp_path, best="loss")
    with pytest.raises(ArgumentError, match="metric"):
        checkpoints.save(0, metrics={"accuracy": 1.0})
    with pytest.raises(ArgumentError, match="random"):
        checkpoints.save(0, metrics={"loss": 1.0}, random=[1, 2])
    assert checkpoints.steps == []


def test_what_a_killed_save_left_is_removed(tmp_path: Path) -> None:
    checkpoints = pr.Checkpointer(tmp_path)
    checkpoints.save(1, a=1)
    (tmp_path / ".phlox-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / "notes.txt").write_text("mine")
    pr.Checkpointer(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["notes.txt", "step-000000001.mpk"]


def test_a_step_before_the_newest_is_refused_instead_of_removed_at_once(tmp_path: Path) -> None:
    checkpoints = pr.Checkpointer(tmp_path, keep_last=2)
    checkpoints.save(900, x=1)
    checkpoints.save(1000, x=1)
    with pytest.raises(ArgumentError, match=r"remove_after\(1\)"):
        checkpoints.save(1, x=2)
    assert checkpoints.steps == [900, 1000]
    checkpoints.remove_after(900)
    assert checkpoints.save(950, x=3).exists()
    assert checkpoints.restore(x=0) == {"x": 3, "step": 950}


def test_another_checkpointer_leaves_alone_what_is_being_written(tmp_path: Path) -> None:
    def read() -> np.ndarray[Any, Any]:
        pr.Checkpointer(tmp_path)
        return np.ones(2, np.float32)

    checkpoints = pr.Checkpointer(tmp_path)
    checkpoints.save(1, x=pr.TensorEntry((2,), pt.float32, read))
    assert checkpoints.steps == [1]
    left = tmp_path / ".phlox-0.tmp"
    left.write_bytes(b"of a killed process")
    pr.Checkpointer(tmp_path)
    assert not left.exists()


def test_checkpoints_of_another_recorder_are_not_overlooked(tmp_path: Path) -> None:
    pr.Checkpointer(tmp_path, recorder=pr.JsonRecorder(pr.KeepPrecision)).save(3, x=1)
    with pytest.raises(pt.RecordError, match=r"hint: Checkpointer\(.*JsonRecorder"):
        pr.Checkpointer(tmp_path).restore(x=0)


def test_wrong_settings_of_a_checkpointer_are_refused(tmp_path: Path) -> None:
    wrong: Any
    for wrong in (1.5, "2", None, True):
        with pytest.raises(ArgumentError, match="keep_last"):
            pr.Checkpointer(tmp_path, keep_last=wrong)
    for wrong in (3, pr.JsonRecorder, pr.HalfPrecision):
        with pytest.raises(ArgumentError, match="not a recorder"):
            pr.Checkpointer(tmp_path, recorder=wrong)
    checkpoints = pr.Checkpointer(tmp_path)
    checkpoints.save(1, x=1)
    wrong = 1.0
    with pytest.raises(pt.RecordError, match="no such checkpoint"):
        checkpoints.restore(wrong, x=0)
