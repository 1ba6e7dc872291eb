"""The example goes on with fewer processes, and ends in the bits of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples.mnist.batches import rows
from examples.mnist.data import Split
from examples.processes.__main__ import Settings, fit
from phlox import data, distributed
from tests.distributed.test_mpi import MPIEXEC
from tools.shell import ROOT

TRAIN = """
import sys
from pathlib import Path
from examples.processes.tests.test_processes import trained
from phlox import distributed

group = distributed.init()
Path(f"{sys.argv[1]}-{group.rank}-of-{group.size}").write_bytes(trained(group, Path(sys.argv[1])))
"""


def trained(group: distributed.Group, folder: Path) -> bytes:
    """Bits of the average after two epochs; one rank of three fails in the second."""
    chance = np.random.default_rng(0)
    images = chance.integers(0, 256, (150, 28, 28)).astype(np.uint8)
    digits = rows(Split(images, chance.integers(0, 10, 150).astype(np.uint8)))
    seen, kept = digits.split(0.8)
    read = 0

    def noted(item: object) -> object:
        nonlocal read
        read += 1
        if group.size == 3 and group.rank == 1 and read > 45:  # of 40 in an epoch
            raise ValueError("cannot be read")
        return item

    settings = Settings(batch=32, parts=6, epochs=2, run=str(folder))
    average = fit(settings, data.of(seen).map(noted), kept, group)
    return b"".join(param.value.numpy().tobytes() for param in average.model.param_list())


@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec is here: pip install mpich")
def test_it_ends_in_the_bits_of_one_process_with_three_and_then_two(tmp_path: Path) -> None:
    expected = trained(distributed.Solo(), tmp_path / "calm")
    (script := tmp_path / "script.py").write_text(TRAIN)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    launch = [sys.executable, "-m", "phlox", "launch", "-n", "3", "--min", "2", "--restarts", "1"]
    done = subprocess.run(
        [*launch, str(script), str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rank 1 failed: ValueError: cannot be read" in done.stderr
    for rank in range(2):
        assert (tmp_path / f"run-{rank}-of-2").read_bytes() == expected
