"""What `python -m tools.fuzz` runs is what there is."""

from __future__ import annotations

import runpy
from pathlib import Path

from tools.fuzz import PARSERS

TARGETS = Path(__file__).parents[2] / "packages" / "record" / "attacks" / "targets.py"


def test_every_target_is_run() -> None:
    assert tuple(sorted(runpy.run_path(str(TARGETS))["TARGETS"])) == PARSERS
