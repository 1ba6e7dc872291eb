"""The fuzz targets read what they begin with; `python -m tools.fuzz` goes on from there."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any

import pytest

ATTACKS = Path(__file__).parent.parent / "attacks"
FUZZ: dict[str, Any] = runpy.run_path(str(ATTACKS / "targets.py"), run_name="targets")


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUZZ["TARGETS"])
def test_a_target_reads_files_and_refuses_others(name: str) -> None:
    inputs = FUZZ["seeds"](name)
    assert len(inputs) > 150
    rng = random.Random(0)
    some = rng.sample(inputs, 40)
    assert sum(FUZZ["one_input"](name, data) for data in some) > 20
    for data in some[:10]:
        FUZZ["one_input"](name, data[: len(data) // 2])
        FUZZ["one_input"](name, data + rng.randbytes(24))
