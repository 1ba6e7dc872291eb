"""Op names stand in declarations and tables alone, and the tables are complete both ways."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phlox import REGISTRY, Backend, Cpu, Numpy, Wgpu
from phlox_autodiff import rule_kind
from phlox_autodiff.rules import RULES
from phlox_kernels._backend import _TABLE as CPU_TABLE
from phlox_onnx.table import TABLE as ONNX_TABLE
from phlox_wgpu._table import table as wgpu_table
from tests.architecture.tree import is_generated
from tools.shell import ROOT

# Words that are an op's name and mean something else where they are compared.
ALLOWED = {
    ("packages/nn/src/phlox_nn/layers/embedding.py", "sum"): "a setting of bags",
    ("packages/nn/src/phlox_nn/losses/classes.py", "mean"): "a setting of losses",
    ("packages/nn/src/phlox_nn/losses/classes.py", "sum"): "a setting of losses",
    ("packages/nn/src/phlox_nn/losses/ctc.py", "mean"): "a setting of losses",
    ("packages/onnx/src/phlox_onnx/run/_paths.py", "Add"): "the formula of a layer with a bias",
    ("packages/optim/src/phlox_optim/_rmsprop.py", "mean"): "the name of a state",
    ("packages/tensor/src/phlox_tensor/testing/_conformance.py", "broadcast"): "a layout",
    ("packages/tensor/src/phlox_tensor/testing/_conformance.py", "contiguous"): "a layout",
    ("packages/wgpu-backend/src/phlox_wgpu/_indexing.py", "add"): "an update of scatter",
    ("packages/wgpu-backend/src/phlox_wgpu/wgsl/chain.py", "cast"): "the node that is no table row",
    ("packages/wgpu-backend/src/phlox_wgpu/wgsl/scatter.py", "max"): "an update of scatter",
}


NAMES = {*REGISTRY, *(name for _, name in ONNX_TABLE)}


def sources() -> list[Path]:
    found = [*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("kernels-rs/python/**/*.py")]
    found += ROOT.glob("src/**/*.py")
    tables = (
        "/phlox_tensor/ops/",
        "/phlox_tensor/reference/",
        "/phlox_autodiff/rules/",
        "/phlox_onnx/save/_rows.py",
        "/phlox_onnx/source/graph/_attention.py",  # formulas, each a function
        "/phlox_onnx/source/graph/_patterns.py",
        "/phlox_onnx/table/",
        "/phlox_onnx/read/_upgrades.py",
    )
    return [
        f for f in sorted(found) if not is_generated(f) and not any(t in str(f) for t in tables)
    ]


def words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for item in node.elts:
            yield from words(item)


def compared(text: str) -> Iterator[tuple[int, str]]:
    """Line and op name of every comparison with, or match of, an op name."""
    for node in ast.walk(ast.parse(text)):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        for part in parts:
            yield from ((part.lineno, w) for w in words(part) if w in NAMES)  # type: ignore[attr-defined]


def test_nothing_branches_on_the_name_of_an_op() -> None:
    seen = set()
    found = []
    for file in sources():
        where = file.relative_to(ROOT).as_posix()
        for line, word in compared(file.read_text()):
            seen.add((where, word))
            if (where, word) not in ALLOWED:
                found.append(f"{where}:{line}: {word!r}")
    assert not found, "\n".join(found)
    assert seen == set(ALLOWED), f"no longer there: {sorted(set(ALLOWED) - seen)}"


def test_a_branch_is_seen() -> None:
    text = "if op == 'add': ...\nif op in ('exp', 'x'): ...\nmatch op:\n    case 'sum': ...\n"
    text += "if key == ('', 'Gemm'): ...\n"
    assert sorted(compared(text)) == [(1, "add"), (2, "exp"), (4, "sum"), (5, "Gemm")]


@pytest.mark.parametrize("backend", [Cpu(), Numpy(), Wgpu()], ids=repr)
def test_every_op_has_an_entry_or_an_expansion(backend: Backend) -> None:
    missing = {n for n, op in REGISTRY.items() if not (backend.entry(n) or op.expand)}
    hosted = {n for n, op in REGISTRY.items() if op.op_class.hosted and not op.expand}
    assert missing == (hosted if isinstance(backend, Wgpu) else set())


@pytest.mark.parametrize("name", ["cpu", "wgpu", "derivatives"])
def test_every_row_of_a_table_is_a_declared_op(name: str) -> None:
    tables: dict[str, Any] = {"cpu": CPU_TABLE, "wgpu": wgpu_table(), "derivatives": RULES}
    rows = tables[name]
    assert rows
    assert set(rows) <= set(REGISTRY), sorted(set(rows) - set(REGISTRY))


def test_every_op_has_a_derivative_or_a_reason() -> None:
    kinds = {name: rule_kind(op) for name, op in REGISTRY.items()}
    bare = [n for n, k in kinds.items() if k.startswith("none") and (len(k) < 8 or "no rule" in k)]
    assert not bare
