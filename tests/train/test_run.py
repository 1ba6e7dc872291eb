"""Runs: stopped anywhere they go on to the same bits; faults of their folder are clear errors."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import phlox as px
from phlox import data, train
from tests.train.killed import whole
from tests.train.loops import learner, loader, loop, stop_at
from tests.train.nets import Net, batches, bits, forward, rows
from tests.train.test_kills import needs_adapter, rows_of


@pytest.mark.parametrize("sized", [True, False])
def test_a_run_goes_on_from_each_step_to_the_same_bits(tmp_path: Path, sized: bool) -> None:
    feed = loader() if sized else batches((8, 8, 8, 6))
    _, calm = loop(tmp_path / "calm", feed=feed)
    for step in range(1, 13):
        folder = tmp_path / f"{step}"
        feed = loader() if sized else batches((8, 8, 8, 6))
        run, _ = loop(folder, feed=feed, callbacks=[stop_at(step)])
        assert (run.steps, run.reason) == (step, "tested")
        feed = loader() if sized else batches((8, 8, 8, 6))
        run, again = loop(folder, feed=feed)
        assert (run.steps, run.reason) == (12, "done")
        assert bits(again.model) == bits(calm.model), step
        assert rows_of(folder) == rows_of(tmp_path / "calm"), step


@pytest.mark.parametrize("way", ["compiled", pytest.param("wgpu", marks=pytest.mark.long)])
def test_a_run_goes_on_on_other_devices_and_compiled(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "wgpu":
        needs_adapter()
    calm = whole(tmp_path / "calm", way)
    made = train.Run.__init__
    with monkeypatch.context() as patch:
        patch.setattr(
            train.Run,
            "__init__",
            lambda self, *a, **named: made(self, *a, **named, callbacks=[stop_at(9)]),
        )
        assert whole(tmp_path / "stopped", way) != calm
    assert whole(tmp_path / "stopped", way) == calm
    assert rows_of(tmp_path / "stopped") == rows_of(tmp_path / "calm")


def test_a_run_that_is_done_is_not_trained_again(tmp_path: Path) -> None:
    loop(tmp_path)
    before = rows_of(tmp_path)
    events: list[Any] = []
    run, _ = loop(tmp_path, callbacks=[lambda event, run: events.append(type(event).__name__)])
    assert events == ["Started", "Stopped"]
    assert rows_of(tmp_path) == before
    more, _ = loop(tmp_path, epochs=4)
    assert (run.steps, more.steps) == (12, 16)


def test_events_come_in_order(tmp_path: Path) -> None:
    events: list[Any] = []
    loop(tmp_path, epochs=1, callbacks=[lambda event, run: events.append(event)])
    names = [type(event).__name__ for event in events]
    assert names == ["Started", *["Stepped"] * 4, "Validated", "EpochEnded", "Saved", "Stopped"]
    assert events[5].values == {"loss": 0.0}
    assert events[7].path.exists()


def test_curves_and_their_best(tmp_path: Path) -> None:
    for folder in (tmp_path, None):
        run, _ = loop(folder, keep=[train.KeepBest("valid/loss")] if folder else ())
        curve = run.history("valid/loss")
        assert (curve.steps.tolist(), curve.values.tolist()) == ([4, 8, 12], [0.0, 1.0, 2.0])
        best = run.best("valid/loss")
        assert (best.value, best.step, best.epoch) == (0.0, 4, 0)
        assert (best.path is not None and best.path.exists()) == (folder is not None)
        assert run.best("valid/loss", "higher").value == 2.0
        with pytest.raises(px.PhloxError, match=r"of this name(.|\n)*train/loss, valid/loss"):
            run.history("valid/accuracy")
    assert json.loads((tmp_path / "best.json").read_text())["valid/loss"]["step"] == 4
    assert "step-000000012" in (tmp_path / "last.json").read_text()


def test_checkpoints_that_no_rule_wants_are_removed(tmp_path: Path) -> None:
    keep = [train.KeepLast(2), train.KeepBest("valid/loss")]
    loop(tmp_path, epochs=5, keep=keep)
    assert train.Checkpoints(tmp_path / "checkpoints").steps == [4, 16, 20]


def test_the_best_is_kept_across_starts(tmp_path: Path) -> None:
    keep = [train.KeepBest("valid/loss")]
    loop(tmp_path, keep=keep, callbacks=[stop_at(6)], save=train.Every(steps=1))
    loop(tmp_path, keep=keep, save=train.Every(minutes=9))
    assert train.Checkpoints(tmp_path / "checkpoints").steps == [4, 12]


def test_another_config_is_refused_with_the_difference(tmp_path: Path) -> None:
    loop(tmp_path, epochs=1, config={"layers": 2, "optimizer": {"decay": 0.1}})
    other = {"layers": 2, "optimizer": {"decay": 0.2}}
    with pytest.raises(train.RunError, match=r"optimizer\.decay: 0\.1, now 0\.2"):
        loop(tmp_path, config=other)
    run, _ = loop(tmp_path, epochs=2, config=other, resume="anyway")
    assert run.steps == 8
    with pytest.raises(train.RunError, match=r"a run is in(.|\n)*resume=True"):
        loop(tmp_path, resume=False)


def test_what_is_behind_the_loop_may_be_logged_anew(tmp_path: Path) -> None:
    for _ in range(2):
        one = learner()
        with train.Run(tmp_path, one, loader(), show=False) as run:
            for _ in run.epochs(1):
                for batch in run.batches():
                    one.step(forward, batch)
            run.log(accuracy=0.5, split="test")
    assert [row["split"] for row in rows_of(tmp_path)] == ["test"]


def test_an_epoch_may_be_left_early(tmp_path: Path) -> None:
    def short(folder: Path, **settings: Any) -> train.Learner[Net]:
        one = learner()
        with train.Run(folder, one, loader(), show=False, **settings) as run:
            for _ in run.epochs(3):
                for batch in run.batches():
                    run.log(loss=one.step(forward, batch)["loss"])
                    if run.steps % 2:
                        break
        assert run.steps in (6, 2)
        return one

    calm = short(tmp_path / "calm")
    short(tmp_path / "stopped", callbacks=[stop_at(2)])
    again = short(tmp_path / "stopped")
    assert bits(again.model) == bits(calm.model)
    assert rows_of(tmp_path / "stopped") == rows_of(tmp_path / "calm")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_run_behind_its_step(tmp_path: Path, name: str) -> None:
    _, calm = loop(tmp_path / "calm")
    before = signal.getsignal(getattr(signal, name))

    def body(run: train.Run, one: Any) -> None:
        if run.steps == 4:
            signal.raise_signal(getattr(signal, name))

    if name == "SIGTERM":
        with pytest.raises(SystemExit) as caught:
            loop(tmp_path / "a", body=body)
        assert caught.value.code == 143
    else:
        run, _ = loop(tmp_path / "a", body=body)
        assert (run.steps, run.reason) == (5, "Ctrl-C")
    assert signal.getsignal(getattr(signal, name)) is before
    _, again = loop(tmp_path / "a")
    assert bits(again.model) == bits(calm.model)
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "calm")


def test_ctrl_c_says_what_it_does(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = learner()
    with train.Run(tmp_path, one, loader()) as run:
        for _ in run.epochs(1):
            for batch in run.batches():
                one.step(forward, batch)
                if run.steps == 1:
                    signal.raise_signal(signal.SIGINT)
    out, error = capfd.readouterr()
    assert error == "\n[run] Ctrl-C: ends after this step; again: at once\n"
    assert out == "stopped at step 2: Ctrl-C\n"


def test_a_second_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    def body(run: train.Run, one: Any) -> None:
        if run.steps == 5:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        loop(tmp_path, body=body)
    assert train.Checkpoints(tmp_path / "checkpoints").steps == [4]
    run, _ = loop(tmp_path)
    assert run.steps == 12


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="Windows has no such signal")
def test_sigusr1_saves_and_goes_on(tmp_path: Path) -> None:
    saved: list[str] = []

    def body(run: train.Run, one: Any) -> None:
        if run.steps == 5:
            signal.raise_signal(signal.SIGUSR1)

    def callback(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.Saved):
            saved.append(f"{event.step} {event.reason}")

    loop(tmp_path, body=body, callbacks=[callback])
    assert saved == ["4 due", "6 SIGUSR1", "8 due", "12 due"]


def test_a_run_in_another_thread_leaves_signals_alone(tmp_path: Path) -> None:
    done: list[int] = []
    thread = threading.Thread(target=lambda: done.append(loop(tmp_path)[0].steps))
    thread.start()
    thread.join()
    assert done == [12]


def test_a_run_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    def feed(workers: int) -> data.DataLoader:
        return data.DataLoader(data.arrays(**rows(30)), 8, shuffle=True, workers=workers)

    _, calm = loop(tmp_path / "calm")
    for workers, step in ((3, 2), (1, 5), (2, 9)):
        loop(tmp_path / "a", feed=feed(workers), callbacks=[stop_at(step)])
    _, again = loop(tmp_path / "a", feed=feed(0))
    assert bits(again.model) == bits(calm.model)
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "calm")


def test_values_that_are_not_finite_are_json_and_come_back(tmp_path: Path) -> None:
    with train.Run(tmp_path, learner(), stop=[], show=False) as run:
        run.log(a=float("nan"), b=float("-inf"), c=px.asarray(float("inf")), d=[1, 2])
    text = (tmp_path / "log.jsonl").read_text()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"no JSON: {name}"))
    assert str(run.history("train/a").values[0]) == "nan"
    assert run.history("train/b").values[0] == float("-inf")
    assert run.history("train/c").values[0] == float("inf")


def test_rules_end_runs(tmp_path: Path) -> None:
    cases: list[tuple[train.StopRule, int, str]] = [
        (train.NoImprovement("valid/loss", epochs=2), 12, "no better than 0.0 for 2 epochs"),
        (train.NoImprovement("valid/loss", 1, better="higher"), 20, ""),
        (train.Reached("valid/loss", 2.0, better="higher"), 12, "valid/loss is 2.0"),
        (train.MaxTime(seconds=1e-9), 1, "are over"),
        (train.NotFinite("valid/loss"), 20, ""),
    ]
    for number, (rule, steps, reason) in enumerate(cases):
        run, _ = loop(tmp_path / f"{number}", epochs=5, stop=[rule])
        assert run.steps == steps, rule
        assert reason in run.reason


def test_patience_is_not_forgotten_where_a_run_goes_on(tmp_path: Path) -> None:
    def rules() -> list[train.StopRule]:
        return [train.NoImprovement("valid/loss", epochs=2)]

    for step in (6, 8, 9):
        loop(tmp_path / f"{step}", epochs=5, stop=rules(), callbacks=[stop_at(step)])
        run, _ = loop(tmp_path / f"{step}", epochs=5, stop=rules())
        assert run.steps == 12


def test_rules_may_be_others_where_a_run_goes_on(tmp_path: Path) -> None:
    loop(tmp_path, stop=[train.NoImprovement("valid/loss", epochs=9)])
    more = [train.MaxTime(hours=1.0), train.NoImprovement("valid/loss", epochs=3)]
    run, _ = loop(tmp_path, epochs=9, stop=more)
    assert run.steps == 16  # the epochs before count


def test_only_epochs_that_log_a_value_count_for_its_rules() -> None:
    one = learner()
    rules = [train.NoImprovement("valid/loss", epochs=2)]
    with train.Run(None, one, loader(), stop=rules, show=False) as run:
        for epoch in run.epochs(20):
            for batch in run.batches():
                one.step(forward, batch)
            if epoch % 3 == 0:
                run.log(loss=1.0, split="valid")
    assert run.epoch == 7


def test_a_loss_that_is_not_finite_ends_a_run_unsaved(tmp_path: Path) -> None:
    def body(run: train.Run, one: train.Learner[Net]) -> None:
        if run.steps == 5:
            run.log(loss=px.asarray(float("nan")))

    run, _ = loop(tmp_path, body=body)
    assert "train/loss is nan" in run.reason
    assert 6 <= run.steps <= 8
    assert train.Checkpoints(tmp_path / "checkpoints").steps == [4]


def test_several_learners_go_on_in_one_run(tmp_path: Path) -> None:
    def both(folder: Path, **settings: Any) -> list[bytes]:
        parts = {"one": learner(), "two": learner(seed=5)}
        with train.Run(folder, parts, loader(), show=False, **settings) as run:
            for _ in run.epochs(2):
                for batch in run.batches():
                    for part in parts.values():
                        part.step(forward, batch)
        return [*bits(parts["one"].model), *bits(parts["two"].model)]

    calm = both(tmp_path / "calm")
    both(tmp_path / "a", callbacks=[stop_at(3)])
    assert both(tmp_path / "a") == calm


def test_wrong_uses_say_what_to_type(tmp_path: Path) -> None:
    one = learner()
    cases: list[tuple[Any, str]] = [
        (lambda: train.Run(tmp_path, one, iter([])), "once for each epoch"),
        (lambda: train.Run(tmp_path, one.model, []), "none|no record"),
        (lambda: train.Run(tmp_path, train.Learner, []), "has no record"),
        (lambda: train.Run(tmp_path, one, [], config={"a": object()}), "does not go into a file"),
        (lambda: train.Run(None, one, []).log(loss=1.0), "has not begun"),
        (train.Every, "Every"),
        (lambda: train.Run(tmp_path, one, save=5), "an Every"),  # type: ignore[arg-type]
        (lambda: train.Run(tmp_path, one, resume="yes"), "resume='yes'"),  # type: ignore[arg-type]
        (lambda: train.Run(tmp_path, one, data.arrays(**rows(8))), "items, not batches"),
        (lambda: loop(None, feed=[]), "no batches"),
        (lambda: loop(None, epochs=1.5), "no count"),  # type: ignore[arg-type]
        (lambda: loop(None, body=lambda run, one: run.log(step=1.0)), "rows have themselves"),
        (lambda: loop(None, body=lambda run, one: run.log(a=one)), "a does not go into a row"),
        (lambda: loop(None, body=lambda run, one: run.log(5)), "values have no names"),
        (lambda: loop(None, body=lambda run, one: run.log({"a": 1.0}, a=2.0)), "given twice"),
        (lambda: train.Run("", one), "not the path of a folder"),
        (lambda: train.KeepLast(0), "KeepLast"),
        (train.MaxTime, "MaxTime"),
        (lambda: train.NoImprovement("a", 0), "NoImprovement"),
        (lambda: train.Checkpoints(tmp_path / "none").load(), "no such checkpoint"),
        (lambda: train.Checkpoints(tmp_path / "none").save(1, one.model), "model.into_record"),  # type: ignore[arg-type]
    ]
    for make, message in cases[:1] + cases[2:]:
        with pytest.raises(px.PhloxError, match=message):
            make()
    run, _ = loop(None)
    with pytest.raises(train.RunError, match="is over"):
        run.log(loss=1.0)
    took = run.seconds
    assert run.seconds == took > 0.0
    with pytest.raises(px.PhloxError, match=r'better="higher"'):
        loop(
            tmp_path,
            stop=[train.Reached("valid/loss2", 1.0)],
            body=lambda run, one: run.log(loss2=1.0, split="valid"),
        )
