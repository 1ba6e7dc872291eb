"""What package indexes show of each distribution."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from phlox._extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml"))]
FILES += [ROOT / "kernels-rs/pyproject.toml", *ROOT.glob("packages/*/engine/pyproject.toml")]
# Beside "Operating System", which differs for the one package with machine code.
CLASSIFIERS = {
    "Development Status :: 3 - Alpha",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3 :: Only",
    "Programming Language :: Python :: 3.11",
    "Programming Language :: Python :: 3.12",
    "Programming Language :: Python :: 3.13",
    "Programming Language :: Python :: 3.14",
    "Programming Language :: Python :: Implementation :: CPython",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
}
LINK = re.compile(r"\]\((?!https?://)")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_each_says_who_made_it_and_what_it_is(file: Path) -> None:
    project = tomllib.loads(file.read_text())["project"]
    assert project["authors"] == [{"name": "The phlox authors"}]
    assert project["license"] == "MIT OR Apache-2.0"
    assert project["license-files"] == ["LICENSE*"]
    assert project["requires-python"] == ">=3.11"
    assert len(project["description"]) <= 100
    assert {"deep-learning", "machine-learning"} <= set(project["keywords"])
    assert project["keywords"] == sorted(set(project["keywords"]))
    classifiers = project["classifiers"]
    assert set(classifiers) >= CLASSIFIERS
    assert any(line.startswith("Operating System :: ") for line in classifiers)
    assert classifiers == sorted(set(classifiers), key=lambda line: line.casefold())
    numpy = [each for each in project.get("dependencies", []) if each.startswith("numpy")]
    assert numpy in ([], ["numpy>=2.0"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_no_link_of_a_readme_leads_nowhere_on_an_index(file: Path) -> None:
    readme = file.parent / tomllib.loads(file.read_text())["project"]["readme"]
    text = readme.read_text()
    assert text.startswith("# phlox")
    assert LINK.findall(text) == []


def test_the_extras_are_those_that_are_told() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(extras) == {*EXTRAS, "all"}
    for name in EXTRAS:
        assert [each.split(">")[0] for each in extras[name]] == [f"phlox-{name}"]
    assert extras["all"] == sorted(line for name in EXTRAS for line in extras[name])
