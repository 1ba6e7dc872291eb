"""Names of the package are loaded when somebody asks for one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import phlox_nn as nn

LOADS = """
import sys
import phlox_nn as nn
nn.models.load, nn.Linear
assert "phlox_nn.layers.pool" not in sys.modules
assert "phlox_nn.models._whisper" not in sys.modules
assert "MaxPool2d" in dir(nn) and "Whisper" in dir(nn.models)
nn.MaxPool2d, nn.models.Whisper
assert "phlox_nn.layers.pool" in sys.modules
assert "phlox_nn.models._whisper" in sys.modules
"""
READS = """
import sys
import phlox_nn as nn
class Kept(nn.Config):
    part: nn.LayerConfig
made = Kept.from_dict({"part": {"kind": "MaxPool2d", "kernel_size": 2}})
assert made.part == nn.MaxPool2dConfig(2)
"""


@pytest.mark.parametrize("code", [LOADS, READS], ids=["loads", "reads"])
def test_a_new_process_loads_what_is_asked_for(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_star_brings_every_name() -> None:
    space: dict[str, Any] = {}
    exec("from phlox_nn import *", space)
    assert set(dir(nn)) <= space.keys()
    assert space["MaxPool2d"] is nn.MaxPool2d


def test_names_that_are_loaded_late_say_what_does_not_fit() -> None:
    wrong: Any = "no model"
    with pytest.raises(TypeError, match=r"\[quantize_weights\] model is not of the type"):
        nn.quantize_weights(wrong)
