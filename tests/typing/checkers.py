"""Runs type checkers over a program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.shell import ROOT

LINE = re.compile(r"program\.py:(\d+)(?::\d+)?(?: -)?:? .*?error\b:? ?(.*)")
CHECKERS = {"mypy": ["mypy", "--strict"], "pyright": ["pyright"]}


def found(command: list[str], folder: Path, program: str) -> dict[int, str]:
    """Lines with an error, by what the checker prints."""
    file = folder / "program.py"
    file.write_text(program)
    line = [sys.executable, "-m", *command, str(file)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    matches = (LINE.search(line) for line in done.stdout.splitlines())
    return {int(m[1]): m[2] for m in matches if m}
