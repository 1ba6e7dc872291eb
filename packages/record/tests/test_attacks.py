"""Every hostile file is refused, for the right reason, under a memory cap."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BUILD = runpy.run_path(str(HERE.parent / "attacks" / "build.py"), run_name="build")
NAMES: dict[str, str] = BUILD["expectations"]()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("attacks")
    BUILD["main"](str(folder))
    command = [sys.executable, str(HERE / "attack_reader.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_cap_was_on(results: dict[str, Any]) -> None:
    assert results["capped"] == sys.platform.startswith("linux")


@pytest.mark.parametrize("name", NAMES)
def test_attack(name: str, results: dict[str, Any]) -> None:
    result = results["found"][name]
    assert result["outcome"] == "refused", result
    assert NAMES[name] in result["message"]
    assert all(line.isprintable() for line in result["message"].split("\n"))
    assert len(result["message"]) < 1000
    assert result["seconds"] < 30


def test_brackets_in_text_are_no_depth() -> None:
    from phlox_record import JsonRecorder

    value = {"text": "[{" * 1000 + '"\\'}
    assert JsonRecorder().from_bytes(JsonRecorder().to_bytes(value)) == value
