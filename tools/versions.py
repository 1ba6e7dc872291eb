"""Versions that must agree: pyproject files, changelogs, Cargo.toml, requirements, sources.

`./x versions` prints them, and `./x versions 0.3.0` gives every package that version.
"""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.shell import ROOT, fail

_NEW = re.compile(r"\d+\.\d+\.\d+")
_STATED = re.compile(r'^(__version__|VERSION: Final) = "([^"]+)"$', re.MULTILINE)
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)")


@dataclass(frozen=True)
class Project:
    """One distribution of the workspace, as its pyproject.toml states it.

    Attributes:
        extras: what is installed on request alone.
    """

    folder: Path
    name: str
    version: str
    requires: dict[str, str]
    native: bool
    extras: dict[str, str]

    @property
    def module(self) -> str:
        """Import name."""
        return self.name.replace("-", "_")


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project(file: Path) -> Project:
    """Read a pyproject.toml: names are normalized, requirements are name -> specifier."""
    whole: dict[str, Any] = tomllib.loads(file.read_text())
    table: dict[str, Any] = whole["project"]
    native = whole["build-system"]["build-backend"] == "maturin"
    requires = _specifiers(table.get("dependencies", []))
    optional: dict[str, list[str]] = table.get("optional-dependencies", {})
    extras = _specifiers([text for each in optional.values() for text in each])
    return Project(file.parent, _key(table["name"]), table["version"], requires, native, extras)


def _specifiers(requirements: list[str]) -> dict[str, str]:
    found = [_REQUIREMENT.match(text) for text in requirements]
    return {_key(match[1]): match[2].replace(" ", "") for match in found if match}


def projects(root: Path = ROOT) -> list[Project]:
    """Every distribution of the workspace, sorted by name."""
    return _found(root, "pyproject.toml", "packages/*/pyproject.toml", "kernels-rs/pyproject.toml")


def released(root: Path = ROOT) -> list[Project]:
    """What is released together: the workspace, and the engine that nothing in it needs."""
    apart = _found(root, "packages/*/engine/pyproject.toml")
    return sorted([*projects(root), *apart], key=lambda project: project.name)


def _found(root: Path, *patterns: str) -> list[Project]:
    files = [file for pattern in patterns for file in root.glob(pattern)]
    return sorted((read_project(file) for file in files), key=lambda project: project.name)


# What says how machine code is built and what its wheel holds.
_MAKERS = ("parts.py", "side_module.py", "tags.py", "targets.py", "wheels.py")


def changed(project: Project, root: Path = ROOT) -> float:
    """When the newest file that a wheel of machine code is made of was written."""
    names = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md")
    files = [folder / name for folder in (root, project.folder) for name in names]
    files += [file for name in ("src", "python") for file in (project.folder / name).rglob("*")]
    files += [*project.folder.glob("LICENSE*"), *(root / "tools" / n for n in _MAKERS)]
    made = {".pyc", ".pyd", ".so"}
    times = [file.stat().st_mtime for file in files if file.is_file() and file.suffix not in made]
    return max(times)


def problems(root: Path = ROOT) -> list[str]:
    """One line for each disagreement; an empty list is a pass."""
    found = {project.name: project for project in released(root)}
    lines: list[str] = []
    for project in found.values():
        lines += _changelog(project, root)
        lines += _cargo(project, root)
        lines += _stated(project, root)
        for name, specifier in (project.requires | project.extras).items():
            if name in found:
                lines += _pin(project, found[name], specifier)
    return lines


def _changelog(project: Project, root: Path) -> list[str]:
    file = project.folder / "CHANGELOG.md"
    where = file.relative_to(root)
    if not file.is_file():
        return [f"{where}: missing, expected a heading '## {project.version}'"]
    heading = re.search(r"^## +(\S+)", file.read_text(), re.MULTILINE)
    got = heading[1] if heading else "none"
    if got == project.version:
        return []
    return [f"{where}: newest heading: got {got}, expected {project.version}"]


def _cargo(project: Project, root: Path) -> list[str]:
    if not project.native:
        return []
    file = project.folder / "Cargo.toml"
    got = tomllib.loads(file.read_text())["package"]["version"]
    if got == project.version:
        return []
    return [f"{file.relative_to(root)}: version: got {got}, expected {project.version}"]


def _stated(project: Project, root: Path) -> list[str]:
    """What sources say of themselves, as `phlox.__version__`."""
    return [
        f"{file.relative_to(root)}: {found[1]}: got {found[2]}, expected {project.version}"
        for file in _sources(project)
        for found in _STATED.finditer(file.read_text(encoding="utf-8"))
        if found[2] != project.version
    ]


def _sources(project: Project) -> list[Path]:
    """Files that may state a version."""
    folder = project.folder / ("python" if project.native else "src") / project.module
    return [file for name in ("__init__.py", "_version.py") if (file := folder / name).is_file()]


def _pin(project: Project, other: Project, specifier: str) -> list[str]:
    """A native wheel and who serves it alone pin each other exactly; all else is a minor range."""
    major, minor = (int(part) for part in other.version.split(".")[:2])
    range_ = f">={other.version},<{major}.{minor + 1}"
    expected = f"=={other.version}" if other.native or project.name in other.extras else range_
    if specifier == expected:
        return []
    return [f"{project.name}: {other.name}: got {specifier or 'any'}, expected {expected}"]


def versions(words: list[str], root: Path = ROOT) -> int:
    """Print every version and what disagrees, or give all packages a new one.

    Raises:
        CommandError: what is asked for is no version.
    """
    if len(words) > 1 or not all(_NEW.fullmatch(word) for word in words):
        expected = "nothing or a version such as 0.3.0"
        raise fail(f"versions: got {' '.join(words)}, expected {expected}", "./x versions 0.3.0")
    if words:
        for project in released(root):
            _change(project, words[0], root)
    for project in released(root):
        print(f"{project.name:<20} {project.version}")
    lines = problems(root)
    print("\n".join(lines or ["all of them agree"]), flush=True)
    return 1 if lines else 0


def _change(project: Project, new: str, root: Path) -> None:
    """Write a version into every file of a package that states it, and open its changelog."""
    old = re.escape(project.version)
    major, minor = (int(part) for part in new.split(".")[:2])
    _edit(
        project.folder / "pyproject.toml",
        (rf'(?m)^version = "{old}"', f'version = "{new}"'),
        (r'("phlox-[a-z-]+)>=[^",]+,<[^"]+"', rf'\1>={new},<{major}.{minor + 1}"'),
        (r'("phlox-[a-z-]+)==[^";]+', rf"\1=={new}"),
    )
    _edit(
        project.folder / "CHANGELOG.md", (rf"(?m)^## {old}$", f"## {new}\n\n## {project.version}")
    )
    for file in _sources(project):
        _edit(file, (_STATED.pattern, rf'\1 = "{new}"'))
    if project.native:
        _edit(project.folder / "Cargo.toml", (rf'(?m)^version = "{old}"', f'version = "{new}"'))
        locked = rf'(name = "{project.name}"\nversion = )"{old}"'
        for folder in (root, project.folder):
            if (folder / "Cargo.lock").is_file():
                _edit(folder / "Cargo.lock", (locked, rf'\1"{new}"'))


def _edit(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for pattern, replacement in changes:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8")
