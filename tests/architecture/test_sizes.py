"""Size budgets: lines of files, functions and front pages, files of folders."""

import ast
import re
from collections import Counter as Count
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import files, is_generated
from tools.shell import ROOT

Counter = Callable[[str], Iterator[tuple[str, int]]]

FILE_LINES = 500
FUNCTION_LINES = 60
FOLDER_FILES = 40
PAGE_LINES = {"README.md": 120, "CONTRIBUTING.md": 100, "STYLE.md": 150}

# One file a family of ops; the folders of tests hold what they test.
FAMILIES = {"ops", "reference", "shapes"}

_FN = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?(?:(?:const|async|unsafe|extern \"C\") )*fn (\w+)")
# Strings, characters and comments: braces inside them do not count.
_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n']+|[^\\\n'])'""",
    re.DOTALL,
)


def by_hand(*suffixes: str) -> list[Path]:
    """Files written by hand: generated ones say so in their first line and are exempt."""
    return [file for file in files(*suffixes) if not is_generated(file)]


def python_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of each Python function, decorators and docstring left out."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            start = node.lineno
            if ast.get_docstring(node) is not None and len(node.body) > 1:
                start += (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, node.end_lineno - start + 1


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def rust_functions(text: str) -> Iterator[tuple[str, int]]:
    """Name and length of each Rust function, found by counting braces outside strings."""
    lines = _NOT_CODE.sub(_blank, text).split("\n")
    for start, line in enumerate(lines):
        found = _FN.match(line)
        if found is None:
            continue
        depth, opened = 0, False
        for end in range(start, len(lines)):
            depth += lines[end].count("{") - lines[end].count("}")
            opened = opened or "{" in lines[end]
            if opened and depth <= 0:
                yield found[1], end - start + 1
                break
            if not opened and lines[end].rstrip().endswith(";"):
                break


def test_files_keep_within_the_budget() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in by_hand(".py", ".rs", ".wgsl")}
    found = [
        f"{file.relative_to(ROOT)}: got {lines} lines, expected at most {FILE_LINES}"
        for file, lines in lengths.items()
        if lines > FILE_LINES
    ]
    assert lengths
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("suffix", "functions"), [(".py", python_functions), (".rs", rust_functions)]
)
def test_functions_keep_within_the_budget(suffix: str, functions: Counter) -> None:
    seen = [
        (file, name, lines)
        for file in by_hand(suffix)
        for name, lines in functions(file.read_text())
    ]
    found = [
        f"{file.relative_to(ROOT)}: {name}: got {lines} lines, expected at most {FUNCTION_LINES}"
        for file, name, lines in seen
        if lines > FUNCTION_LINES
    ]
    assert seen
    assert not found, "\n".join(found)


def test_folders_of_packages_keep_within_the_budget() -> None:
    sources = [file for file in files(".py") if "src" in file.parts or "python" in file.parts]
    count = Count(file.parent for file in sources)
    assert any(folder.name == "phlox_tensor" for folder in count)
    crowded = {folder.name for folder, held in count.items() if held > FOLDER_FILES}
    assert crowded <= FAMILIES


@pytest.mark.parametrize("name", sorted(PAGE_LINES))
def test_front_pages_are_short(name: str) -> None:
    lines = len((ROOT / name).read_text().splitlines())
    assert lines <= PAGE_LINES[name], f"{name}: got {lines} lines, expected {PAGE_LINES[name]}"


def test_the_python_counter_counts() -> None:
    text = 'def f():\n    """One.\n\n    Two."""\n    a = 1\n    return a\n\n\nasync def g(): ...\n'
    assert list(python_functions(text)) == [("f", 3), ("g", 1)]


def test_the_rust_counter_counts() -> None:
    text = (
        "trait T {\n    fn declared(&self);\n}\n"
        "pub(crate) unsafe fn a(\n    x: u8,\n) -> u8 {\n    // a } brace\n"
        "    let s = \"}\";\n    let c = '}';\n    if x > 0 { 1 } else { 2 }\n}\n"
        "fn b() {}\n"
    )
    assert list(rust_functions(text)) == [("a", 8), ("b", 1)]
