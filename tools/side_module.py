"""Link Python's extension for browsers, in the place of Emscripten's `emcc`.

Rust calls it with what it would tell `emcc`. What a Rust extension needs of that is one linker:
all that the module lacks, functions of C among it, is in Pyodide, and is found as it is loaded.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_OPTIONS = (
    *("-shared", "--experimental-pic", "--unresolved-symbols=import-dynamic", "--gc-sections"),
    *("--export=PyInit__native", "--export-if-defined=__wasm_call_ctors", "--strip-all"),
    *("--export-if-defined=__wasm_apply_data_relocs",),
)


def arguments(words: list[str]) -> list[str]:
    """What wasm-ld is told of what was meant for emcc: the objects, and where the module goes."""
    given: list[str] = []
    for word in words:
        lines = Path(word[1:]).read_text().splitlines() if word.startswith("@") else [word]
        given += [line.strip('"') for line in lines]
    out = given[given.index("-o") + 1]
    objects = [word for word in given if word.endswith((".o", ".rlib", ".a")) and word[0] != "-"]
    return [*_OPTIONS, "-o", out, *objects]


def main(words: list[str]) -> int:
    """Link, and return an exit status."""
    command = [sys.executable, "-m", "ziglang", "wasm-ld", *arguments(words)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
