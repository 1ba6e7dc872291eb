"""Inside a package, too, arrows point down: no file imports one that imports it, by any way round.

Imports inside functions count, and those for type checkers alone: they, too, say what must be read
before the other. Packages where such imports still run both ways are named in ``TYPED_BOTH_WAYS``.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.test_layers import PROJECTS, sources

Graph = dict[str, set[str]]

Imports = Callable[[ast.AST], Iterator[ast.Import | ast.ImportFrom]]

TYPED_BOTH_WAYS = {"phlox-tensor"}


def modules(root: Path, package: str) -> dict[str, Path]:
    """Files of a package by their dotted name."""
    found = {}
    for file in sorted({*root.rglob("*.py"), *root.rglob("*.pyi")}):  # a stub: a native module
        parts = [package, *file.relative_to(root).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def running(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements that run at some time: all but those under ``if TYPE_CHECKING``."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        for node in tree.orelse:
            yield from running(node)
        return
    if isinstance(tree, ast.Import | ast.ImportFrom):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from running(child)


def written(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All import statements, those for type checkers among them."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def graph(found: dict[str, Path], imports: Imports = running) -> Graph:
    """What each module imports, among those of its package."""
    arrows: Graph = {}
    for name, file in found.items():
        here = name if file.name == "__init__.py" else name.rpartition(".")[0]
        arrows[name] = set()
        for node in imports(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            else:
                base = ".".join(here.split(".")[: len(here.split(".")) - node.level + 1])
                source = node.module or "" if not node.level else f"{base}.{node.module or ''}"
                source = source.rstrip(".")
                wanted = [f"{source}.{alias.name}" for alias in node.names]
                wanted = [w if w in found else source for w in wanted]
            arrows[name] |= {w for w in wanted if w in found and w != name}
    return arrows


def circles(arrows: Graph) -> list[list[str]]:
    """Groups of modules that reach each other (Tarjan's algorithm, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return found


def files_of(name: str) -> dict[str, Path]:
    project = PROJECTS[name]
    root = next(file.parent for file in sources(project) if file.name == "__init__.py")
    return modules(root, project.module)


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_no_file_reaches_itself(name: str) -> None:
    arrows = graph(files_of(name))
    assert sum(map(len, arrows.values())) > 0
    assert circles(arrows) == []


@pytest.mark.parametrize("name", sorted(PROJECTS))
def test_types_make_no_circle(name: str) -> None:
    assert bool(circles(graph(files_of(name), written))) == (name in TYPED_BOTH_WAYS)


def rooms(arrows: Graph, package: str) -> Graph:
    """What each folder of a package imports of the others; files beside them are rooms too."""

    def room(name: str) -> str:
        return name.removeprefix(package).strip(".").partition(".")[0]

    found: Graph = {room(name): set() for name in arrows}
    for name, others in arrows.items():
        found[room(name)] |= {room(other) for other in others} - {room(name)}
    return found


def test_rooms_of_tensors_make_no_circle() -> None:
    found = rooms(graph(files_of("phlox-tensor")), PROJECTS["phlox-tensor"].module)
    assert len(found) > 20
    assert circles(found) == []


def test_a_circle_of_rooms_is_seen() -> None:
    arrows = {"p": {"p.a.b"}, "p.a.b": {"p.c"}, "p.a.d": set[str](), "p.c": {"p.a.d"}}
    assert circles(arrows) == []
    assert circles(rooms(arrows, "p")) == [["a", "c"]]


def test_a_circle_is_seen(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("from ._a import f\n")
    (tmp_path / "_a.py").write_text("def f():\n    from . import _b\n    return _b.g\n")
    (tmp_path / "_b.py").write_text("from ._c import g\n")
    (tmp_path / "_c.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import x\n"
        "else:\n    from ._a import f\ndef g(): ...\n"
    )
    arrows = graph(modules(tmp_path, "p"))
    assert circles(arrows) == [["p._a", "p._b", "p._c"]]
    (tmp_path / "_c.py").write_text("def g(): ...\n")
    assert circles(graph(modules(tmp_path, "p"))) == []
    (tmp_path / "_c.py").write_text("if TYPE_CHECKING:\n    from ._a import f\n")
    assert circles(graph(modules(tmp_path, "p"))) == []
    assert circles(graph(modules(tmp_path, "p"), written)) == [["p._a", "p._b", "p._c"]]
