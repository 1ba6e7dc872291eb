"""Saving and loading hold no second copy of a module: measured as resident memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys, threading, time
from pathlib import Path
import numpy as np
from phlox import Cpu, asarray, record

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

def most(act):
    peak, before, ended = [resident()], resident(), threading.Event()
    def watch():
        while not ended.wait(0.002):
            peak[0] = max(peak[0], resident())
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        kept = act()
    finally:
        ended.set()
        thread.join()
    return peak[0] - before, kept

count, path, kind = int(sys.argv[1]), sys.argv[2], getattr(record, sys.argv[3])
cpu = Cpu()
tree = {f"t{n}": asarray(np.full(4 << 20, n, np.float32), device=cpu) for n in range(count)}
recorder = kind()
saving, place = most(lambda: recorder.record(tree, path))
del tree
loading, found = most(lambda: recorder.load(place, device=cpu))
assert found["t3"][:2].tolist() == [3.0, 3.0]
print(saving, loading)
"""


def measured(count: int, folder: Path, kind: str) -> tuple[float, float]:
    """The megabytes that saving and loading `count` tensors of 16 MB add."""
    command = [sys.executable, "-c", SCRIPT, str(count), str(folder / "a"), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    for path in folder.iterdir():  # a gigabyte, which would stay until later runs
        path.unlink()
    saving, loading = map(float, done.stdout.split())
    return saving, loading


@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("NamedMsgpackRecorder", 8),
        pytest.param("NamedMsgpackRecorder", 64, marks=pytest.mark.long),
        pytest.param("NamedMsgpackGzRecorder", 64, marks=pytest.mark.long),
        pytest.param("NpzRecorder", 64, marks=pytest.mark.long),
        pytest.param("SafetensorsRecorder", 64, marks=pytest.mark.long),
    ],
)
def test_less_than_64_mb_is_added(kind: str, count: int, tmp_path: Path) -> None:
    saving, loading = measured(count, tmp_path, kind)
    assert saving < 64
    assert loading - 16.8 * count < 64  # the tensors themselves, which may be there already
