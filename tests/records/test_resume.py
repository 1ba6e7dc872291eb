"""A training that is killed at any moment, saving included, goes on to the same bits."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phlox.record import Checkpointer

SCRIPT = Path(__file__).parent / "resume.py"
STEPS = 12


def run(folder: Path, device: str, die: int = 0) -> tuple[int, str]:
    command = [sys.executable, str(SCRIPT), str(folder), device, str(STEPS), str(die)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


def resumed(folder: Path, device: str, kills: int, seed: int) -> int:
    """Run until it is through, killed at random moments; return how often that happened."""
    whole = run(folder / "whole", device)[1]
    assert whole
    choose = random.Random(seed)
    count = 0
    while count < kills:
        place = folder / f"killed-{count}"
        while count < kills:
            status, said = run(place, device, choose.randint(1, 700))
            if status == 0:
                break
            count += 1
            for step in Checkpointer(place).steps:  # nothing that has a name is torn
                assert Checkpointer(place).restore(
                    step, model=None, optimizer=None, schedule=None, position=0
                )
        else:
            status, said = run(place, device)
        assert status == 0
        assert said == whole
    return count


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("device", ["cpu", pytest.param("wgpu", marks=pytest.mark.long)])
def test_a_killed_training_goes_on_to_the_same_bits(device: str, tmp_path: Path) -> None:
    assert resumed(tmp_path, device, kills=2, seed=1) == 2


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("device", ["cpu", "wgpu"])
def test_a_training_killed_fifty_times_goes_on_to_the_same_bits(
    device: str, tmp_path: Path
) -> None:
    assert resumed(tmp_path, device, kills=50, seed=2) == 50
