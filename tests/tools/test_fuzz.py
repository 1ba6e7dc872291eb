"""What `python -m tools.fuzz` runs is what there is."""

from __future__ import annotations

import runpy

from tools.fuzz import PARSERS
from tools.fuzz_one import PACKAGES


def test_every_target_is_run() -> None:
    found = {
        (name, path.parts[-3])
        for path in PACKAGES.glob("*/attacks/targets.py")
        for name in runpy.run_path(str(path), run_name="targets")["TARGETS"]
    }
    assert found == set(PARSERS.items())
