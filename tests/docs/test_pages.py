"""Every Python block of the documentation runs, page by page, top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from phlox import REGISTRY, Tensor

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/guide").glob("*.md"),
        *(ROOT / "packages").glob("*/README.md"),
        ROOT / "kernels-rs/README.md",
    ]
)


def _program(page: Path) -> str:
    """The blocks of a page as one program whose line numbers are the page's."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for match in BLOCK.finditer(text):
        first = text.count("\n", 0, match.start(1))
        for i, line in enumerate(match.group(1).splitlines()):
            lines[first + i] = line
    return "\n".join(lines)


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Forget the ops that a page declares: other tests go through all that there are."""
    before = set(REGISTRY)
    yield
    for name in set(REGISTRY) - before:
        del REGISTRY[name]
        if hasattr(Tensor, name):
            delattr(Tensor, name)


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = _program(page)
    code = compile(program, str(page), "exec", dont_inherit=True)  # not this file's __future__
    exec(code, {"__name__": "page"})


def test_the_table_of_kernels_names_each_folder() -> None:
    page = (ROOT / "docs/kernels.md").read_text(encoding="utf-8")
    folders = sorted(part.name for part in (ROOT / "kernels-rs/src/ops").iterdir() if part.is_dir())
    assert [name for name in folders if f"ops/{name}" not in page] == []


def test_pages_of_ops_show_the_whole_bound_that_is_tested() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/ops").glob("*.md"))
    sections: dict[str, str] = {}
    for part in text.split("\n## "):
        name = part.partition("\n")[0]
        sections[name] = sections.get(name, "") + part
    shown = [op for op in REGISTRY.values() if op.name in sections and op.tested.atol]
    assert len(shown) > 100
    for op in shown:
        assert f"{op.tested.atol:g}·epsilon" in sections[op.name], op.name
