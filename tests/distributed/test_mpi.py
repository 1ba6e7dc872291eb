"""The group over MPI, in processes: the same sums as those of threads, and ends of jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.distributed.threads import leaves_of, summed, together
from tools.shell import ROOT

MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or MPIEXEC is None, reason="no mpiexec is here: pip install mpich"
)

_SUM = """
import os, sys
from importlib import import_module
from phlox import distributed
from phlox_tensor.groups import Solo, all_gather_object, broadcast_object
from tests.distributed.threads import leaves_of, summed

group = distributed.init()
assert distributed.init() is group
exchange = import_module("phlox_tensor._groups.exchange")
exchange._PIECE = 9_000  # several, in memory that the ranks share
assert group.window(4) is not None
found = summed(group, leaves_of(8, 70_001)).tobytes()
leaves = [leaves_of(8, size) for size in (5, 9_000, 70_001, 2_000)]
alone = [summed(Solo(), each).tobytes() for each in leaves]
for turn in range(40):  # sums of other sizes follow each other in one memory
    at = turn * 7 % 4
    assert summed(group, leaves[at]).tobytes() == alone[at], turn
os.environ["PHLOX_NUM_THREADS"], exchange._SPREAD = "4", 64  # pieces by several threads
assert exchange._threads(group.size) == 4
assert summed(group, leaves_of(8, 70_001)).tobytes() == found
assert exchange._pool()._threads
distributed.Mpi.window = lambda *_: None  # as on several machines
assert summed(group, leaves_of(8, 70_001)).tobytes() == found
group.barrier()
names = all_gather_object(group, "x" * group.rank)
told = broadcast_object(group, group.rank, group.size - 1)
open(f"{sys.argv[1]}/{group.rank}", "wb").write(found)
assert names == ["x" * r for r in range(group.size)]
assert told == group.size - 1
assert (group.local_rank, group.local_size) == (group.rank, group.size)
"""
_FAILS = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from phlox import distributed

group = distributed.init()
group.barrier()
if group.rank == 1:
    print(time.time(), flush=True)
    if sys.argv[1] == "exit":
        thread = ThreadPoolExecutor(1)
        thread.submit(group.barrier)
        sys.exit(3)
    if sys.argv[1] == "system_exit":
        raise SystemExit(4)
    raise ValueError("on one rank")
time.sleep(1)
group.barrier()
group.barrier()
print("unreachable", flush=True)
"""


def mpiexec(ranks: int, code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python in so many processes."""
    assert MPIEXEC is not None
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-c", code, *words]
    environment = {**os.environ, "PYTHONPATH": path, "PHLOX_NUM_THREADS": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_sum_to_the_bits_of_threads(tmp_path: Path, ranks: int) -> None:
    done = mpiexec(ranks, _SUM, str(tmp_path))
    assert done.returncode == 0, done.stderr
    expected = together(1, lambda group: summed(group, leaves_of(8, 70_001)).tobytes())
    assert [(tmp_path / str(rank)).read_bytes() for rank in range(ranks)] == expected * ranks


SEEN = pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 tells nobody of it")


@pytest.mark.parametrize(
    ("way", "code"), [("raise", 1), ("exit", 3), pytest.param("system_exit", 4, marks=SEEN)]
)
def test_the_end_of_one_rank_ends_all(way: str, code: int) -> None:
    done = mpiexec(2, _FAILS, way)
    ended = time.time()
    assert done.returncode == code
    assert ("ValueError: on one rank" in done.stderr) == (way == "raise")
    assert "unreachable" not in done.stdout
    assert ended - float(done.stdout) < 15  # two seconds, on cores that are not shared


_FAILS_ALONE = """
import sys
import numpy as np
from phlox import distributed

group = distributed.init()
alone = group.rank == 1
calls = (
    lambda: distributed.all_gather_object(group, (lambda: 3) if alone else 1),
    lambda: distributed.broadcast_object(group, (lambda: 3) if alone else 1, 1),
    lambda: distributed.broadcast_object(group, 1, 2),
    lambda: distributed.tree_sum(group, 2, np.ones((1 + alone, 2))),
    lambda: distributed.tree_sum(group, 2, [[1.0, 2.0], [3.0]] if alone else [[1.0, 2.0]]),
)
for call in calls:
    try:
        call()
    except ValueError as error:
        print(f"{group.rank}: {error}")
assert distributed.all_gather_object(group, group.rank) == [0, 1]
"""


def test_a_call_that_fails_on_one_rank_is_an_error_on_all() -> None:
    done = mpiexec(2, _FAILS_ALONE)
    assert done.returncode == 0, done.stderr
    for text, ranks in (
        ("[all_gather_object] a value cannot be sent", "01"),
        ("[broadcast_object] a value cannot be sent", "01"),
        ("[broadcast_object] no such process: got 2, expected 0 <= root < 2", "01"),
        ("[tree_sum] not the sums of this rank", "1"),
        ("[tree_sum] rows differ in length", "1"),
    ):
        for rank in ranks:
            assert f"{rank}: {text}" in done.stdout
    assert done.stdout.count("0: [tree_sum] parts or ranks that meet make different calls") == 2
    assert "fails" in done.stdout
