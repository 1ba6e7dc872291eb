"""The command as a module."""

from __future__ import annotations

import subprocess
import sys

import pytest

import phlox
from phlox._cli import _RUNS, _TEXT, main

OTHERS = ("data", "doctor", "launch", "layers", "metrics", "onnx", "ops", "optimizers", "record")


def test_python_runs_the_package_as_the_command() -> None:
    words = [sys.executable, "-m", "phlox", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == phlox.__version__


@pytest.mark.parametrize("command", [*_RUNS, *_TEXT, *OTHERS])
def test_help_holds_no_marks_of_docstrings(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"phlox {command}" in said
    assert "``" not in said
