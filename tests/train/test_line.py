"""What a run shows: a live line in a terminal, plain lines elsewhere, nothing where not wanted."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from phlox import optim, train
from phlox_train.runs import line
from tests.train.nets import batches, forward, net


def run(**settings: Any) -> None:
    one = train.Learner(net(), optim.SgdConfig().init(), 1e-3)
    with train.Run(None, one, batches(), **settings) as training:
        for epoch in training.epochs(2):
            for batch in training.batches():
                training.log(loss=one.step(forward, batch)["loss"])
            training.log(loss=0.25 * epoch, split="valid")


def test_without_a_terminal_each_epoch_is_a_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1/2  ")
    assert "train/loss" in first
    assert second.endswith("valid/loss 0.25")


def test_nothing_is_shown_where_it_is_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    run(show=False)
    assert capsys.readouterr().out == ""


def test_slow_steps_are_shown_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10**6, 7))
    monkeypatch.setattr(line, "monotonic", lambda: float(next(clock)))
    run()
    lines = capsys.readouterr().out.splitlines()
    steps = [text for text in lines if "steps/s" in text]
    assert len(lines) > len(steps) >= 2
    assert "data 0%" in steps[0]
    assert "left " in steps[0]
    assert "loss " in steps[-1]


def test_in_a_terminal_one_line_lives(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(line, "_LIVE", 0.0)
    run()
    said = capsys.readouterr().out
    assert "\x1b[?25l" in said  # the cursor is hidden while the line lives
    assert said.rstrip("\r").endswith("\x1b[?25h") or "\x1b[?25h" in said
    assert said.count("steps/s") >= 10
    assert "epoch 2/2" in said


def test_why_a_run_stopped_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    run(stop=[train.MaxTime(seconds=1e-9)])
    assert capsys.readouterr().out.splitlines()[-1] == "stopped at step 1: 1e-09 s are over"


def test_in_a_notebook_one_line_below_the_cell_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without widgets, which not every notebook has; IPython is played by a few lines."""
    said: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            said.append(data["text/plain"])

    def display(data: Any, **named: Any) -> Handle:
        said.append("shown")
        return Handle()

    played: Any = types.ModuleType("IPython.display")
    played.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", played)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(line, "_LIVE", 0.0)
    run()
    assert said[0] == "shown"
    assert sum("steps/s" in text for text in said) >= 8
    assert said[-1] == ""
