"""The table behind ``phlox metrics``."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from dataclasses import MISSING, fields
from typing import Final

from phlox_nn import Config
from phlox_train.metrics.rows import ROWS

from . import train
from ._table import table

HEAD: Final = ("name", "takes", "better", "merge")


def records() -> list[dict[str, str]]:
    """Return one record for each metric: what it takes, which values are better, how it merges."""
    return [
        {
            "name": name,
            "takes": ", ".join(_default(name, "takes")) or "the output that it names",
            "better": row.direction,
            "merge": row.merges,
            "settings": ", ".join(_settings(name)),
            "what": _sentence(row),
        }
        for name, row in ROWS.items()
    ]


def main(words: list[str]) -> int:
    """Run ``phlox metrics`` and return its exit status."""
    parser = argparse.ArgumentParser(prog="phlox metrics", description="print every metric")
    parser.add_argument("name", nargs="?", help="all about one")
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args(words)
    if options.name:
        return _print_one(options.name)
    rows = [[record[column] for column in HEAD] for record in records()]
    print(json.dumps(records(), indent=2) if options.json else table(HEAD, rows))
    return 0


def _print_one(name: str) -> int:
    """Print settings, and all that the docstrings say of them."""
    found = next((each for each in ROWS if each.lower() == name.lower()), name)
    row = ROWS.get(found)
    if row is None:
        try:
            error: object = f"no metric: {getattr(train, name)!r}"
        except AttributeError as unknown:  # which says what is meant
            error = unknown
        more = "" if "hint:" in str(error) else "\nhint: phlox metrics"
        print(f"{error}{more}", file=sys.stderr)
        return 2
    print(f"{found}({', '.join(_settings(found))})\n\n{inspect.getdoc(row)}")
    for base in row.__mro__[1:]:
        if base is not Config and issubclass(base, Config):
            print(f"\n{inspect.getdoc(base)}")
    return 0


def _default(name: str, setting: str) -> tuple[str, ...]:
    given = next(field.default for field in fields(ROWS[name]) if field.name == setting)
    return tuple(given) if isinstance(given, tuple) else ()


def _settings(name: str) -> list[str]:
    """Settings besides those that all metrics have, with their defaults."""
    own = [field for field in fields(ROWS[name]) if field.name not in ("name", "takes")]
    return [f.name if f.default is MISSING else f"{f.name}={f.default!r}" for f in own]


def _sentence(row: type) -> str:
    """The first sentence of a docstring."""
    first = " ".join((inspect.getdoc(row) or "").split("\n\n", maxsplit=1)[0].split())
    return re.split(r"(?<=[^.])\. ", f"{first} ", maxsplit=1)[0].strip().removesuffix(".")
