"""The command as a module."""

from __future__ import annotations

import subprocess
import sys

import phlox


def test_python_runs_the_package_as_the_command() -> None:
    words = [sys.executable, "-m", "phlox", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == phlox.__version__
