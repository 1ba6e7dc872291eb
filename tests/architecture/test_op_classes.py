"""Classes of ops are told by their properties; a family has one file name in every layer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from phlox_autodiff import batching_kind
from phlox_tensor import REGISTRY
from tests.architecture.tree import files
from tools.shell import ROOT

# Folders of Python files that are named as the families whose part they hold.
LAYERS = [
    "packages/autodiff/src/phlox_autodiff/rules",
    "packages/tensor/src/phlox_tensor/ops",
    "packages/tensor/src/phlox_tensor/reference",
    "packages/tensor/src/phlox_tensor/shapes",
    "packages/autodiff/src/phlox_autodiff/batching",
]
FAMILIES = sorted(path.stem for path in (ROOT / LAYERS[1]).glob("[a-z]*.py"))
_TABLES = {
    "Final[dict[str, LanesRule | NoLanes]]",
    "Final[dict[str, Rule]]",
    "Final[dict[str, Second]]",
}
LOOKUPS = {"get", "index", "pop", "setdefault"}


def _is_class_name(node: ast.AST | None) -> bool:
    """Whether an expression is ``….op_class.name``, or that of a variable called so."""
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    return getattr(owner, "attr", getattr(owner, "id", None)) == "op_class"


def branches(text: str) -> Iterator[int]:
    """Lines that compare the name of a class, match on it or look it up."""
    for node in ast.walk(ast.parse(text)):
        used: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            used = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            used = [node.subject]
        elif isinstance(node, ast.Subscript):
            used = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            used = [*node.args] if node.func.attr in LOOKUPS else []
        elif isinstance(node, ast.Assign | ast.NamedExpr):
            used = [node.value]
        yield from (each.lineno for each in used if _is_class_name(each))


def test_nothing_branches_on_the_name_of_a_class() -> None:
    read = [file for file in files(".py") if "op_class" in file.read_text()]
    found = [
        f"{file.relative_to(ROOT)}:{line}: a class has properties; declare one in OpClass"
        for file in read
        for line in branches(file.read_text())
    ]
    assert len(read) > 10
    assert not found, "\n".join(found)


def test_a_branch_on_a_class_is_seen() -> None:
    text = (
        "if op.op_class.name == 'row': ...\n"
        "x = op.op_class.name in ('row', 'view')\n"
        "table.get(op.op_class.name)\n"
        "table[op.op_class.name]\n"
        "name = op.op_class.name\n"
        "print(op.op_class.name)\n"
        "if op_class.name == 'row': ...\n"
    )
    assert sorted(branches(text)) == [1, 2, 3, 4, 5, 7]


def test_no_class_goes_by_another_word() -> None:
    """``family`` is the name of a file; an alias of a class would hide its branches."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: call the variable op_class"
        for file in files(".py")
        if "op_class" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "op_class"
        and [ast.unparse(target) for target in node.targets] != ["op_class"]
    ]
    assert not found, "\n".join(found)


def test_the_page_on_architecture_lists_the_classes_there_are() -> None:
    text = " ".join((ROOT / "docs" / "architecture.md").read_text().split())
    listed = text.partition("- The **class** (")[2].partition(")")[0].split(", ")
    ours = {op.op_class.name for op in REGISTRY.values()}
    assert listed == sorted(ours)


def test_every_property_of_a_class_is_read_somewhere() -> None:
    properties = {
        f for f in REGISTRY["add"].op_class.__slots__ if f not in ("cases", "name", "shape")
    }
    texts = [file.read_text() for file in files(".py")]
    unread = [p for p in sorted(properties) if not any(f"op_class.{p}" in text for text in texts)]
    assert not unread, f"nothing asks for {', '.join(unread)}"


def test_a_family_has_one_file_name_in_every_layer() -> None:
    for layer in LAYERS:
        names = {path.stem for path in (ROOT / layer).glob("[a-z]*.py")}
        assert names, f"{layer} is empty"
        strange = sorted(names - set(FAMILIES))
        assert not strange, f"{layer}: {', '.join(strange)} named as no family"


def test_every_family_has_a_page() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "ops").glob("*.md")}
    assert set(FAMILIES) <= pages


def test_an_op_is_declared_in_one_family() -> None:
    """A family that imports an op of another one by name would seem to declare it."""
    for name, op in REGISTRY.items():
        modules = [import_module(f"phlox_tensor.ops.{family}") for family in FAMILIES]
        found = [m.__name__ for m in modules if any(v is op for v in vars(m).values())]
        assert len(found) <= 1, f"{name} is in {', '.join(found)}: import the module instead"


def test_an_op_stands_where_its_family_does() -> None:
    """Rows of derivatives and of lanes are in the file named as the family of the declaration."""
    for family in FAMILIES:
        module = import_module(f"phlox_tensor.ops.{family}")
        names = {v.name for v in vars(module).values() if v in REGISTRY.values()}
        for layer in (LAYERS[0], LAYERS[-1]):
            path = ROOT / layer / f"{family}.py"
            if path.is_file():
                assert _rows(path) <= names, f"{path} has rows of other families"


def test_every_op_runs_over_lanes_or_says_why_not() -> None:
    """An op whose class, row and expansion say nothing of ``vmap`` would be found by users."""
    kinds = {name: batching_kind(op) for name, op in REGISTRY.items()}
    reasons = {name: kind for name, kind in kinds.items() if kind.startswith("none")}
    lacking = [name for name, kind in reasons.items() if kind == "none: no rule and no expansion"]
    assert not lacking, f"no batching rule: {', '.join(lacking)}; add a row, or NoLanes(reason)"
    assert all("values" in kind for kind in reasons.values()), reasons
    assert len(kinds) > len(reasons) + 100


def _rows(path: Path) -> set[str]:
    """Names of ops that are keys of the tables in a file."""
    return {
        key.value
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.value, ast.Dict)
        and ast.unparse(node.annotation) in _TABLES
        for key in node.value.keys
        if isinstance(key, ast.Constant) and key.value in REGISTRY
    }
