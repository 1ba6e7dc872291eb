"""Fuzzes one parser with atheris: python tools/fuzz_one.py PACKAGE PARSER FOLDER [OPTION…].

The targets are those of `packages/PACKAGE/attacks/targets.py`, the options those of libFuzzer.
FOLDER keeps the inputs that reach something new, and gets some to begin with. With the name of a
file for FOLDER that one input is read again. `python -m tools.fuzz` runs all parsers.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).resolve().parents[1] / "packages"


def main() -> None:
    """Fuzz until an option or a finding ends it."""
    # Only fuzzing needs it, and it changes what is imported behind it.
    atheris: Any = import_module("atheris")
    package, name, place, *options = sys.argv[1:]
    targets = PACKAGES / package / "attacks" / "targets.py"
    with atheris.instrument_imports(include=[f"phlox_{package}"]):
        made = runpy.run_path(str(targets), run_name="targets")
    folder = Path(place)
    if not folder.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for number, data in enumerate(made["seeds"](name)):
            (folder / f"seed-{number:03d}").write_bytes(data)
    one_input = made["one_input"]

    def run(data: bytes) -> None:
        one_input(name, data)

    atheris.Setup([sys.argv[0], str(folder), *options], run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
