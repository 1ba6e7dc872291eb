"""What every package has: papers, versions that agree, types, documented names."""

import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from tools.shell import ROOT
from tools.versions import Project, problems, projects

PROJECTS = {project.name: project for project in projects()}
NAMES = sorted(PROJECTS)


def source(project: Project) -> Any:
    return project.folder / ("python" if project.native else "src") / project.module


@pytest.mark.parametrize("name", NAMES)
def test_a_package_brings_its_papers(name: str) -> None:
    folder = PROJECTS[name].folder
    missing = [
        file
        for file in ("CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md")
        if not (folder / file).is_file()
    ]
    assert not missing, f"{name} lacks {', '.join(missing)}"
    assert (source(PROJECTS[name]) / "py.typed").is_file(), f"{name} lacks py.typed"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"phlox"}))
def test_a_readme_says_why_and_what_not(name: str) -> None:
    text = (PROJECTS[name].folder / "README.md").read_text().lower()
    assert "why it exists" in text, f"{name}: README.md does not say why the package exists"
    assert "will not" in text, f"{name}: README.md does not say what the package will not do"


def test_versions_agree() -> None:
    assert not problems(), "\n".join(problems())


def test_the_lock_holds_what_packages_declare() -> None:
    locked = (ROOT / "constraints" / "dev.txt").read_text()
    pinned = set(re.findall(r"^([a-z0-9-]+)==", locked, re.MULTILINE))
    declared = {name for project in PROJECTS.values() for name in project.requires}
    assert declared - set(PROJECTS) <= pinned


def test_every_locked_file_is_hashed() -> None:
    for file in (ROOT / "constraints").glob("*.txt"):
        assert "://" not in file.read_text(), f"{file.name} names a place to install from"
        pins = re.findall(r"^\S+==.*\\\n +--hash=sha256:", file.read_text(), re.MULTILINE)
        assert len(pins) == len(re.findall(r"^\S+==", file.read_text(), re.MULTILINE)) > 0


def test_the_workspace_knows_every_package() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(table["tool"]["uv"]["sources"]) == set(NAMES) - {"phlox"}
    whole = PROJECTS["phlox"]
    assert set(whole.requires) | set(whole.extras) == set(NAMES) - {"phlox"}


def undocumented(module: Any) -> Iterator[str]:
    """Public functions, classes and methods of a module without a docstring of their own."""
    for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if not inspect.getdoc(value) or (inspect.isclass(value) and not value.__doc__):
            yield name
        if inspect.isclass(value):
            yield from (f"{name}.{member}" for member in _members(value))


def _members(owner: type) -> Iterator[str]:
    for name, member in vars(owner).items():
        if name.startswith("_") or not (inspect.isroutine(member) or isinstance(member, property)):
            continue
        if not hasattr(owner, name):  # a hint at a name that is not there
            continue
        # inspect looks in the base classes too: an override may keep the contract it inherits.
        if not inspect.getdoc(getattr(owner, name)):
            yield name


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented(name: str) -> None:
    found = sorted(set(undocumented(importlib.import_module(PROJECTS[name].module))))
    assert not found, f"{name}: no docstring: {', '.join(found)}"


def test_a_missing_docstring_is_seen() -> None:
    class Module:
        __all__ = ("Bad", "good")

        class Bad:
            def method(self) -> None: ...

        @staticmethod
        def good() -> None:
            """Good."""

    assert list(undocumented(Module)) == ["Bad", "Bad.method"]
