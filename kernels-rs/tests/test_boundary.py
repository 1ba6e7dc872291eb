"""Malformed arguments at the native boundary: an exception of Python's, never a crash or panic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_malformed_arguments_are_refused() -> None:
    program = Path(__file__).with_name("fuzz_boundary.py")
    done = subprocess.run(
        [sys.executable, str(program), "1", "100"],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    calls, _, refused, _ = done.stdout.split()[-4:]
    assert int(calls) > int(refused) > 1000
