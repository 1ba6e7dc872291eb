"""Regenerate all generated files, or check that they are fresh.

Usage: python tools/gen.py [--check]
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "packages/tensor/src/phlox_tensor"
DOCS = ROOT / "docs/ops"
LEARNING = ROOT / "docs/layers.md"
SCHEDULES = ROOT / "docs/schedules.svg"
GENERATED_CODE = (PACKAGE / "_functions/functions.py", PACKAGE / "_functions/methods.py")


def _format(path: Path, text: str) -> str:
    """Run the project's formatter over the text as if it stood at ``path``."""
    if path.suffix != ".py":
        return text
    for command in (["check", "--fix", "--quiet", "--select", "I001,RUF022"], ["format"]):
        line = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        done = subprocess.run(
            line, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = done.stdout
    return text


def _code() -> dict[Path, str]:
    from tools.generate import code, exports, homes, layers  # noqa: PLC0415 - needs the package, see _bootstrap

    files = {GENERATED_CODE[0]: code.functions_file(), GENERATED_CODE[1]: code.methods_file()}
    files |= layers.files() | exports.files()
    files |= homes.files(files)
    return {path: _format(path, text) for path, text in files.items()}


def _pages() -> dict[Path, str]:
    from tools.generate import (  # noqa: PLC0415 - run the generated functions
        charts,
        examples,
        learning,
        namespaces,
        onnx_ops,
        pages,
        readme,
        schedules,
    )

    drawn = {LEARNING: learning.page(), SCHEDULES: schedules.page(), readme.FILE: readme.page()}
    drawn |= charts.files()
    drawn[examples.FILE] = _format(examples.FILE, examples.file())
    return pages.files(DOCS) | namespaces.files(DOCS) | onnx_ops.files(DOCS.parent) | drawn


def _bootstrap() -> None:
    """The package imports its generated files; give it empty ones where they are missing."""
    functions, methods = GENERATED_CODE
    if not functions.exists():
        functions.write_text("__all__ = []\n\n\ndef __getattr__(name):\n    return name\n")
    if not methods.exists():
        methods.write_text("class TensorMethods:\n    pass\n")


def main() -> int:
    """Write the files, or with --check name the stale ones and return 1."""
    _bootstrap()
    check = "--check" in sys.argv[1:]
    stale = _stale(_code())
    if stale and not check:
        _write(stale)
        # The pages run the functions just written, so a new interpreter loads them.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    pages = _pages()
    stale |= _stale(pages)
    leftover = [p for p in DOCS.glob("*.md") if p not in pages]
    if not check:
        _write(stale)
        for path in leftover:
            path.unlink()
        return 0
    for path in [*stale, *leftover]:
        print(f"stale: {path.relative_to(ROOT)}")
    if stale or leftover:
        print("hint: python tools/gen.py")
    return 1 if stale or leftover else 0


def _stale(files: dict[Path, str]) -> dict[Path, str]:
    return {p: text for p, text in files.items() if not p.exists() or p.read_text() != text}


def _write(files: dict[Path, str]) -> None:
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
