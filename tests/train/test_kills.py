"""Kills at random moments, saving included: what is started again ends in the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import phlox as px
from tests.train.killed import whole
from tools.shell import ROOT


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of a log, without their times."""
    import json

    lines = (folder / "log.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "time"} for line in lines]


def newest(folder: Path) -> Any:
    """The last checkpoint, without its times and without ids, which each process draws."""
    return px.train.Checkpoints(folder / "checkpoints").load()


def bits_of(record: Any) -> list[Any]:
    """Tensors and numbers of a record in order."""
    found = px.tree.leaves_with_paths(record["parts"]["learner"]["model"])
    return [v.numpy().tobytes() for _, v in found if isinstance(v, px.Tensor)]


def needs_adapter() -> None:
    try:
        px.Wgpu()
    except px.BackendUnavailableError as error:
        pytest.skip(f"no adapter: {error}")


def start(folder: Path, way: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "tests/train/killed.py"), str(folder), way]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def killed_until_done(folder: Path, way: str, kills: int, chance: random.Random) -> int:
    """Kill a run so many times, and let it end; how many of the kills met it while it trained."""
    met = 0
    for _ in range(kills):
        with start(folder, way) as process:
            assert process.stdout is not None
            begun = process.stdout.readline()
            if begun:
                # The first one at once: on a quick machine the run ends within a quarter second.
                time.sleep(chance.uniform(0.0, 0.25) if met else 0.0)
            process.send_signal(signal.SIGKILL)
            met += "done" not in process.stdout.read()
    with start(folder, way) as process:
        said, _ = process.communicate(timeout=100)
    assert said.endswith("done\n")
    return met


LONG = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize(
    ("way", "kills"),
    [
        pytest.param("cpu", 2, marks=pytest.mark.timeout(300)),  # starts are slow on a busy machine
        pytest.param("cpu", 50, marks=LONG),
        pytest.param("compiled", 10, marks=LONG),
        pytest.param("wgpu", 50, marks=LONG),
    ],
)
def test_a_run_that_is_killed_ends_in_the_same_bits(tmp_path: Path, way: str, kills: int) -> None:
    if way == "wgpu":
        needs_adapter()
    whole(tmp_path / "calm", way)
    met = killed_until_done(tmp_path / "killed", way, kills, random.Random(kills))
    assert met > 0
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "calm")
    assert bits_of(newest(tmp_path / "killed")) == bits_of(newest(tmp_path / "calm"))
    for path in (tmp_path / "killed" / "checkpoints").iterdir():
        assert path.suffix == ".mpk"  # and no half of a file


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGSTOP")
@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 0)])
@pytest.mark.timeout(300)
def test_a_process_told_to_end_saves_and_nobody_else_takes_its_folder(
    tmp_path: Path, name: str, status: int
) -> None:
    whole(tmp_path / "calm")
    with start(tmp_path / "told", "cpu") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "step 0\n"
        process.send_signal(signal.SIGSTOP)
        with start(tmp_path / "told", "cpu") as other:
            assert other.communicate(timeout=100)[0] == ""  # it did not begin
            assert other.returncode == 1
        process.send_signal(getattr(signal, name))
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=100)
        assert process.returncode == status
    assert newest(tmp_path / "told")["place"]["step"] < 28
    with start(tmp_path / "told", "cpu") as process:
        assert process.communicate(timeout=100)[0].endswith("done\n")
    assert rows_of(tmp_path / "told") == rows_of(tmp_path / "calm")
    assert bits_of(newest(tmp_path / "told")) == bits_of(newest(tmp_path / "calm"))
