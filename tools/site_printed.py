"""Runs the Python blocks of pages, top to bottom, and puts what each printed under it.

For `./x site`; it runs where phlox is installed, each page in an empty folder.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

BLOCK: Final = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_SHOWN: Final = re.compile(r"\s*```\n")  # a block without a language, which says what is printed
_MOST: Final = 40


def printed(text: str, name: str) -> str:
    """Return the text of a page with what its blocks print."""
    space: dict[str, Any] = {"__name__": "page"}
    pieces, end = [], 0
    for block in BLOCK.finditer(text):
        said = _run(block[1], f"{name}, line {text.count(chr(10), 0, block.start(1))}", space)
        pieces.append(text[end : block.end()])
        end = block.end()
        if said.strip() and not _SHOWN.match(text, end):
            pieces.append(f"\n``` {{ .text .printed }}\n{_short(said)}\n```\n")
    return "".join([*pieces, text[end:]])


def _run(code: str, name: str, space: dict[str, Any]) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, name, "exec", dont_inherit=True), space)
    return said.getvalue()


def _short(said: str) -> str:
    lines = said.rstrip().splitlines()
    left = len(lines) - _MOST
    return "\n".join([*lines[:_MOST], *([f"… {left} more lines"] if left > 1 else lines[_MOST:])])


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="phlox-") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(files: list[Path]) -> int:
    """Change pages in place."""
    for file in files:
        text = file.read_text(encoding="utf-8")
        if BLOCK.search(text):
            with _elsewhere():
                text = printed(text, file.name)
            file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(name).resolve() for name in sys.argv[1:]]))
