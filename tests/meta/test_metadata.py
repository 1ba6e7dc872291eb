"""What package indexes show of each distribution."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml"))]
FILES += [ROOT / "kernels-rs/pyproject.toml"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_each_says_who_made_it_and_what_it_is(file: Path) -> None:
    project = tomllib.loads(file.read_text())["project"]
    assert project["authors"] == [{"name": "The phlox authors"}]
    assert "Typing :: Typed" in project["classifiers"]
    numpy = [each for each in project.get("dependencies", []) if each.startswith("numpy")]
    assert numpy in ([], ["numpy>=2.0"])
