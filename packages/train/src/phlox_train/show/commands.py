"""The commands ``phlox runs``, ``phlox report``, ``phlox export`` and ``phlox watch``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from phlox_tensor import PhloxError
from phlox_tensor.files import told
from phlox_tensor.needed import needed

from ..runs.card import NAME
from ..runs.errors import RunError
from ..runs.folder import LOG, read_json
from ..runs.line import clock
from .export import FORMATS, export
from .report import write_report
from .view import View, last_row, views

COMMANDS: Final = {
    "runs": "list the runs below a folder: state, step, best value, age",
    "report": "write one page about runs: curves, config, best values; it needs no network",
    "export": "write the rows of a run for other tools",
    "watch": "show curves of runs while they go on; save or end them by keys",
}


def main(command: str, words: Sequence[str]) -> int:
    """Run one of the commands and return its exit status."""
    parser = argparse.ArgumentParser(prog=f"phlox {command}", description=COMMANDS[command])
    if command == "runs":
        parser.add_argument("folder", nargs="?", default=Path("runs"), type=Path)
    elif command == "export":
        parser.add_argument("run", type=Path)
        parser.add_argument("--to", required=True, choices=sorted(FORMATS))
        parser.add_argument("-o", "--output", type=Path, help="by default inside of the run")
    else:
        parser.add_argument("runs", nargs="+", type=Path, help="folders of runs, or above them")
    if command == "report":
        parser.add_argument("-o", "--output", type=Path, default=Path("report.html"))
    options = parser.parse_args(words)
    try:
        print(_COMMANDS[command](options))
    except (PhloxError, OSError) as error:
        print(told(command, error), file=sys.stderr)
        return 2
    return 0


def _runs(options: argparse.Namespace) -> str:
    rows = [["run", "state", "step", "epoch", "time", "best", "age"]]
    for view in sorted(views([options.folder]), key=lambda view: view.age):
        view.card = read_json(view.folder / NAME)
        row = last_row(view.folder / LOG)
        time = clock(row["time"]) if row else ""
        place = [f"{row.get('step', 0):,}", f"{row.get('epoch', -1) + 1}", time]
        name = str(view.folder.relative_to(options.folder)) if view.name != "." else "."
        rows.append([name, view.state, *place, _best(view), clock(view.age)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n".join(lines)


def _best(view: View) -> str:
    """The best values, by the rules that keep their checkpoints."""
    best: dict[str, Any] = read_json(view.folder / "best.json")
    return ", ".join(f"{name} {at['value']:.4g} at {at['step']:,}" for name, at in best.items())


def _report(options: argparse.Namespace) -> str:
    found, damaged = views(options.runs), []
    for view in [*found]:
        try:
            view.read()
        except RunError as error:
            if len(found) == 1:
                raise
            found.remove(view)
            damaged.append(str(error))
    return "\n".join([*damaged, f"wrote {write_report(found, options.output)}"])


def _export(options: argparse.Namespace) -> str:
    return f"wrote {export(View(options.run), options.to, options.output)}"


def _watch(options: argparse.Namespace) -> str:
    views(options.runs)  # that none is there is said before what else is missing
    for module in ("textual", "textual_plot"):
        needed("watch", "phlox-train[watch]", module)
    from .watch import watch  # noqa: PLC0415 - loads both

    return watch(options.runs)


_COMMANDS: Final = {"runs": _runs, "report": _report, "export": _export, "watch": _watch}
