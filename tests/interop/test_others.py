"""einops, SciPy and scikit-learn, on tensors, by the array API."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("others.py")


@pytest.mark.parametrize("name", ["einops", "scipy", "sklearn"])
def test_functions_of_others_give_tensors_with_the_values_of_arrays(name: str) -> None:
    # A process of its own: SciPy reads whether it may take other arrays when it is imported.
    command = [sys.executable, "-W", "error", str(SCRIPT), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert not done.returncode, done.stderr
