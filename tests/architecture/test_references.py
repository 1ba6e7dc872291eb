"""An expansion and its reference share nothing, so that one can judge the other."""

from __future__ import annotations

import ast
from pathlib import Path

from phlox import REGISTRY
from tools.shell import ROOT

OPS = ROOT / "packages/tensor/src/phlox_tensor/ops"


def shared(text: str) -> list[str]:
    """Names of ``reference`` that are read anywhere but after ``numpy=``."""
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname or alias.name
        for node in imports
        if node.level == 2 and (node.module or "").split(".")[0] == "reference"
        for alias in node.names
    }
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    allowed = {part for node in keywords if node.arg == "numpy" for part in ast.walk(node.value)}
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    return [f"{node.lineno}: {node.id}" for node in read if node not in allowed]


def test_ops_read_references_only_as_references() -> None:
    files = sorted(OPS.glob("*.py"))
    found = [f"{file.name}:{line}" for file in files for line in shared(file.read_text())]
    assert len([f for f in files if "..reference" in f.read_text()]) > 20
    assert not found, "shapes/ holds what both need to know: " + ", ".join(found)


def test_shapes_read_no_reference() -> None:
    files: list[Path] = sorted((OPS.parent / "shapes").glob("*.py"))
    assert len(files) > 20
    assert not [file.name for file in files if "reference" in file.read_text().split('"""')[-1]]


def test_a_shared_formula_is_seen() -> None:
    text = "from ..reference import rows as ref\nx = op(numpy=ref.a, expand=lambda x: ref.b(x))\n"
    assert shared(text) == ["2: ref"]


def test_every_op_has_a_reference_or_a_reason() -> None:
    alone = "of one process it gives what it gets; tests/distributed has those of several"
    collectives = ("all_gather", "all_reduce", "broadcast", "broadcast_backward", "reduce_scatter")
    reasons = {
        **dict.fromkeys(collectives, alone),
        "blocks_linear": "dequantize_blocks and matmul",
        "dequantize_words": "dequantize_blocks of bytes, which ops with references give",
        "dequantize_blocks": "ops that have references; tests ask the reader of such files",
        "quantized_linear": "dequantize and matmul, which have references",
        "swiglu": "silu, which has a reference, times x2",
        "words_linear": "dequantize_words and matmul",
    }
    assert {op.name for op in REGISTRY.values() if op.numpy is None} == set(reasons)
