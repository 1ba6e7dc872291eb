"""Schedules: first and last values, the curve between, and resuming."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import cos, pi
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import phlox_optim as optim
import phlox_record as record
import phlox_tensor as pt
from phlox_nn import ConfigError
from phlox_tensor import ArgumentError, RecordError, UnknownNameError

CONFIGS: dict[str, Any] = {
    "constant": optim.ConstantSchedulerConfig(0.3),
    "cosine": optim.CosineSchedulerConfig(1.0, steps=10, min_lr=0.1),
    "linear": optim.LinearSchedulerConfig(1.0, 0.2, steps=4),
    "step": optim.StepSchedulerConfig(1.0, step_size=3, gamma=0.5),
}
RECORDERS = [
    record.CompactMsgpackGzRecorder,
    record.CompactMsgpackRecorder,
    record.JsonGzRecorder,
    record.JsonRecorder,
    record.NamedMsgpackGzRecorder,
    record.NamedMsgpackRecorder,
]


def rates(config: Any, count: int) -> list[float]:
    schedule = config.init()
    return [schedule.step() for _ in range(count)]


def test_the_curves() -> None:
    assert rates(CONFIGS["constant"], 3) == [0.3] * 3
    assert rates(CONFIGS["linear"], 7) == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2])
    assert rates(CONFIGS["step"], 8) == pytest.approx([1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25])
    want = [0.1 + 0.9 * (1 + cos(pi * min(i / 10, 1))) / 2 for i in range(13)]
    assert rates(CONFIGS["cosine"], 13) == pytest.approx(want)
    assert rates(CONFIGS["cosine"], 13)[10:] == [0.1] * 3
    assert rates(CONFIGS["cosine"], 1) == [1.0]


@given(st.floats(1e-6, 1), st.floats(0, 1), st.integers(1, 50), st.integers(0, 80))
def test_curves_stay_between_their_ends(high: float, share: float, steps: int, at: int) -> None:
    low = high * share
    for config in (
        optim.CosineSchedulerConfig(high, steps, low),
        optim.LinearSchedulerConfig(high, low, steps),
    ):
        values = [config.rate(i) for i in range(at + 2)]
        assert values[0] == pytest.approx(high)
        assert all(a >= b - 1e-12 for a, b in pairwise(values))
        assert min(values) >= low - 1e-12 * high
        assert config.rate(steps) == pytest.approx(low, abs=1e-12 * high)


def test_the_rate_can_be_read_without_a_step() -> None:
    schedule = CONFIGS["linear"].init()
    assert schedule.rate == schedule.rate == 1.0
    assert schedule.step() == 1.0
    assert schedule.rate == pytest.approx(0.8)


@pytest.mark.parametrize("name", sorted(CONFIGS))
@pytest.mark.parametrize("recorder", RECORDERS, ids=lambda r: r.__name__)
def test_resuming_continues(recorder: Any, name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    schedule = config.init()
    for _ in range(2):
        schedule.step()
    writer = recorder()
    writer.record(schedule.into_record(), tmp_path / "schedule")
    like = config.init().into_record() if recorder.needs_like else None
    loaded = config.init().load_record(writer.load(tmp_path / "schedule", like=like))
    assert [loaded.step() for _ in range(6)] == [schedule.step() for _ in range(6)]
    assert type(config).from_dict(config.to_dict()) == config


@pytest.mark.parametrize("tree", [None, {}, {"position": "a"}, {"position": -1}, 3])
def test_a_record_of_something_else_is_refused(tree: Any) -> None:
    with pytest.raises(RecordError, match="not a record of a schedule"):
        CONFIGS["cosine"].init().load_record(tree)


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (optim.CosineSchedulerConfig, (1.0, 0)),
        (optim.CosineSchedulerConfig, (1.0, 5, 2.0)),
        (optim.CosineSchedulerConfig, (1.0, 5, -1.0)),
        (optim.LinearSchedulerConfig, (1.0, 0.0, 0)),
        (optim.StepSchedulerConfig, (1.0, 0)),
    ],
)
def test_settings_that_make_no_sense(config: Any, settings: Any) -> None:
    with pytest.raises(ConfigError, match="makes no sense"):
        config(*settings)


def test_the_base_says_what_is_missing() -> None:
    with pytest.raises(TypeError, match=r"abstract.*rate"):
        optim.SchedulerConfig()  # type: ignore[abstract]


def test_schedules_show_settings_and_step() -> None:
    schedule = CONFIGS["linear"].init()
    schedule.step()
    assert repr(schedule) == (
        "Scheduler(LinearSchedulerConfig(initial_lr=1.0, final_lr=0.2, steps=4), position=1)"
    )


def test_loading_changes_the_schedule_itself() -> None:
    schedule = CONFIGS["linear"].init()
    assert schedule.load_record({"position": 3}) is schedule
    assert schedule.rate == pytest.approx(0.4)
    with pytest.raises(RecordError):
        schedule.load_record({"position": True})
    assert schedule.rate == pytest.approx(0.4)


def test_a_schedule_refuses_the_place_of_another() -> None:
    noam = optim.NoamSchedulerConfig().init()
    noam.step()
    cosine = optim.CosineSchedulerConfig(1.0, 10).init()
    with pytest.raises(
        RecordError, match="of another schedule: got NoamScheduler, expected Cosine"
    ):
        cosine.load_record(noam.into_record())
    assert cosine.rate == 1.0
    old: Any = {"position": 3}
    assert repr(cosine.load_record(old)).endswith("position=3)")
    longer = optim.CosineSchedulerConfig(1.0, 20).init()
    assert longer.load_record(cosine.into_record()) is longer


NAN = float("nan")


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.SgdConfig(momentum=0.9, dampening=NAN),
        lambda: optim.AdamConfig(epsilon=NAN),
        lambda: optim.ConstantSchedulerConfig(NAN),
        lambda: optim.LinearSchedulerConfig(0.1, NAN, 3),
        lambda: optim.SgdConfig(momentum=0.5, groups={"*": {"dampening": NAN}}),
    ],
)
def test_a_setting_that_is_no_number_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError, match="got nan, expected a number"):
        make()


@pytest.mark.parametrize("name", ["SGD", "RMSprop", "LBFGS", "Adagrad", "lr_scheduler"])
def test_names_of_pytorch_say_what_to_type(name: str) -> None:
    with pytest.raises(UnknownNameError, match="phlox writes this otherwise") as error:
        getattr(optim, name)
    hint = error.value.hint
    assert hint is not None
    assert eval(hint, {"optim": optim})
    with pytest.raises(UnknownNameError) as near:
        getattr(optim, "SgdConfg")  # noqa: B009 - checkers know that it is none
    assert near.value.hint == "optim.SgdConfig"


def test_a_measure_may_be_a_tensor_and_is_kept_as_a_number() -> None:
    schedule = optim.PlateauSchedulerConfig(0.1).init()
    schedule.step(pt.asarray(2.0))
    record = schedule.into_record()
    assert type(record["best"]) is float
    assert record["best"] == 2.0


@pytest.mark.parametrize("position", [2**53 + 1, 10**400])
def test_a_position_that_no_training_reaches_is_refused(position: int) -> None:
    config = optim.CosineSchedulerConfig(0.1, steps=10)
    with pytest.raises(RecordError, match="not a record of a schedule"):
        config.init().load_record({"position": position})
    with pytest.raises(ArgumentError, match="position"):
        optim.Scheduler(config, position)
    assert config.init().load_record({"position": 2**53}).step() == 0.0


def test_a_step_below_zero_has_no_rate() -> None:
    with pytest.raises(ArgumentError, match="got -1, expected a count from 0"):
        optim.CosineSchedulerConfig(0.1, 10).rate(-1)
