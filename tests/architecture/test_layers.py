"""Arrows point down: what each package may import, declare and reach."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.shell import ROOT
from tools.versions import Project, projects

ALLOWED = {
    "phlox": {
        "phlox-autodiff",
        "phlox-data",
        "phlox-distributed",
        "phlox-fusion",
        "phlox-kernels",
        "phlox-nn",
        "phlox-onnx",
        "phlox-optim",
        "phlox-record",
        "phlox-tensor",
        "phlox-text",
        "phlox-train",
        "phlox-wgpu",
    },
    "phlox-autodiff": {"phlox-tensor"},
    "phlox-data": {"phlox-tensor"},
    "phlox-distributed": {"phlox-tensor"},
    "phlox-fusion": {"phlox-tensor"},
    "phlox-kernels": {"phlox-tensor"},
    "phlox-nn": {"phlox-record", "phlox-tensor"},
    "phlox-onnx": {"phlox-nn", "phlox-record", "phlox-tensor"},
    "phlox-optim": {"phlox-nn", "phlox-record", "phlox-tensor"},
    "phlox-record": {"phlox-tensor"},
    "phlox-tensor": set[str](),
    "phlox-text": {"phlox-fusion", "phlox-nn", "phlox-record", "phlox-tensor"},
    "phlox-train": {"phlox-fusion", "phlox-nn", "phlox-optim", "phlox-record", "phlox-tensor"},
    "phlox-wgpu": {"phlox-tensor"},
}
# phlox_tensor.testing is for test suites: importing it may ask for their tools. Pyodide is there
# in browsers alone, which nothing installs.
OPTIONAL = {"phlox-tensor": {"hypothesis", "pytest"}, "phlox-wgpu": {"pyodide"}}
# Distributions whose module has another name.
IMPORTED_AS = {"pillow": "PIL"}
# Type checkers bring these themselves; `./x isolate` sees a package that imports them when run.
CHECKERS = {"typing_extensions"}
TEST_TOOLS = {"conftest", "hypothesis", "ml_dtypes", "pytest"}
PROJECTS = {project.name: project for project in projects()}


def sources(project: Project) -> list[Path]:
    """Files of the importable package."""
    base = "python" if project.native else "src"
    return sorted((project.folder / base / project.module).rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and top-level name of every import, wherever it stands, by statement or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__", "find_spec")
        ):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value.split(".")[0]


def foreign(file: Path, known: set[str]) -> list[str]:
    """Imports of a file that are neither in the standard library nor in `known`."""
    found = imported(ast.parse(file.read_text()))
    names = known | CHECKERS | sys.stdlib_module_names
    where = file.relative_to(ROOT)
    return [f"{where}:{line}: imports {name}" for line, name in found if name not in names]


def modules(names: set[str]) -> set[str]:
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}


def test_every_package_has_a_place_in_the_order() -> None:
    assert set(PROJECTS) == set(ALLOWED)


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_declared_packages_lie_below(name: str) -> None:
    project = PROJECTS[name]
    declared = {other for other in project.requires | project.extras if other in ALLOWED}
    assert declared <= ALLOWED[name], f"{name} declares {sorted(declared - ALLOWED[name])}"


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_imports_are_declared(name: str) -> None:
    project = PROJECTS[name]
    declared = set(project.requires) | set(project.extras)
    known = modules(declared | {name} | OPTIONAL.get(name, set()))
    found = [line for file in sources(project) for line in foreign(file, known)]
    assert not found, "\n".join([f"{name} imports what it does not declare:", *found])


@pytest.mark.parametrize("name", sorted(set(ALLOWED) - {"phlox"}))
def test_the_tests_of_a_package_import_no_more_than_it(name: str) -> None:
    reached = {name}
    for _ in ALLOWED:
        reached |= {other for key in reached if key in PROJECTS for other in PROJECTS[key].requires}
    folder = PROJECTS[name].folder / "tests"
    found = [
        line
        for file in sorted(folder.rglob("*.py"))
        for line in foreign(file, modules(reached) | TEST_TOOLS)
    ]
    hint = "hint: a test across packages belongs in tests/"
    assert not found, "\n".join([*found, hint])


def test_the_tensor_package_names_no_backend() -> None:
    others = modules(set(ALLOWED) - {"phlox-tensor"}) - {"phlox"}
    pattern = re.compile(r"\b(?:" + "|".join(sorted(others)) + r")\b")
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in sources(PROJECTS["phlox-tensor"])
        if (match := pattern.search(file.read_text()))
    ]
    assert not found, "\n".join(found)


def test_only_the_binding_names_pyo3() -> None:
    """The Rust core builds and is tested without Python."""
    base = ROOT / "kernels-rs" / "src"
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in sorted(base.rglob("*.rs"))
        if not file.relative_to(base).parts[0].startswith("py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\bpyo3\b", line.split("//")[0])
    ]
    assert not found, "\n".join(found)


def test_an_import_is_seen_wherever_it_stands() -> None:
    """The reader above must not be blind, or every test here passes for nothing."""
    text = (
        "import a.b\n"
        "from c import d\n"
        "def f():\n    import e\n"
        "import_module('g.h')\n"
        "importlib.util.find_spec('i')\n"
        "from . import own\n"
    )
    assert sorted(imported(ast.parse(text))) == [(1, "a"), (2, "c"), (4, "e"), (5, "g"), (6, "i")]


def test_every_package_was_read() -> None:
    """A moved source folder would make the tests above pass on nothing."""
    assert all(sources(project) for project in PROJECTS.values())
