"""Faults: of disks, clocks, files and code are clear errors, with nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import phlox as px
from phlox import nn, train
from tests.train.killed import whole
from tests.train.loops import learner, loop, stop_at
from tests.train.nets import Net, bits, forward
from tests.train.test_kills import rows_of
from tools.shell import ROOT


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    def body(run: train.Run, one: Any) -> None:
        if run.steps == 1:
            with pytest.raises(train.RunError, match=f"another run(.|\n)*process {os.getpid()}"):
                loop(tmp_path)

    run, _ = loop(tmp_path, body=body)
    assert run.steps == 12
    loop(tmp_path)  # which is free again


def test_an_error_saves_the_last_step_that_ended(tmp_path: Path) -> None:
    _, calm = loop(tmp_path / "calm")

    def body(run: train.Run, one: train.Learner[Net]) -> None:
        if run.steps == 5:
            one.step(lambda model, batch: model(batch), "no batch")

    # The step is made, and what follows in the loop fails: going on from there would lose a row.
    with pytest.raises(px.PhloxError):
        loop(tmp_path / "a", body=body)
    assert train.Checkpoints(tmp_path / "a" / "checkpoints").steps == [4]

    one = learner()

    def broken(model: nn.Module, batch: Any) -> Any:
        if one.steps == 6:
            raise ZeroDivisionError
        return forward(model, batch)

    with pytest.raises(ZeroDivisionError):
        loop(tmp_path / "b", one=one, fn=broken)
    assert train.Checkpoints(tmp_path / "b" / "checkpoints").steps == [4, 6]
    for name in "ab":
        _, again = loop(tmp_path / name)
        assert bits(again.model) == bits(calm.model)
        assert rows_of(tmp_path / name) == rows_of(tmp_path / "calm")


def test_an_error_of_a_callback_names_it(tmp_path: Path) -> None:
    def broken(event: train.Event, run: train.Run) -> None:
        if isinstance(event, train.EpochEnded):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        loop(tmp_path, callbacks=[broken])
    assert "broken" in caught.value.__notes__[0]


def test_the_clock_of_the_day_may_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    clock = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    loop(tmp_path, callbacks=[stop_at(7)])
    run, _ = loop(tmp_path)
    assert run.steps == 12
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    times = [json.loads(line)["time"] for line in lines]
    assert times == sorted(times)


def test_a_folder_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(train.RunError, match=r"cannot be used(.|\n)*another folder"):
        loop(tmp_path / "file" / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_loses_no_checkpoint(tmp_path: Path) -> None:
    """Files that may not grow beyond a size are as a disk that is full."""
    whole(tmp_path / "calm")
    code = (
        "import resource, sys; from pathlib import Path; from tests.train.killed import whole\n"
        "def limit(event, run):\n"
        "    if getattr(event, 'step', 0) == 9:\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "import phlox.train as train; made = train.Run.__init__\n"
        "def init(self, *args, **named): made(self, *args, callbacks=[limit], **named)\n"
        "train.Run.__init__ = init\n"
        f"whole(Path({str(tmp_path / 'full')!r}))\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-2:]
    assert "cannot be written" in last[0], done.stderr
    assert last[1].startswith("hint: run it again")
    there = train.Checkpoints(tmp_path / "full" / "checkpoints")
    assert 1 <= there.steps[-1] <= 9
    there.load()
    whole(tmp_path / "full")
    assert rows_of(tmp_path / "full") == rows_of(tmp_path / "calm")


def test_a_log_that_cannot_be_written_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, calm = loop(tmp_path / "calm")
    real = os.write

    def write(file: int, text: bytes) -> int:
        if b'"step":7' in text:
            real(file, text[:10])
            raise OSError(28, "No space left on device")
        return real(file, text)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(train.RunError, match="No space left"):
            loop(tmp_path / "full")
    assert [row["step"] for row in rows_of(tmp_path / "full")][-1] == 6
    _, again = loop(tmp_path / "full")
    assert bits(again.model) == bits(calm.model)
    assert rows_of(tmp_path / "full") == rows_of(tmp_path / "calm")


def test_a_damaged_checkpoint_says_from_where_to_go_on(tmp_path: Path) -> None:
    _, calm = loop(tmp_path / "calm")
    loop(tmp_path / "a")
    newest = tmp_path / "a" / "checkpoints" / "step-000000012.mpk"
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.raises(train.RunError, match=r"000012\.mpk is damaged(.|\n)*from that of step 8"):
        loop(tmp_path / "a")
    newest.unlink()
    _, again = loop(tmp_path / "a")
    assert bits(again.model) == bits(calm.model)
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "calm")
