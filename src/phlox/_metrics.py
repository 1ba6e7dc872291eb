"""The table behind ``phlox metrics``."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from dataclasses import MISSING, fields
from typing import Final

from phlox_nn import Config
from phlox_tensor import ArgumentError, UnknownNameError
from phlox_train.metrics.rows import ROWS

from . import train
from ._table import no_such, table

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
    found = records()
    if options.name:
        found = [_record_of(options.name, found)]
    if options.json:
        print(json.dumps(found, indent=2))
    elif options.name:
        _print_one(found[0]["name"])
    else:
        print(table(HEAD, [[record[column] for column in HEAD] for record in found]))
    return 0


def _record_of(name: str, found: list[dict[str, str]]) -> dict[str, str]:
    """The record of a metric, by its name here in whatever case."""
    for each in found:
        if each["name"].lower() == name.lower():
            return each
    try:
        getattr(train, name)
    except UnknownNameError as unknown:  # which may know the name from elsewhere
        hint = unknown.hint
        if hint and hint.removeprefix("train.") not in ROWS:
            raise ArgumentError("metrics", "no such metric", got=name, hint=hint) from None
    raise no_such("metrics", "metric", name, ROWS)


def _print_one(name: str) -> None:
    """Print settings, and all that the docstrings say of them."""
    row = ROWS[name]
    print(f"{name}({', '.join(_settings(name))})\n\n{inspect.getdoc(row)}")
    for base in row.__mro__[1:]:
        if base is not Config and issubclass(base, Config):
            print(f"\n{inspect.getdoc(base)}")


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
